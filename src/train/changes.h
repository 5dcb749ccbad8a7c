/* Files of a folder of ours that are not what was saved. */
#ifndef TRI_TRAIN_CHANGES_H
#define TRI_TRAIN_CHANGES_H

#include "ckpt/sums.h"

/* Warn of each file of a checkpoint's folder that differs from its hash in `sums` (NULL: none do),
 * but for those that `is_read` names, which their readers compare. People change such files (the
 * tokenizer, how to generate), so that is no error. `so` ends the warning: what follows. */
enum tri_status tri_warn_of_changes(struct tri_sums *sums, const char *folder,
                                    bool (*is_read)(const char *name), const char *so);

/* The same of a checkpoint that a run starts from or evaluates: config.json, tokenizer, template.
 * Its weights are compared where they are read. */
enum tri_status tri_warn_of_changed_model(const char *folder);

#endif
