/* A model being trained: weights, gradients, optimizer state, and the one step that advances them.
 *
 * It knows nothing of files, recipes or the terminal: `train`, `check`, `rehearse` and tests all
 * drive the same object. */
#ifndef TRI_TRAIN_TRAINER_H
#define TRI_TRAIN_TRAINER_H

#include "base/arena.h"
#include "base/job.h"
#include "optim/optimizer.h"
#include "pass/pass.h"

struct tri_trainer {
    const struct tri_model *model;
    struct tri_exec exec; /* exec.arena holds everything below */
    enum tri_dtype act, stat;
    struct tri_zero *zero; /* weights and gradients, and which rank holds them */
    struct tri_optimizer optimizer;
    struct tri_pass *pass;
    struct tri_pass *eval_pass; /* of evaluations: the same one, or one with whole sequences */
    double clip;                /* largest global gradient norm; 0: no clipping */
    int threads;                /* that draw weights; 0: as many as there are cores */
    struct tri_comm *world;     /* all ranks; NULL: one rank. Not owned */
    struct tri_comm *sequence;  /* those that share this rank's sequences; NULL: nobody */
};

struct tri_trainer_config {
    const struct tri_model *model;
    struct tri_backend *backend;
    enum tri_dtype act;              /* dtype of weights and activations */
    const struct tri_memory *memory; /* NULL: the backend's; the counting memory only counts */
    size_t capacity;                 /* most bytes of backend memory */
    const struct tri_pass_options *pass;
    const struct tri_optim_options *optimizer; /* NULL: no moments, and no gradients unless ... */
    bool gradients;                            /* ... somebody else updates the weights */
    double clip;
    struct tri_pass_progress progress;
    struct tri_comm *world, *sequence; /* NULL: one rank */
    int zero_stage;                    /* 0 to 3: what the ranks of the world divide among them */
    bool eval_whole;                   /* an evaluation has its sequences whole on each rank */
};

/* Take all memory that lives as long as the run. Weights are undefined until loaded or drawn.
 * The model and the backend must outlive the trainer. */
enum tri_status tri_trainer_open(const struct tri_trainer_config *config, struct tri_trainer **out);
void tri_trainer_close(struct tri_trainer *trainer);

/* Draw random weights as Transformers does: normal with standard deviation arch.init_range for
 * matrices, ones for norms, zeros for biases. A weight depends only on seed, parameter and place.
 * draw.c. */
enum tri_status tri_trainer_init(struct tri_trainer *trainer, uint64_t seed, struct tri_job *job);

/* Set after weights were loaded through tri_flat_sink: makes the master copy equal to them. */
enum tri_status tri_trainer_weights_loaded(struct tri_trainer *trainer);

struct tri_step_stats {
    double loss;      /* mean over trained tokens of the whole step */
    double grad_norm; /* before clipping */
    double lr;
    int64_t tokens;
    int64_t trained;
    double forward_s, backward_s, update_s; /* seconds; loss counts as backward */
    double model_flops; /* forward and backward, over attended pairs, no recompute */
    double ran_flops;   /* what ran, recompute included */
};

/* One optimizer step over `count` micro-batches (step.c). TRI_NONFINITE leaves weights and moments
 * as they were. */
enum tri_status tri_train_step(struct tri_trainer *trainer, const struct tri_batch *batches,
                               int64_t count, double lr, struct tri_step_stats *out);

/* The same up to the gradients: forward, loss, backward, norm, no update. */
enum tri_status tri_train_gradients(struct tri_trainer *trainer, const struct tri_batch *batches,
                                    int64_t count, struct tri_step_stats *out);

/* The update alone, from the gradients that `stats` tells of; it is given lr and update_s. */
enum tri_status tri_train_update(struct tri_trainer *trainer, double lr,
                                 struct tri_step_stats *stats);

/* Summed loss and trained tokens of a batch over its sequence group, forward only. With eval_whole
 * the batch is this rank's alone. In stage 3 of ZeRO all ranks of the world call it equally often:
 * one that has nothing left gives an empty batch. */
enum tri_status tri_train_eval(struct tri_trainer *trainer, const struct tri_batch *batch,
                               double *loss_sum, int64_t *trained);

/* ---- rows of buffers, for ckpt/hf.h -------------------------------------------------------------
 */

/* One of the trainer's buffers seen through tri_rows_sink and tri_rows_source. */
struct tri_flat {
    struct tri_zero *zero;
    struct tri_zero_buffer buffer;
    int reader; /* the rank that rows are read for; -1: every rank */
};
struct tri_flat tri_flat_weights(struct tri_trainer *trainer); /* the master copy if there is one */
struct tri_flat tri_flat_used_weights(struct tri_trainer *trainer); /* what layers compute with */
struct tri_flat tri_flat_grads(struct tri_trainer *trainer);
struct tri_flat tri_flat_moment(struct tri_trainer *trainer, int which); /* 0: first, 1: second */

/* `ctx` is a struct tri_flat. Rows are float32 in host memory. Where ranks hold parts of a buffer
 * (tri_zero_is_shared) all of them call the source for the same rows in the same order. */
enum tri_status tri_flat_sink(void *ctx, int param, int64_t row, int64_t rows, const float *data);
enum tri_status tri_flat_source(void *ctx, int param, int64_t row, int64_t rows, float *data);

/* What ranks that read nothing do while the first one reads all Hugging Face tensors in pieces
 * (tri_hf_save): hand over the parts that they hold. */
enum tri_status tri_flat_give(struct tri_flat *flat);

#endif
