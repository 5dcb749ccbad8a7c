/* The ops contract: everything a model needs from a machine.
 *
 * A backend is one table of functions that starts complete: plain reference kernels fill every
 * entry (they are the oracle), faster kernels overwrite them in one visible place. No entry is ever
 * NULL, so nothing above this line branches on the backend.
 *
 * Rules for every op
 * 1. The stream comes first, then the op's constants, destinations, sources.
 * 2. Work is queued on the stream; only `sync` and `read_scalars` wait. The CPU runs at once.
 * 3. Nothing is allocated. An op that needs room says how much (`attn_workspace`) and gets it.
 * 4. `=` in a comment overwrites, `+=` accumulates. Gradients of parameters always accumulate, in
 *    float32 (float64 when everything is float64).
 * 5. Any number of rows is allowed, 0 included. Last dimensions are contiguous; row strides are
 *    whatever the view says. All counts and offsets are 64 bits wide.
 * 6. "act" marks tensors of the activation dtype: float32 or float64 on the CPU, float32 or
 *    bfloat16 on CUDA. Weights have the same dtype, statistics are float32 (float64 with float64).
 */
#ifndef TRI_BACKEND_BACKEND_H
#define TRI_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "tensor/view.h"
#include "trireme/activation.h"

struct tri_stream; /* a queue of work of one backend; opaque */

enum tri_norm_kind { TRI_NORM_RMS, TRI_NORM_LAYER };

/* y = w * x / sqrt(mean(x^2) + eps)            RMSNorm, Zhang & Sennrich 2019
 * y = w * (x - mean) / sqrt(var + eps) + b     LayerNorm, Ba et al. 2016 */
struct tri_norm {
    enum tri_norm_kind kind;
    double eps;
};

/* Which keys a query may see: causal, inside its own document, and at most `window` tokens back.
 *
 * Queries are global tokens [q_begin, q_begin + Tq), keys are global tokens [k_begin, k_begin +
 * Tk). Query i sees key j when doc(i) == doc(j), j <= i, and (window == 0 or i - j < window). A
 * query that sees no key of the range gives o = 0 and lse = -infinity. */
struct tri_attn {
    double scale; /* of the scores, usually 1/sqrt(D) */
    int64_t q_begin;
    int64_t k_begin;
    int64_t window;           /* 0: no limit; otherwise the token itself and window-1 before it */
    const int64_t *doc_begin; /* num_docs + 1 ascending token indices in host memory, from 0 to S */
    int64_t num_docs;
    bool deterministic; /* equal inputs give equal bits */
};

struct tri_adamw {
    double lr;
    double beta1;
    double beta2;
    double eps;
    double weight_decay; /* decoupled: p -= lr * weight_decay * p (Loshchilov & Hutter 2019) */
    int64_t step;        /* 1 for the first update: bias corrections are 1 - beta^step */
    double grad_scale;   /* multiplies the gradient first: the clipping factor */
};

struct tri_ops {
    /* ---- moving and filling ------------------------------------------------------------------ */

    /* dst = src, shapes equal, any two floating dtypes (round to nearest even), or equal dtypes. */
    enum tri_status (*copy)(struct tri_stream *s, struct tri_view dst, struct tri_view src);
    /* dst = 0 */
    enum tri_status (*zero)(struct tri_stream *s, struct tri_view dst);
    /* dst += src, any floating dtypes. */
    enum tri_status (*add)(struct tri_stream *s, struct tri_view dst, struct tri_view src);
    /* Host memory to backend memory and back; contiguous, equal dtype and count. Download waits. */
    enum tri_status (*upload)(struct tri_stream *s, struct tri_view dst, const void *host);
    enum tri_status (*download)(struct tri_stream *s, void *host, struct tri_view src);
    /* Copy n doubles that ops accumulated in backend memory to the host, after all queued work. */
    enum tri_status (*read_scalars)(struct tri_stream *s, double *host, const double *src,
                                    int64_t n);
    /* Wait until everything queued has run. */
    enum tri_status (*sync)(struct tri_stream *s);

    /* ---- token-wise layers ------------------------------------------------------------------- */

    /* y(T,E) act = table(V,E)[ids[t]]; ids are T int32 in backend memory, all within [0, V). */
    enum tri_status (*embed_forward)(struct tri_stream *s, struct tri_view y, const int32_t *ids,
                                     struct tri_view table);
    /* dtable(V,E) f32 += rows of dy(T,E) act. */
    enum tri_status (*embed_backward)(struct tri_stream *s, struct tri_view dtable,
                                      const int32_t *ids, struct tri_view dy);

    /* y = norm(x) over the last dimension N; x and y act, (rows,N) or (T,H,N); w (N), b (N) or
     * absent. y may be x. */
    enum tri_status (*norm_forward)(struct tri_stream *s, const struct tri_norm *op,
                                    struct tri_view y, struct tri_view x, struct tri_view w,
                                    struct tri_view b);
    /* dx = or += (accumulate) the gradient; dw, db f32 += (db absent when b is). Statistics are
     * computed again from x. dx may be dy when not accumulating. */
    enum tri_status (*norm_backward)(struct tri_stream *s, const struct tri_norm *op,
                                     bool accumulate, struct tri_view dx, struct tri_view dw,
                                     struct tri_view db, struct tri_view dy, struct tri_view x,
                                     struct tri_view w);

    /* y(T,N) = or += x(T,K) w(N,K)^T + b(N); b may be absent. All act. */
    enum tri_status (*linear_forward)(struct tri_stream *s, bool accumulate, struct tri_view y,
                                      struct tri_view x, struct tri_view w, struct tri_view b);
    /* dx(T,K) = or += dy(T,N) w(N,K). */
    enum tri_status (*linear_backward_x)(struct tri_stream *s, bool accumulate, struct tri_view dx,
                                         struct tri_view dy, struct tri_view w);
    /* dw(N,K) f32 += dy(T,N)^T x(T,K); db(N) f32 += column sums of dy, or absent. */
    enum tri_status (*linear_backward_w)(struct tri_stream *s, struct tri_view dw,
                                         struct tri_view db, struct tri_view dy, struct tri_view x);

    /* table(T,R) f32: cos then sin, R/2 each, of pos[t] * inv_freq[j], times `scale`. `pos` are T
     * int64 in backend memory, inv_freq R/2 doubles in host memory. Angles are formed and reduced
     * in float64, so they stay exact at position 16M and beyond (Su et al. 2021). */
    enum tri_status (*rope_table)(struct tri_stream *s, struct tri_view table, const int64_t *pos,
                                  const double *inv_freq, double scale);
    /* Rotate the first R elements of each head of x(T,H,D) into y; pairs are (j, j + R/2) as in
     * Hugging Face. `inverse` applies the transpose: it is the backward. Elements past R are
     * copied. y may be x. */
    enum tri_status (*rope)(struct tri_stream *s, bool inverse, struct tri_view y,
                            struct tri_view x, struct tri_view table);

    /* y(T,F) = act(gate) * up, or act(gate) when up is absent (an MLP without a gate). */
    enum tri_status (*act_forward)(struct tri_stream *s, enum tri_activation act, struct tri_view y,
                                   struct tri_view gate, struct tri_view up);
    /* dgate, dup = gradients; dgate may be gate, dup may be up. */
    enum tri_status (*act_backward)(struct tri_stream *s, enum tri_activation act,
                                    struct tri_view dgate, struct tri_view dup, struct tri_view dy,
                                    struct tri_view gate, struct tri_view up);

    /* ---- attention (FlashAttention-2, Dao 2023) ------------------------------------------------
     */

    /* Bytes of workspace that the two calls below need for these shapes; never O(Tq*Tk). */
    size_t (*attn_workspace)(struct tri_stream *s, const struct tri_attn *op, bool backward,
                             struct tri_view q, struct tri_view k);
    /* o(Tq,Hq,D) act = softmax(scale q k^T + mask) v; lse(Tq,Hq) f32 = natural log-sum-exp of the
     * scaled, masked scores. q(Tq,Hq,D), k and v (Tk,Hk,D) act, Hk divides Hq, query head h reads
     * key head h / (Hq/Hk). Tokens and heads may be strided. */
    enum tri_status (*attn_forward)(struct tri_stream *s, const struct tri_attn *op,
                                    struct tri_view o, struct tri_view lse, struct tri_view q,
                                    struct tri_view k, struct tri_view v, void *workspace);
    /* dq(Tq,Hq,D) act = or += (accumulate_dq); dk, dv (Tk,Hk,D) f32 +=. lse and o are the final
     * ones over all keys, so a query's gradient may be gathered key range by key range. */
    enum tri_status (*attn_backward)(struct tri_stream *s, const struct tri_attn *op,
                                     bool accumulate_dq, struct tri_view dq, struct tri_view dk,
                                     struct tri_view dv, struct tri_view dout, struct tri_view q,
                                     struct tri_view k, struct tri_view v, struct tri_view o,
                                     struct tri_view lse, void *workspace);

    /* ---- loss, optimizer -----------------------------------------------------------------------
     */

    /* *loss_sum += sum over rows with labels[t] >= 0 of logsumexp(logits[t]) - logits[t,
     * labels[t]]; a negative label is not trained. With `backward`, logits(T,V) become (softmax -
     * onehot) * scale, and exactly 0 in rows that are not trained. labels are T int32 and loss_sum
     * a double, both in backend memory. logits are act or float32. */
    enum tri_status (*cross_entropy)(struct tri_stream *s, bool backward, double scale,
                                     double *loss_sum, struct tri_view logits,
                                     const int32_t *labels);

    /* One AdamW update of n contiguous parameters: p f32 master weights, m and v f32 moments,
     * g f32 gradient; `w` (or absent) receives p in the weights' dtype. */
    enum tri_status (*adamw)(struct tri_stream *s, const struct tri_adamw *op, struct tri_view p,
                             struct tri_view m, struct tri_view v, struct tri_view w,
                             struct tri_view g);

    /* *sum += sum of squares of x (contiguous), accumulated in float64 in a fixed order, so that
     * the bits do not depend on the number of threads. */
    enum tri_status (*sum_squares)(struct tri_stream *s, double *sum, struct tri_view x);
};

struct tri_backend {
    const char *name;    /* "cpu", "cuda" */
    const char *kernels; /* which kernels were chosen, for people: "avx2", "reference" */
    struct tri_ops ops;
    const struct tri_memory *memory; /* where tensors live */
    struct tri_stream *stream;       /* the main compute stream */
    void *ctx;
};

/* Whom a layer calls, and where it gets room: passed down by value. */
struct tri_arena;
struct tri_exec {
    struct tri_backend *backend;
    const struct tri_ops *ops;
    struct tri_stream *stream;
    struct tri_arena *arena; /* scratch: callers mark and release */
};

/* (rows, cols) of scratch: exec.c. */
enum tri_status tri_exec_scratch(const struct tri_exec *exec, const char *name,
                                 enum tri_dtype dtype, int64_t rows, int64_t cols,
                                 struct tri_view *out);

#endif
