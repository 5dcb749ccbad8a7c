/* What a step takes, found by running it with an arena that only counts. */
#ifndef TRI_TRAIN_MEMORY_H
#define TRI_TRAIN_MEMORY_H

#include "train/trainer.h"

struct tri_memory_plan {
    size_t weights, gradients, optimizer; /* bytes that live as long as the run */
    size_t step;                          /* most bytes at once beside them */
    size_t total;
    uint64_t trace; /* of the allocations of one step */
};

/* Count the memory of a step over `micro_batches` micro-batches of `tokens` tokens each. `config`
 * is what tri_trainer_open will get; its capacity is not looked at. Forward only when it has no
 * optimizer. */
enum tri_status tri_memory_count(const struct tri_trainer_config *config, int64_t tokens,
                                 int64_t micro_batches, struct tri_memory_plan *out);

/* Run one step on made-up documents of `tokens` tokens (all of id 0, all trained) at learning rate
 * zero, and give the trace of its allocations. Counting and rehearsing share it. */
enum tri_status tri_memory_step(struct tri_trainer *trainer, int64_t tokens, int64_t micro_batches,
                                uint64_t *trace);

#endif
