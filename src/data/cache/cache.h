/* Tokens made once: what `trireme data build` writes and training maps.
 *
 * A cache holds every sample of some files as tokens, whole: the over-length policy and packing are
 * functions of its lengths and need no other cache. It is a folder HOME/KEY of parts
 * (data/cache/part.h) and cache.json, which comes last. KEY is a hash of all that decides the
 * tokens, so a cache is right or is not found; one of another version or other settings is only
 * mentioned. While it is made the folder is called KEY.building: parts that are there when a build
 * was killed are kept, and the next one goes on behind them.
 *
 * Samples are in the order of the files, so an index made from a cache equals that of the files
 * themselves, and a run may go on with or without it. */
#ifndef TRI_DATA_CACHE_CACHE_H
#define TRI_DATA_CACHE_CACHE_H

#include "data/index.h"

struct tri_cache_key {
    uint64_t key; /* of everything below, and of the version */
    /* To say what differs: */
    uint64_t sources;   /* names of the files */
    uint64_t contents;  /* their sizes, times, and bytes here and there */
    uint64_t tokenizer; /* and the vocabulary */
    uint64_t settings;  /* formats, masks, chat template */
};
enum tri_status tri_cache_key(const struct tri_data_files *files,
                              const struct tri_sample_rules *rules, struct tri_cache_key *out);

/* HOME/KEY; the caller frees it. */
enum tri_status tri_cache_path(const char *home, const struct tri_cache_key *key, char **out);

/* Is there a complete cache of this key? */
bool tri_cache_exists(const char *home, const struct tri_cache_key *key);

/* Caches of the same files that do not fit: say which and why, one line each. Returns how many. */
int tri_cache_mention(const char *home, const struct tri_cache_key *key);

/* What a killed build loses at most. */
enum { TRI_CACHE_PART_BYTES = 64 << 20 };

/* Make the cache, unless it is there, in parts of about `part_bytes`. One process does, others that
 * ask for the same one wait. Bad samples are what they are for an index. */
enum tri_status tri_cache_build(const char *home, const struct tri_cache_key *key,
                                const struct tri_data_files *files,
                                const struct tri_sample_rules *rules, uint64_t part_bytes);

/* ---- use -------------------------------------------------------------------------------------
 */

struct tri_cache;
enum tri_status tri_cache_open(const char *home, const struct tri_cache_key *key,
                               struct tri_cache **out);
void tri_cache_close(struct tri_cache *cache); /* NULL is allowed */

/* The same index as tri_index_open, but for where its records say that samples are. */
enum tri_status tri_cache_index(const struct tri_cache *cache, const struct tri_data_files *files,
                                const struct tri_sample_rules *rules, int64_t max_length,
                                int overlength, struct tri_index *out);

/* The sample of a record of that index, in place: it must not be closed, and lives until the next
 * one is asked for. Of its tokens the record's, from `first` on, may be looked at. Not for several
 * threads at once. */
enum tri_status tri_cache_sample(struct tri_cache *cache, const struct tri_record *record,
                                 int64_t first, const struct tri_sample_rules *rules,
                                 struct tri_sample *out);

uint64_t tri_cache_bytes(const struct tri_cache *cache);

#endif
