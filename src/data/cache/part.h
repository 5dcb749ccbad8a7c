/* A part of a cache: the tokens of consecutive samples in one mapped file.
 *
 *   header   magic, version, key
 *   samples  ids int32 (n); labels int32 (n), if not the ids; begins uint8 (n), if there are any;
 *            hashes uint64 of its blocks of tokens; each array from a multiple of 8 bytes on
 *   table    one entry a sample
 *   footer   how many, where the table is, how far the pass over the data had come, a hash of table
 *            and footer
 *
 * Numbers are stored as they are in memory: a cache belongs to the machine that made it, and the
 * magic number reads differently on another kind. Everything is checked as if a stranger had
 * written it: the table when the part is opened, tokens whenever they are read. A table entry holds
 * a hash of its sample's block hashes, so a range of a long sample is checked without the rest. */
#ifndef TRI_DATA_CACHE_PART_H
#define TRI_DATA_CACHE_PART_H

#include "base/file.h"
#include "data/index.h"

enum { TRI_CACHE_VERSION = 2 };

enum tri_cache_flag { TRI_CACHE_LABELS = 1, TRI_CACHE_BEGINS = 2, TRI_CACHE_RENDERED = 4 };

struct tri_cache_entry {
    uint64_t offset; /* of the ids */
    int64_t tokens;
    int64_t documents, trained; /* as tri_sample_measure counts them */
    int64_t line;               /* for messages */
    uint32_t file;              /* number of the file in the data */
    uint32_t flags;             /* of enum tri_cache_flag */
    uint64_t hash;              /* of the hashes of its blocks */
};

/* ---- writing ---------------------------------------------------------------------------------
 */

struct tri_part_writer;

/* The file appears under its name when it is finished. */
enum tri_status tri_part_create(const char *path, uint64_t key, struct tri_part_writer **out);

/* Append a sample of at least one token. */
enum tri_status tri_part_add(struct tri_part_writer *part, const struct tri_sample *sample,
                             uint32_t file, int64_t line);

uint64_t tri_part_bytes(const struct tri_part_writer *part);

/* Finish the file; `place` is behind its last sample. Closes in every case. */
enum tri_status tri_part_finish(struct tri_part_writer *part, const struct tri_index_place *place);
void tri_part_abandon(struct tri_part_writer *part); /* NULL is allowed */

/* ---- reading ---------------------------------------------------------------------------------
 */

struct tri_part {
    char *path; /* owned */
    struct tri_map map;
    const struct tri_cache_entry *entries; /* (count), in the map */
    int64_t count;
    struct tri_index_place place; /* behind the last sample */
};

enum tri_status tri_part_open(const char *path, uint64_t key, struct tri_part *out);
void tri_part_close(struct tri_part *part);

/* Is the file as long as it was when it was mapped? What is gone must not be touched. */
enum tri_status tri_part_check(const struct tri_part *part);

/* The sample of an entry, in place: it lives as long as the part and must not be closed. Only its
 * tokens [first, first + count) were checked and may be looked at: they are what was written, and
 * ids are below rules->vocab. */
enum tri_status tri_part_sample(const struct tri_part *part, int64_t number,
                                const struct tri_sample_rules *rules, int64_t first, int64_t count,
                                struct tri_sample *out);

/* Let go of the pages of the samples that were looked at: they must not count as memory of this
 * process. */
void tri_part_forget(const struct tri_part *part);

#endif
