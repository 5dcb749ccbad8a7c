/* The checkpoints in an output folder, by name. */
#ifndef TRI_TRAIN_CHECKPOINT_LIST_H
#define TRI_TRAIN_CHECKPOINT_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { TRI_CHECKPOINT_PATH = 4096 };

/* out (TRI_CHECKPOINT_PATH) = FOLDER/NAME, or FOLDER/checkpoint-<step><suffix> when name is NULL.
 */
enum tri_status tri_checkpoint_path(char *out, const char *folder, const char *name, int64_t step,
                                    const char *suffix);

/* Steps of the complete checkpoints in a folder, ascending; the caller frees *steps. With `clean`
 * what interrupted saves left is removed. */
enum tri_status tri_checkpoint_list(const char *folder, bool clean, int64_t **steps,
                                    int64_t *count);

#endif
