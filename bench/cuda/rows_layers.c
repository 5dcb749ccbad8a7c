/* Token-wise ops of a layer: norms, RoPE, sums of columns, activations. */
#include "cuda/table.h"

enum { MLP_TOKENS = 16384 };

static const struct tri_norm rms = {TRI_NORM_RMS, 1e-5}, layer = {TRI_NORM_LAYER, 1e-5};

static enum tri_status run_norm_forward(const struct tri_ops *ops, struct tri_stream *s,
                                        const struct bench_call *c)
{
    return ops->norm_forward(s, tri_view_present(c->v[3]) ? &layer : &rms, c->v[0], c->v[1],
                             c->v[2], c->v[3]);
}

static enum tri_status run_norm_backward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct bench_call *c)
{
    return ops->norm_backward(s, tri_view_present(c->v[2]) ? &layer : &rms, c->flag, c->v[0],
                              c->v[1], c->v[2], c->v[3], c->v[4], c->v[5]);
}

static enum tri_status run_rope(const struct tri_ops *ops, struct tri_stream *s,
                                const struct bench_call *c)
{
    return ops->rope(s, c->flag, c->v[0], c->v[1], c->v[2]);
}

static enum tri_status run_column_sums(const struct tri_ops *ops, struct tri_stream *s,
                                       const struct bench_call *c)
{
    (void)ops;
    return tri_cuda_check(tri_kernel_column_sums(tri_cuda_launch(s), c->v[0], c->v[1]),
                          "sum columns");
}

void bench_norms(struct bench_table *b)
{
    double bytes = (double)BENCH_TOKENS * BENCH_HIDDEN * 2;
    struct tri_view x = bench_numbers2(&b->card, TRI_BF16, BENCH_TOKENS, BENCH_HIDDEN),
                    y = bench_numbers2(&b->card, TRI_BF16, BENCH_TOKENS, BENCH_HIDDEN);
    struct tri_view dx = bench_numbers2(&b->card, TRI_BF16, BENCH_TOKENS, BENCH_HIDDEN),
                    none = tri_view_none();
    struct tri_view w = bench_numbers1(&b->card, TRI_BF16, BENCH_HIDDEN),
                    bias = bench_numbers1(&b->card, TRI_BF16, BENCH_HIDDEN);
    struct tri_view dw = bench_numbers1(&b->card, TRI_F32, BENCH_HIDDEN),
                    db = bench_numbers1(&b->card, TRI_F32, BENCH_HIDDEN);
    bench_row(b, "rmsnorm forward", 2 * bytes,
              &(struct bench_call){.run = run_norm_forward, .v = {y, x, w, none}});
    bench_row(b, "rmsnorm backward", 3 * bytes,
              &(struct bench_call){.run = run_norm_backward, .v = {dx, dw, none, y, x, w}});
    bench_row(
        b, "rmsnorm backward, dx +=", 4 * bytes,
        &(struct bench_call){.run = run_norm_backward, .v = {dx, dw, none, y, x, w}, .flag = true});
    bench_row(b, "layernorm forward", 2 * bytes,
              &(struct bench_call){.run = run_norm_forward, .v = {y, x, w, bias}});
    bench_row(b, "layernorm backward", 3 * bytes,
              &(struct bench_call){.run = run_norm_backward, .v = {dx, dw, db, y, x, w}});
    struct tri_view w8 = bench_numbers1(&b->card, TRI_BF16, 2 * BENCH_HIDDEN),
                    dw8 = bench_numbers1(&b->card, TRI_F32, 2 * BENCH_HIDDEN);
    struct tri_view x8 = tri_view2(x.data, TRI_BF16, BENCH_TOKENS / 2, 2 * BENCH_HIDDEN), y8 = x8,
                    dx8 = x8;
    y8.data = y.data;
    dx8.data = dx.data;
    bench_row(b, "rmsnorm forward, 8192 wide", 2 * bytes,
              &(struct bench_call){.run = run_norm_forward, .v = {y8, x8, w8, none}});
    bench_row(b, "rmsnorm backward, 8192 wide", 3 * bytes,
              &(struct bench_call){.run = run_norm_backward, .v = {dx8, dw8, none, y8, x8, w8}});
    struct tri_view xh = tri_view_heads(x, BENCH_HEADS), yh = tri_view_heads(y, BENCH_HEADS);
    struct tri_view dxh = tri_view_heads(dx, BENCH_HEADS),
                    wh = bench_numbers1(&b->card, TRI_BF16, BENCH_HEAD_SIZE);
    struct tri_view dwh = bench_numbers1(&b->card, TRI_F32, BENCH_HEAD_SIZE);
    bench_row(b, "qk-norm forward", 2 * bytes,
              &(struct bench_call){.run = run_norm_forward, .v = {yh, xh, wh, none}});
    bench_row(b, "qk-norm backward", 3 * bytes,
              &(struct bench_call){.run = run_norm_backward, .v = {dxh, dwh, none, yh, xh, wh}});
    struct tri_view table = bench_numbers2(&b->card, TRI_F32, BENCH_TOKENS, BENCH_HEAD_SIZE);
    double table_bytes = (double)BENCH_TOKENS * BENCH_HEAD_SIZE * 4;
    bench_row(b, "rope, 32 heads", 2 * bytes + table_bytes,
              &(struct bench_call){.run = run_rope, .v = {yh, xh, table}});
    bench_row(b, "rope backward in place", 2 * bytes + table_bytes,
              &(struct bench_call){.run = run_rope, .v = {yh, yh, table}, .flag = true});
    struct tri_view xk =
        bench_numbers3(&b->card, TRI_BF16, BENCH_TOKENS * 4, BENCH_KV_HEADS, BENCH_HEAD_SIZE);
    struct tri_view long_table =
        bench_numbers2(&b->card, TRI_F32, BENCH_TOKENS * 4, BENCH_HEAD_SIZE);
    bench_row(b, "rope in place, 8 heads", 2 * bytes + 4 * table_bytes,
              &(struct bench_call){.run = run_rope, .v = {xk, xk, long_table}});
    bench_row(b, "sum of columns (bias gradient)", bytes,
              &(struct bench_call){.run = run_column_sums, .v = {db, x}});
}

static enum tri_status run_silu_forward(const struct tri_ops *ops, struct tri_stream *s,
                                        const struct bench_call *c)
{
    return ops->act_forward(s, TRI_ACT_SILU, c->v[0], c->v[1], c->v[2]);
}

static enum tri_status run_silu_backward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct bench_call *c)
{
    return ops->act_backward(s, TRI_ACT_SILU, c->v[0], c->v[1], c->v[2], c->v[3], c->v[4]);
}

static enum tri_status run_gelu_forward(const struct tri_ops *ops, struct tri_stream *s,
                                        const struct bench_call *c)
{
    return ops->act_forward(s, TRI_ACT_GELU_TANH, c->v[0], c->v[1], tri_view_none());
}

static enum tri_status run_gelu_backward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct bench_call *c)
{
    return ops->act_backward(s, TRI_ACT_GELU_TANH, c->v[0], tri_view_none(), c->v[1], c->v[2],
                             tri_view_none());
}

void bench_activations(struct bench_table *b)
{
    double bytes = (double)MLP_TOKENS * BENCH_MLP * 2;
    struct tri_view y = bench_numbers2(&b->card, TRI_BF16, MLP_TOKENS, BENCH_MLP),
                    g = bench_numbers2(&b->card, TRI_BF16, MLP_TOKENS, BENCH_MLP);
    struct tri_view u = bench_numbers2(&b->card, TRI_BF16, MLP_TOKENS, BENCH_MLP),
                    dg = bench_numbers2(&b->card, TRI_BF16, MLP_TOKENS, BENCH_MLP);
    struct tri_view du = bench_numbers2(&b->card, TRI_BF16, MLP_TOKENS, BENCH_MLP);
    bench_row(b, "swiglu forward", 3 * bytes,
              &(struct bench_call){.run = run_silu_forward, .v = {y, g, u}});
    bench_row(b, "swiglu backward", 5 * bytes,
              &(struct bench_call){.run = run_silu_backward, .v = {dg, du, y, g, u}});
    bench_row(b, "gelu forward", 2 * bytes,
              &(struct bench_call){.run = run_gelu_forward, .v = {y, g}});
    bench_row(b, "gelu backward", 3 * bytes,
              &(struct bench_call){.run = run_gelu_backward, .v = {dg, y, g}});
    /* gate and up as the two halves of one product, the usual layout */
    struct tri_view both = bench_numbers2(&b->card, TRI_BF16, MLP_TOKENS, 2 * BENCH_MLP);
    bench_row(b, "swiglu forward, halves of one matrix", 3 * bytes,
              &(struct bench_call){.run = run_silu_forward,
                                   .v = {y, tri_view_cols(both, 0, BENCH_MLP),
                                         tri_view_cols(both, BENCH_MLP, BENCH_MLP)}});
}
