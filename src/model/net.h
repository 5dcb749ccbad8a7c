/* What every layer call needs and no layer call changes: the model, its weights, where to compute.
 *
 * Letters: S tokens of the sequence, n tokens of a chunk, t of them on this rank, E hidden, Hq/Hk
 * query and key heads, hq/hk those of this rank, D head size, F MLP width. Token-wise work has t
 * rows and all heads, attention n rows and this rank's heads; with one rank they are the same. */
#ifndef TRI_MODEL_NET_H
#define TRI_MODEL_NET_H

#include "attn/attention.h"
#include "attn/exchange.h"
#include "model/arch.h"

struct tri_net {
    struct tri_exec exec;
    const struct tri_model *model;
    const struct tri_batch *batch; /* the whole sequence */
    struct tri_store *store;
    struct tri_exchange exchange; /* sequence group and layout of the batch at work */
    int64_t num_rows;             /* T: tokens of the batch on this rank */
    enum tri_dtype act;           /* activations and weights */
    enum tri_dtype stat; /* statistics and gradients of parameters: float32, or float64 with it */
    /* (model->num_units) where the first element of each unit is now, act and stat; whoever calls
     * layers sees to it that their unit is there. */
    void *const *weights;
    void *const *grads;
    struct tri_view rope; /* (T, R) cos and sin of this rank's positions, stat */
    int kv_slot;          /* (S, 2*hk*D) act: keys and values of the layer at work */
    int64_t mlp_tiles;    /* of all T rows; a chunk takes its share */
    int64_t loss_rows;    /* most rows of logits at once */
    bool deterministic;
};

/* Views of a layer's parameter and of its gradient; no tensor when the family has none. */
struct tri_view tri_net_weight(const struct tri_net *net, int64_t layer, enum tri_role role);
struct tri_view tri_net_grad(const struct tri_net *net, int64_t layer, enum tri_role role);

/* Scratch from the arena: (rows, cols) of `dtype`. */
enum tri_status tri_net_scratch(const struct tri_net *net, const char *name, enum tri_dtype dtype,
                                int64_t rows, int64_t cols, struct tri_view *out);

/* How many of `mlp_tiles` fall to rows of a chunk: at least one. */
int64_t tri_net_mlp_tiles(const struct tri_net *net, int64_t rows);

/* ---- attention half of a block (attention.c) ---------------------------------------------------
 */

/* What a chunk's attention leaves behind for its backward; each view may be absent while it is not
 * kept. q is after QK-norm and RoPE; q_raw is before, and only a model with QK-norm needs it.
 * With one rank o and o_heads are the same memory. */
struct tri_attn_kept {
    struct tri_view q;       /* (n, hq*D) act */
    struct tri_view q_raw;   /* (t, Hq*D) act */
    struct tri_view o;       /* (t, Hq*D) act: what the output product reads */
    struct tri_view o_heads; /* (n, hq*D) act: what attention wrote */
    struct tri_view lse;     /* (n, hq) stat */
};

enum tri_projection { TRI_PROJECT_QUERIES = 1, TRI_PROJECT_KEYS = 2 };

/* h(t,E) = norm1(x). */
enum tri_status tri_attn_norm(const struct tri_net *net, int64_t layer, struct tri_view h,
                              struct tri_view x);

/* Queries into kept->q (and q_raw), keys and values into the store slot, from h(t,E), whichever of
 * `what` is asked for; both together take one exchange. k_raw(t, Hk*D) receives the keys before
 * QK-norm and may be absent. */
enum tri_status tri_attn_project(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                 int what, const struct tri_attn_kept *kept, struct tri_view h,
                                 struct tri_view k_raw);

/* kept->o, o_heads and lse from kept->q by attention. */
enum tri_status tri_attn_attend(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                const struct tri_attn_kept *kept);

/* mid(t,E) = x + o Wo^T + bo. mid may be x. */
enum tri_status tri_attn_output(const struct tri_net *net, int64_t layer, struct tri_view mid,
                                struct tri_view x, struct tri_view o);

/* dh(t,E) = gradient of norm1's output, from dmid(t,E); parameter gradients +=.
 * dkv(S, 2*hk*D) stat carries what later chunks contributed; this chunk's rows are consumed.
 * k_raw(t, Hk*D) is absent without QK-norm. o_heads may be absent with several ranks: it is made
 * from o by the exchange that carries the gradient. */
enum tri_status tri_attn_backward(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                  struct tri_view dh, struct tri_view dkv, struct tri_view dmid,
                                  struct tri_view h, struct tri_view k_raw,
                                  const struct tri_attn_kept *kept);

/* dx += gradient through norm1, from dh. */
enum tri_status tri_attn_norm_backward(const struct tri_net *net, int64_t layer, struct tri_view dx,
                                       struct tri_view dh, struct tri_view x);

/* ---- MLP half of a block (mlp.c)
 * ----------------------------------------------------------------- */

/* y += mlp(norm2(x)), tile by tile; y may be x. `kept` (n, 2F or F) receives the first product, or
 * is absent. */
enum tri_status tri_mlp_forward(const struct tri_net *net, int64_t layer, struct tri_view y,
                                struct tri_view x, struct tri_view kept);

/* dy(n,E) += gradient through the MLP and norm2: on entry dy is the gradient of y, on return that
 * of the sum y = (residual) + mlp(norm2(x)) with respect to residual and x taken together. */
enum tri_status tri_mlp_backward(const struct tri_net *net, int64_t layer, struct tri_view dy,
                                 struct tri_view x, struct tri_view kept);

/* ---- ends of the model (loss.c, embed.c)
 * ---------------------------------------------------------- */

/* x(n,E) = embedding of ids (n int32 in backend memory). */
enum tri_status tri_embed(const struct tri_net *net, struct tri_view x, const int32_t *ids);
enum tri_status tri_embed_backward(const struct tri_net *net, struct tri_view dx,
                                   const int32_t *ids);

/* Final norm, logits and cross entropy in tiles of rows; the full (n,V) logits never exist.
 * *loss_sum (backend memory) += sum over trained rows. With dx present, dx(n,E) = gradient of
 * scale * loss_sum, and parameter gradients += . labels: n int32 in backend memory. */
enum tri_status tri_loss(const struct tri_net *net, double scale, double *loss_sum,
                         struct tri_view dx, struct tri_view x, const int32_t *labels);

/* logits(n,V) stat or act, for tests and `check`: only when they are small. */
enum tri_status tri_logits(const struct tri_net *net, struct tri_view logits, struct tri_view x);

#endif
