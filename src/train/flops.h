/* What a step costs in floating-point operations: one multiply-add counts two. */
#ifndef TRI_TRAIN_FLOPS_H
#define TRI_TRAIN_FLOPS_H

#include "train/trainer.h"

/* Set model_flops and ran_flops.
 *   linear     2 * (weights of products) a token, forward; twice that backward
 *   attention  4 * Hq * D for each attended pair (query, key) and layer, forward; 2.5 times that
 *              backward (five products instead of two)
 * `model` is the classic count: backward is twice forward, nothing for recompute. `ran` counts what
 * the kernels did: the fifth product of the attention backward, and all that is computed again. */
void tri_step_flops(const struct tri_pass *pass, const struct tri_batch *batches, int64_t count,
                    struct tri_step_stats *stats);

#endif
