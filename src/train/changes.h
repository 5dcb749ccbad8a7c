/* Files of a folder of ours that are not what was saved. People change some of them (the tokenizer,
 * how to generate), so a difference is a warning and no error. Weights and what a resume reads
 * besides are compared where they are read. */
#ifndef TRI_TRAIN_CHANGES_H
#define TRI_TRAIN_CHANGES_H

#include "ckpt/sums.h"

/* Of a checkpoint that a run goes on from, with its hashes (NULL: nothing differs). */
enum tri_status tri_warn_of_changes(struct tri_sums *sums, const char *folder);

/* Of a checkpoint as a model to start from or to evaluate: also config.json. */
enum tri_status tri_warn_of_changed_model(const char *folder);

#endif
