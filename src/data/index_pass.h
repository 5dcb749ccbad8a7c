/* A pass over the data, between index.c (files), index_lines.c (JSONL) and index_documents.c
 * (texts, Megatron datasets). */
#ifndef TRI_DATA_INDEX_PASS_H
#define TRI_DATA_INDEX_PASS_H

#include "base/file.h"
#include "data/ahead.h"
#include "data/index.h"
#include "data/overlength.h"

enum { TRI_PASS_WINDOW = 16 << 20 }; /* bytes that are looked at before their pages are let go */

struct tri_pass {
    const struct tri_data_files *files;
    const struct tri_sample_rules *rules;
    struct tri_length_rule rule;
    struct tri_index index;
    const struct tri_index_watch *watch; /* or NULL */
    int64_t units_in_file;               /* of struct tri_index_place */
    int64_t skip;                        /* units of this file that were seen before */
    struct tri_ahead *ahead;
    int64_t files_ahead; /* text files before this number were encoded */
    int format;          /* of the lines of this file; TRI_DATA_AUTO: none was read yet */
    double begin;
    uint64_t bytes_done, bytes_total;
};

/* How far it is, with so many bytes of the file at hand done. Short passes say nothing. */
void tri_pass_show(const struct tri_pass *pass, uint64_t bytes_in_file);

/* Let go of mapped pages that were looked at: they must not count as memory of this process. */
void tri_pass_forget(const struct tri_map *map, size_t from, size_t to);

/* A bad sample ends the pass with its place (file and line or document), or is counted. */
enum tri_status tri_pass_leave_out(struct tri_pass *pass, uint32_t file, int64_t line,
                                   enum tri_status status);

/* Add a sample and show it to whoever watches. A bad one is none. */
enum tri_status tri_pass_add(struct tri_pass *pass, const struct tri_sample *sample,
                             struct tri_record record, int64_t line);

/* All samples of a file. */
enum tri_status tri_pass_lines(struct tri_pass *pass, uint32_t file, const struct tri_map *map);
enum tri_status tri_pass_text(struct tri_pass *pass, uint32_t file, const struct tri_map *map);
enum tri_status tri_pass_set(struct tri_pass *pass, uint32_t number);

#endif
