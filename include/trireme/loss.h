/* Loss as a pair: a sum and a count, never a mean of means.
 *
 * A shard, a replica, a micro-step or a tile without a trained token has count 0 and sum 0, and
 * changes nothing. The gradient of the mean over everything is that of each part's sum times
 * 1 / count of everything, so the count is agreed first (tri_loss_reduce on {0, count}). */
#ifndef TRIREME_LOSS_H
#define TRIREME_LOSS_H

#include <stdint.h>

#include "trireme/comm.h"
#include "trireme/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tri_loss_sum {
    double sum;    /* of -log p over trained tokens */
    int64_t count; /* trained tokens */
};

/* Trained tokens (labels that are not negative) of n labels in host memory. */
int64_t tri_count_trained(const int32_t *labels, int64_t n);

/* a += b: micro-steps, tiles. */
void tri_loss_add(struct tri_loss_sum *a, struct tri_loss_sum b);

/* The sum over all ranks of `comm`, in their order: all get the same bits. NULL: one rank. */
enum tri_status tri_loss_reduce(struct tri_comm *comm, struct tri_loss_sum *loss);

/* sum / count, and 0 when nothing was trained. */
double tri_loss_mean(struct tri_loss_sum loss);

#ifdef __cplusplus
}
#endif

#endif
