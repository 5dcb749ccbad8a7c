/* Private to api: shards of samples as the micro-batches of a trainer. */
#ifndef TRI_API_LM_BATCH_H
#define TRI_API_LM_BATCH_H

#include "data/batch.h"
#include "trireme/adapter.h"

/* Batches are used again from step to step. */
struct tri_lm_batches {
    struct tri_batch *list; /* (room) of which `count` belong to the step at hand */
    int64_t count, room;
};

/* Copy a shard. The batch describes the whole sample, but has ids and labels of this rank alone:
 * a pass reads no others. */
enum tri_status tri_lm_batches_add(struct tri_lm_batches *batches, const struct tri_shard *shard,
                                   int64_t vocab, int ranks, int rank);
void tri_lm_batches_close(struct tri_lm_batches *batches);

#endif
