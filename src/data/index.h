/* Where every sample is and how long it is: the first pass over the data.
 *
 * Files are mapped and looked at once, from front to back, and let go again: an index costs
 * 32 bytes a sample (48 with rules->keep_counts), and never the size of the data. Every sample is
 * checked here, so that bad data stops a run before it starts and with the line that is wrong.
 *
 * With rules->skip_bad a bad sample is counted and passed over instead. All lines of a file have
 * one format, that of the first.
 *
 * Over-length policy, against max_length tokens:
 *   error     the default: the first sample that is too long is named, with the choices;
 *   drop      the sample is left out;
 *   truncate  its first max_length tokens are kept; an error if that leaves nothing to train;
 *   split     it is cut every max_length tokens into pieces that are documents of their own: each
 *             begins at position 0 and does not see the others. Every token is kept, except that a
 *             piece with nothing to train (such as a single token) is left out.
 * What is lost is counted in the statistics. */
#ifndef TRI_DATA_INDEX_H
#define TRI_DATA_INDEX_H

#include "base/status.h"
#include "data/files.h"
#include "data/sample.h"
#include "data/stats.h"

struct tri_record {
    uint64_t offset; /* of the sample in its file */
    uint64_t bytes;  /* of the sample */
    int64_t tokens;  /* of this piece */
    uint32_t file;
    uint32_t piece; /* it begins at token piece * max_length of the sample */
};

struct tri_index {
    struct tri_record *records;
    struct tri_record_counts *counts; /* (count) of each record; NULL: rules->keep_counts is not */
    bool keep_counts;
    int64_t count;
    int64_t capacity;
    struct tri_data_stats stats; /* all but sequences and packing */
    uint64_t identity;           /* of the files' names and contents */
};

/* How far a pass over the data has come. */
struct tri_index_place {
    int64_t file;  /* of the files in their order */
    int64_t units; /* of that file that are done: lines that are not blank, or documents */
    uint64_t identity;
    struct tri_data_stats stats;
};

/* Somebody who sees every sample after it was added, in order. */
struct tri_index_watch {
    void *ctx;
    enum tri_status (*see)(void *ctx, const struct tri_sample *sample,
                           const struct tri_record *record, int64_t line,
                           const struct tri_index_place *place);
    /* Samples before this place were seen in an earlier run: they are neither read nor indexed. All
     * zero, with the identity TRI_HASH_START, is the beginning. */
    struct tri_index_place start;
};

/* `max_length` 0: no sample is too long, and stats.max_length becomes that of the longest.
 * `overlength` is an enum tri_overlength. */
enum tri_status tri_index_open(const struct tri_data_files *files,
                               const struct tri_sample_rules *rules, int64_t max_length,
                               int overlength, struct tri_index *out);

/* The same under the eyes of `watch`. */
enum tri_status tri_index_watch(const struct tri_data_files *files,
                                const struct tri_sample_rules *rules, int64_t max_length,
                                int overlength, const struct tri_index_watch *watch,
                                struct tri_index *out);
void tri_index_close(struct tri_index *index);

#endif
