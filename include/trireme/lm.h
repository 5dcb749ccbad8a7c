/* A Hugging Face language model whose loss and gradients one call computes: for a training loop
 * that has its own data, its own optimizer or its own schedule.
 *
 *   per step   tri_lm_add (each micro-batch), tri_lm_gradients, then either tri_lm_update, or an
 *              update of one's own over tri_lm_next_run and tri_lm_updated
 *
 * Loss and gradients do not depend on how the work is split: gradients are sums over everything
 * (all micro-batches, shards and replicas) of d(loss sum)/N, N the trained tokens of the whole
 * step. */
#ifndef TRIREME_LM_H
#define TRIREME_LM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trireme/adapter.h"
#include "trireme/device.h"
#include "trireme/loss.h"
#include "trireme/mesh.h"
#include "trireme/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a layer keeps for its backward: less memory against more work, never other numbers. */
enum tri_lm_keep {
    TRI_LM_KEEP_INPUT,     /* its input (activation checkpointing) */
    TRI_LM_KEEP_ATTENTION, /* also q, k, v and the attention output */
    TRI_LM_KEEP_ALL,
};

/* AdamW, decoupled decay on parameters of two or more dimensions (Loshchilov & Hutter 2019). */
struct tri_lm_adamw {
    double beta1, beta2, eps, weight_decay;
};

struct tri_lm_config {
    struct tri_device *device;   /* outlives the model */
    const struct tri_mesh *mesh; /* NULL: one rank. Outlives the model */
    const char *model;           /* folder with config.json, or a hub id in the local cache */
    enum tri_dtype dtype;        /* CPU: TRI_F32 or TRI_F64; CUDA: TRI_BF16 or TRI_F32 */
    enum tri_lm_keep keep;
    int64_t mlp_tiles;   /* of a micro-batch; 0: ceil(T / E) */
    double loss_gb;      /* most GiB of logits at once; 0: 1/16 on the CPU, 1 on CUDA */
    int zero_stage;      /* 0 to 3: what all ranks divide among them (Rajbhandari et al. 2020) */
    size_t memory_bytes; /* most device memory; 0: what the machine has */
    bool forward_only;   /* no gradients */
    const struct tri_lm_adamw *adamw; /* NULL: no moments are kept, the caller updates */
};

struct tri_lm; /* opaque */

/* Collective over the mesh, as are the calls below but where they say otherwise. Ranks that differ
 * in the model or in how it is trained fail here, all of them. Weights are not set yet. */
enum tri_status tri_lm_open(const struct tri_lm_config *config, struct tri_lm **out);
void tri_lm_close(struct tri_lm *lm); /* NULL is allowed; not collective */

/* Read the weights of the folder, or draw them as Transformers does; they depend on nothing but the
 * seed. */
enum tri_status tri_lm_load(struct tri_lm *lm);
enum tri_status tri_lm_init(struct tri_lm *lm, uint64_t seed);
/* Write a folder that Transformers loads, in float32 (bfloat16 on CUDA). The first rank writes. */
enum tri_status tri_lm_save(struct tri_lm *lm, const char *folder);

/* Put a micro-batch into the step at hand; copied, so the adapter may go on. Not collective, but
 * all ranks of a sequence group add the shards of the same samples, with the chunk of the adapter.
 * A shard of one's own making needs shape, local, input_ids, shift_labels, trained, and the
 * documents. Rows of a shard with several are split each by itself, so a chunk divides S then. */
enum tri_status tri_lm_add(struct tri_lm *lm, const struct tri_shard *shard);

struct tri_lm_result {
    double loss;      /* mean over all trained tokens of the step; the same bits on all ranks */
    double grad_norm; /* over all parameters; 0 for an evaluation */
    int64_t tokens, trained;
};

/* Forward, loss and backward of all micro-batches added since the last time, reduced over all
 * ranks; replicas may have added different numbers, and none. TRI_INVALID when nothing is trained
 * on any rank. */
enum tri_status tri_lm_gradients(struct tri_lm *lm, struct tri_lm_result *out);

/* Forward and loss alone, summed over all ranks. With nothing trained the loss is 0. */
enum tri_status tri_lm_evaluate(struct tri_lm *lm, struct tri_lm_result *out);

/* One AdamW update from the gradients, scaled down to a norm of `clip` if it is larger (0: no
 * clipping). TRI_NONFINITE, with weights as they were, if loss or norm are not finite. */
enum tri_status tri_lm_update(struct tri_lm *lm, double lr, double clip);

/* Elements that this rank updates: with ZeRO 0 all, else its part. Runs of neighbours; padding
 * between parameters has gradient 0. Not collective. */
struct tri_lm_run {
    struct tri_tensor weights; /* (n) dtype of the model, to be written */
    struct tri_tensor grads;   /* (n) float32 (float64 with float64): gradients of the step */
    bool decay;                /* weight decay is usual here: a matrix */
};
/* *cursor starts as 0; false at the end. */
bool tri_lm_next_run(const struct tri_lm *lm, int *cursor, struct tri_lm_run *run);
/* After an update of one's own: all ranks get each other's parts. */
enum tri_status tri_lm_updated(struct tri_lm *lm);

/* Parameters of the model, for people. */
int64_t tri_lm_num_weights(const struct tri_lm *lm);

#ifdef __cplusplus
}
#endif

#endif
