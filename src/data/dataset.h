/* The data of a run: files, indexed once, served as sequences.
 *
 * Sequence i of epoch e is a pure function of the files, the options and the seed. Nothing depends
 * on what was read before, so a run resumes at a position and sees what it would have seen. */
#ifndef TRI_DATA_DATASET_H
#define TRI_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "data/batch.h"
#include "data/options.h"
#include "data/stats.h"
#include "text/tokenizer.h"

struct tri_dataset;

/* What the data is made for. */
struct tri_data_target {
    const struct tri_tokenizer *tokenizer; /* NULL if there is no text; outlives the dataset */
    int64_t vocab;                         /* ids of the model */
    const char *model_folder;              /* has the chat template; NULL: there is none */
    uint64_t seed;                         /* the run's, for when data.seed is -1 */
    bool shared;                           /* several ranks read it, and wait for each other */
};

/* Find, check and index the files of `sources` (data.sources or data.eval_sources). Every bad
 * sample is an error here, with file and line. */
enum tri_status tri_dataset_open(const struct tri_data_options *options, char *const *sources,
                                 int64_t num_sources, const struct tri_data_target *target,
                                 struct tri_dataset **out);
void tri_dataset_close(struct tri_dataset *dataset); /* NULL is allowed */

/* Counts, and what the over-length policy took away. */
const struct tri_data_stats *tri_dataset_stats(const struct tri_dataset *dataset);

/* Of the first epoch, as often as data.weights say. Its samples and tokens are among the counts. */
struct tri_record_counts tri_dataset_epoch(const struct tri_dataset *dataset);

/* Print them through the log, lost tokens as a warning. */
void tri_dataset_report(const struct tri_dataset *dataset, const char *title);

/* Hash of all that decides which tokens come in which order: names and contents of the files, the
 * tokenizer, the options and the seed. Where the files lie does not matter. */
uint64_t tri_dataset_identity(const struct tri_dataset *dataset);

/* Every sample, or piece of one, and how long it is. */
struct tri_index;
const struct tri_index *tri_dataset_index(const struct tri_dataset *dataset);

/* Tokens of the longest sequence there can be: room to reserve for one. */
int64_t tri_dataset_max_sequence(const struct tri_dataset *dataset);

/* Sequences of an epoch, at least 1. With packing this takes a pass over the lengths, unless the
 * epoch is the one last read from. */
int64_t tri_dataset_sequences(const struct tri_dataset *dataset, int64_t epoch);

/* Do epochs differ in their number of sequences? Then each has to be counted. */
bool tri_dataset_is_packed(const struct tri_dataset *dataset);

/* Append sequence `index` of `epoch` to a batch with room for it (max_tokens). The batch stays
 * finished: labels shifted, documents and trained tokens counted, its identity mixed with the
 * numbers of the samples. Not for several threads at once. */
enum tri_status tri_dataset_read(struct tri_dataset *dataset, int64_t epoch, int64_t index,
                                 struct tri_batch *into);

#endif
