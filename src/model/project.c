/* The products of queries, keys and values with QK-norm and RoPE behind them, and back. */
#include "model/project.h"

#include "base/arena.h"

/* Widths of a token in all heads: Hq*D, Hk*D. */
struct widths {
    int64_t q, kv;
};

static struct widths widths_of(const struct tri_net *net)
{
    const struct tri_arch *a = &net->model->arch;
    return (struct widths){a->num_heads * a->head_dim, a->num_kv_heads * a->head_dim};
}

static bool alone(const struct tri_net *net)
{
    return tri_exchange_is_alone(&net->exchange);
}

/* Rows [begin, begin + count) of an optional 1-D or 2-D parameter. */
static struct tri_view part(struct tri_view v, int64_t begin, int64_t count)
{
    return tri_view_present(v) ? tri_view_rows(v, begin, count) : v;
}

/* y = RoPE(QK-norm(x)) on the heads of (n, H*D); y may be x. */
static enum tri_status norm_and_rotate(const struct tri_net *net, struct tri_chunk chunk,
                                       struct tri_view norm, struct tri_view y, struct tri_view x)
{
    const struct tri_arch *a = &net->model->arch;
    int64_t heads = y.dim[1] / a->head_dim;
    struct tri_view yh = tri_view_heads(y, heads);
    struct tri_view xh = tri_view_heads(x, heads);
    if (a->qk_norm) {
        struct tri_norm op = {.kind = TRI_NORM_RMS, .eps = a->norm.eps};
        TRI_TRY(net->exec.ops->norm_forward(net->exec.stream, &op, yh, xh, norm, tri_view_none()));
        xh = yh;
    }
    return net->exec.ops->rope(net->exec.stream, false, yh, xh,
                               tri_view_rows(net->rope, chunk.rows.begin, chunk.rows.count));
}

/* dx(n, H*D) = gradient of norm_and_rotate. On entry dx is the gradient of what RoPE read; raw is
 * the input of QK-norm. */
static enum tri_status norm_backward(const struct tri_net *net, struct tri_view norm,
                                     struct tri_view dnorm, struct tri_view dx, struct tri_view raw)
{
    const struct tri_arch *a = &net->model->arch;
    int64_t heads = dx.dim[1] / a->head_dim;
    struct tri_view d = tri_view_heads(dx, heads);
    if (!a->qk_norm)
        return TRI_OK;
    struct tri_norm op = {.kind = TRI_NORM_RMS, .eps = a->norm.eps};
    return net->exec.ops->norm_backward(net->exec.stream, &op, false, d, dnorm, tri_view_none(), d,
                                        tri_view_heads(raw, heads), norm);
}

/* y = RoPE backwards of x, both (n, H*D); y may be x. */
static enum tri_status rotate_back(const struct tri_net *net, struct tri_chunk chunk,
                                   struct tri_view y, struct tri_view x)
{
    int64_t heads = y.dim[1] / net->model->arch.head_dim;
    return net->exec.ops->rope(net->exec.stream, true, tri_view_heads(y, heads),
                               tri_view_heads(x, heads),
                               tri_view_rows(net->rope, chunk.rows.begin, chunk.rows.count));
}

/* The columns of some heads. */
static struct tri_view columns(const struct tri_net *net, struct tri_view v, struct tri_range heads)
{
    int64_t d = net->model->arch.head_dim;
    return tri_view_cols(v, heads.begin * d, heads.count * d);
}

/* Heads that rank r computes. */
static struct tri_heads heads_of(const struct tri_net *net, int rank)
{
    const struct tri_arch *a = &net->model->arch;
    return tri_heads_split(a->num_heads, a->num_kv_heads, net->exchange.layout.ranks, rank);
}

enum tri_status tri_project_queries(const struct tri_net *net, int64_t layer,
                                    struct tri_chunk chunk, struct tri_view q,
                                    struct tri_view q_raw, struct tri_view h)
{
    struct widths n = widths_of(net);
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view raw = tri_view_present(q_raw) ? q_raw : q;
    if (!alone(net) && !tri_view_present(q_raw))
        TRI_TRY(tri_net_scratch(net, "query product", net->act, chunk.rows.count, n.q, &raw));
    TRI_TRY(net->exec.ops->linear_forward(net->exec.stream, false, raw, h,
                                          part(tri_net_weight(net, layer, TRI_QKV_W), 0, n.q),
                                          part(tri_net_weight(net, layer, TRI_QKV_B), 0, n.q)));
    for (int r = 0; r < net->exchange.layout.ranks; r++)
        TRI_TRY(norm_and_rotate(net, chunk, tri_net_weight(net, layer, TRI_Q_NORM),
                                tri_exchange_block(&net->exchange, TRI_HEADS_QUERY, q, r),
                                columns(net, raw, heads_of(net, r).query)));
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}

/* One half of (keys | values). */
static struct tri_view half_of(struct tri_view kv, int half)
{
    int64_t width = kv.dim[1] / 2;
    return tri_view_cols(kv, half * width, width);
}

enum tri_status tri_project_keys(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                 struct tri_view kv, struct tri_view k_raw, struct tri_view h)
{
    const struct tri_ops *ops = net->exec.ops;
    struct widths n = widths_of(net);
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view w = tri_net_weight(net, layer, TRI_QKV_W);
    struct tri_view b = tri_net_weight(net, layer, TRI_QKV_B);
    struct tri_view raw = kv;
    if (!alone(net))
        TRI_TRY(tri_net_scratch(net, "key and value product", net->act, chunk.rows.count, 2 * n.kv,
                                &raw));
    TRI_TRY(ops->linear_forward(net->exec.stream, false, raw, h, part(w, n.q, 2 * n.kv),
                                part(b, n.q, 2 * n.kv)));
    if (tri_view_present(k_raw))
        TRI_TRY(ops->copy(net->exec.stream, k_raw, half_of(raw, 0)));
    for (int r = 0; r < net->exchange.layout.ranks; r++) {
        struct tri_range heads = heads_of(net, r).key;
        struct tri_view block = tri_exchange_block(&net->exchange, TRI_HEADS_KEY_VALUE, kv, r);
        TRI_TRY(norm_and_rotate(net, chunk, tri_net_weight(net, layer, TRI_K_NORM),
                                half_of(block, 0), columns(net, half_of(raw, 0), heads)));
        if (!alone(net))
            TRI_TRY(ops->copy(net->exec.stream, half_of(block, 1),
                              columns(net, half_of(raw, 1), heads)));
    }
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}

/* dq and dkv before RoPE, out of the blocks of every rank. */
static enum tri_status rotate_gradients(const struct tri_net *net, struct tri_chunk chunk,
                                        const struct tri_project_gradients *g)
{
    const struct tri_exchange *x = &net->exchange;
    for (int r = 0; r < x->layout.ranks; r++) {
        TRI_TRY(rotate_back(net, chunk, columns(net, g->dq, heads_of(net, r).query),
                            tri_exchange_block(x, TRI_HEADS_QUERY, g->dq_room, r)));
        struct tri_range heads = tri_exchange_summed(x, r);
        struct tri_range first = {0, heads.count};
        if (heads.count == 0)
            continue;
        struct tri_view block = tri_exchange_block(x, TRI_HEADS_KEY_VALUE, g->dkv_room, r);
        TRI_TRY(rotate_back(net, chunk, columns(net, half_of(g->dkv, 0), heads),
                            columns(net, half_of(block, 0), first)));
        if (!alone(net))
            TRI_TRY(net->exec.ops->copy(net->exec.stream, columns(net, half_of(g->dkv, 1), heads),
                                        columns(net, half_of(block, 1), first)));
    }
    return TRI_OK;
}

enum tri_status tri_project_backward(const struct tri_net *net, int64_t layer,
                                     struct tri_chunk chunk, struct tri_view dh,
                                     const struct tri_project_gradients *g, struct tri_view h,
                                     struct tri_view q_raw, struct tri_view k_raw)
{
    const struct tri_ops *ops = net->exec.ops;
    struct tri_stream *s = net->exec.stream;
    struct widths n = widths_of(net);
    struct tri_view w = tri_net_weight(net, layer, TRI_QKV_W);
    struct tri_view dw = tri_net_grad(net, layer, TRI_QKV_W);
    struct tri_view db = tri_net_grad(net, layer, TRI_QKV_B);
    TRI_TRY(rotate_gradients(net, chunk, g));
    TRI_TRY(norm_backward(net, tri_net_weight(net, layer, TRI_Q_NORM),
                          tri_net_grad(net, layer, TRI_Q_NORM), g->dq, q_raw));
    TRI_TRY(norm_backward(net, tri_net_weight(net, layer, TRI_K_NORM),
                          tri_net_grad(net, layer, TRI_K_NORM), half_of(g->dkv, 0), k_raw));
    TRI_TRY(ops->linear_backward_w(s, part(dw, 0, n.q), part(db, 0, n.q), g->dq, h));
    TRI_TRY(ops->linear_backward_w(s, part(dw, n.q, 2 * n.kv), part(db, n.q, 2 * n.kv), g->dkv, h));
    TRI_TRY(ops->linear_backward_x(s, false, dh, g->dq, part(w, 0, n.q)));
    return ops->linear_backward_x(s, true, dh, g->dkv, part(w, n.q, 2 * n.kv));
}
