/* Tiles: token-wise work a few rows at a time, so that its wide inner tensors never exist for all
 * rows (Bekman et al. 2025, "Arctic Long Sequence Training").
 *
 * There are always exactly `tiles` tiles, and their sizes differ by at most one; with more tiles
 * than rows some are empty. What a forward computed inside a tile is not kept: the backward
 * computes it again. Gradients of parameters accumulate (+=), in float32 (float64 with float64). */
#ifndef TRIREME_TILED_H
#define TRIREME_TILED_H

#include <stdint.h>

#include "trireme/activation.h"
#include "trireme/comm.h"
#include "trireme/device.h"
#include "trireme/loss.h"
#include "trireme/status.h"
#include "trireme/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- any function of rows ----------------------------------------------------------------------
 */

/* A tensor whose dimension `dim` is cut into tiles. */
struct tri_tiled_input {
    struct tri_tensor value;
    struct tri_tensor grad; /* same shape; absent: needs no gradient */
    int dim;
};

/* What to do with what the tiles give. */
enum tri_tiled_reduction {
    TRI_TILED_NONE, /* each tile writes its part of the output tensor */
    TRI_TILED_SUM,  /* each tile gives a sum and a count; the result is the sum */
    TRI_TILED_MEAN, /* the sum over the count of all tiles: not a mean of means */
};

/* One tile. Tensors are cut to it; those of the backward are absent in a forward and where no
 * gradient is wanted. */
struct tri_tile {
    int64_t index, begin, count;    /* tile number, its rows [begin, begin + count) */
    const struct tri_tensor *value; /* (num_inputs) */
    const struct tri_tensor *grad;  /* (num_inputs) to be written (=) by the backward */
    struct tri_tensor output;       /* TRI_TILED_NONE, forward: to be written */
    struct tri_tensor output_grad;  /* TRI_TILED_NONE, backward: gradient of the output */
    double upstream;                /* sum and mean, backward: d result / d (sum of this tile) */
};

/* Called once for each tile in order, also for empty ones, since it may take part in collectives.
 * A sum or mean adds to *total. Whatever else it needs (weights, gradients of weights, which it
 * accumulates) comes by `ctx`, whole. */
typedef enum tri_status tri_tile_forward(void *ctx, const struct tri_tile *tile,
                                         struct tri_loss_sum *total);
typedef enum tri_status tri_tile_backward(void *ctx, const struct tri_tile *tile);

struct tri_tiled {
    int64_t rows;  /* size of every input's and the output's cut dimension */
    int64_t tiles; /* at least 1 */
    enum tri_tiled_reduction reduction;
    const struct tri_tiled_input *inputs;
    int num_inputs;                /* up to TRI_TILED_MAX_INPUTS */
    struct tri_tiled_input output; /* TRI_TILED_NONE: any shape; `grad` is its gradient */
    tri_tile_forward *forward;
    tri_tile_backward *backward;
    void (*done)(void *ctx); /* after the last tile of a backward: gradients of parameters are
                                complete, to be handed over once; may be NULL */
    void *ctx;
};

enum { TRI_TILED_MAX_INPUTS = 8 };

/* Nothing is written to gradients. `total` receives sum and count over all tiles (zeros without a
 * reduction); the result of a mean is tri_loss_mean(*total). */
enum tri_status tri_tiled_forward(const struct tri_tiled *op, struct tri_loss_sum *total);

/* Gradients of the inputs from that of the result: `upstream` for a sum or a mean (which also needs
 * the forward's total), the output's `grad` without a reduction. May run again: nothing is used up.
 */
enum tri_status tri_tiled_backward(const struct tri_tiled *op, double upstream,
                                   const struct tri_loss_sum *total);

/* The same number of tiles on all ranks: the largest that any of them asks for. Once a step, where
 * tiles take part in collectives. Collective; NULL: one rank. */
enum tri_status tri_tiles_agree(struct tri_comm *comm, int64_t *tiles);

/* ---- MLP ---------------------------------------------------------------------------------------
 */

/* y = act(x in_w^T + in_b) out_w^T + out_b, or with twice as many rows in in_w (gate, then up)
 * y = (act(gate) * up) out_w^T + out_b. Everything of one dtype; a gradient that is absent belongs
 * to a frozen parameter. */
struct tri_tiled_mlp {
    enum tri_activation activation;
    int64_t tiles;                                      /* 0: ceil(rows / E), as the paper has it */
    struct tri_tensor in_w;                             /* (F, E), or (2F, E): gate, then up */
    struct tri_tensor in_b;                             /* (F) or (2F), or absent */
    struct tri_tensor out_w;                            /* (E, F) */
    struct tri_tensor out_b;                            /* (E), or absent */
    struct tri_tensor d_in_w, d_in_b, d_out_w, d_out_b; /* a bias's goes with its weight's */
};

/* y(..., E) = mlp(x(..., E)): up to 4 dimensions, any strides. */
enum tri_status tri_tiled_mlp_forward(struct tri_device *device, const struct tri_tiled_mlp *mlp,
                                      struct tri_tensor y, struct tri_tensor x);

/* dx = gradient (or absent), from dy and x; parameter gradients +=. */
enum tri_status tri_tiled_mlp_backward(struct tri_device *device, const struct tri_tiled_mlp *mlp,
                                       struct tri_tensor dx, struct tri_tensor dy,
                                       struct tri_tensor x);

/* ---- logits and loss ---------------------------------------------------------------------------
 */

/* Cross entropy of logits = x weight^T, where the (rows, V) logits never exist. */
struct tri_fused_loss {
    struct tri_tensor weight;   /* (V, E); the embedding itself when they are tied */
    struct tri_tensor d_weight; /* (V, E) +=; absent: frozen */
    int64_t max_rows;           /* most rows of logits at once; 0: 64 MiB of them */
};

/* *loss = summed loss and number of trained rows of x(..., E). `labels` are one int32 a row, in
 * the order of rows, already shifted, in device memory; a negative one (-100) is not trained, the
 * others are below V (checked here, and in the backward where it waits anyway). Waits. Nothing else
 * is written. */
enum tri_status tri_fused_loss_forward(struct tri_device *device, const struct tri_fused_loss *op,
                                       struct tri_tensor x, const int32_t *labels,
                                       struct tri_loss_sum *loss);

/* The same, and the gradient of upstream * sum at once: dx = (or absent), d_weight +=. With
 * upstream 1/N, N the trained tokens of the whole step, a training step needs no separate forward.
 * `loss` may be NULL; then nothing waits. */
enum tri_status tri_fused_loss_backward(struct tri_device *device, const struct tri_fused_loss *op,
                                        double upstream, struct tri_tensor dx, struct tri_tensor x,
                                        const int32_t *labels, struct tri_loss_sum *loss);

#ifdef __cplusplus
}
#endif

#endif
