/* The two passes over layers and chunks: what is kept on the way up, how it is rebuilt on the way
 * down.
 *
 * For one micro-batch:  begin -> forward -> loss -> backward -> end
 * For evaluation:       begin -> forward -> loss (without gradient) -> end
 *
 * Whatever is kept lives in the store between begin and end; everything else is scratch. */
#ifndef TRI_PASS_PASS_H
#define TRI_PASS_PASS_H

#include "model/block.h"
#include "pass/options.h"
#include "zero/zero.h"

/* Told before each unit of work (a chunk of a layer), so that long steps are not silent. */
struct tri_pass_progress {
    void *ctx;
    void (*report)(void *ctx, const char *phase, int64_t layer, int64_t chunk, double part_done);
};

struct tri_pass {
    /* Set by tri_pass_open. */
    struct tri_net net;
    struct tri_zero *zero; /* told of every unit before and after its use */
    enum tri_remat remat;
    int64_t chunk_size; /* 0: the whole sequence */
    int64_t mlp_tiles;  /* 0: ceil(T / E) */
    bool tiled_mlp;
    struct tri_pass_progress progress;
    double *loss_sum; /* in backend memory, over the run's life */

    /* Set by tri_pass_begin for one micro-batch. */
    bool training;
    size_t mark;
    int32_t *ids;      /* (S) in backend memory */
    int32_t *labels;   /* (S) in backend memory */
    struct tri_view d; /* (S, E) gradient of the residual stream; training only */
    int *slots;        /* (L + 1) * SLOTS_OF_LAYER, see pass.c */
    double units_done, units;
};

struct tri_pass_config {
    struct tri_exec exec;
    const struct tri_model *model;
    enum tri_dtype act, stat;
    struct tri_zero *zero;     /* weights and gradients; must outlive the pass */
    struct tri_comm *sequence; /* the sequence group; NULL: one rank */
    const struct tri_pass_options *options;
    struct tri_pass_progress progress; /* report may be NULL */
};

enum tri_status tri_pass_open(const struct tri_pass_config *config, struct tri_pass **out);
void tri_pass_close(struct tri_pass *pass);

/* Take memory for a batch (which must live until end), upload it, build the rotary table. */
enum tri_status tri_pass_begin(struct tri_pass *pass, const struct tri_batch *batch, bool training);
enum tri_status tri_pass_forward(struct tri_pass *pass);
/* *pass->loss_sum += the summed loss of this rank's tokens. When training, also the gradient of
 * scale * sum at the top of the stack. */
enum tri_status tri_pass_loss(struct tri_pass *pass, double scale);
enum tri_status tri_pass_backward(struct tri_pass *pass);
void tri_pass_end(struct tri_pass *pass);

/* The hidden states after the last layer, (T, E), between forward and end. */
enum tri_status tri_pass_top(struct tri_pass *pass, struct tri_view *top);

/* logits(T, V) of this rank's tokens, between forward and end: for `check`, while they are small.
 */
enum tri_status tri_pass_logits(struct tri_pass *pass, struct tri_view logits);

/* Set the running loss to zero, and read it. */
enum tri_status tri_pass_loss_reset(struct tri_pass *pass);
enum tri_status tri_pass_loss_read(struct tri_pass *pass, double *sum);

#endif
