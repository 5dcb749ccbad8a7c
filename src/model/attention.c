/* The attention half of a block: norm, products, QK-norm, RoPE, attention, output product. */
#include "base/arena.h"
#include "model/net.h"

/* Shapes of this layer's attention. */
struct sizes {
    int64_t q;  /* Hq * D */
    int64_t kv; /* Hk * D */
};

static struct sizes sizes_of(const struct tri_net *net)
{
    const struct tri_arch *a = &net->model->arch;
    return (struct sizes){.q = a->num_heads * a->head_dim, .kv = a->num_kv_heads * a->head_dim};
}

static struct tri_attention attention_of(const struct tri_net *net, int64_t layer)
{
    const struct tri_arch *a = &net->model->arch;
    return (struct tri_attention){.exec = net->exec,
                                  .batch = net->batch,
                                  .store = net->store,
                                  .kv_slot = net->kv_slot,
                                  .num_kv_heads = a->num_kv_heads,
                                  .window = a->window[layer],
                                  .scale = 1.0 / __builtin_sqrt((double)a->head_dim),
                                  .deterministic = net->deterministic};
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
                               tri_view_rows(net->rope, chunk.begin, chunk.count));
}

/* dx = gradient of norm_and_rotate, in place on d(n, H*D); raw is its input x. */
static enum tri_status norm_and_rotate_backward(const struct tri_net *net, struct tri_chunk chunk,
                                                struct tri_view norm, struct tri_view dnorm,
                                                struct tri_view d, struct tri_view raw)
{
    const struct tri_arch *a = &net->model->arch;
    int64_t heads = d.dim[1] / a->head_dim;
    struct tri_view dh = tri_view_heads(d, heads);
    TRI_TRY(net->exec.ops->rope(net->exec.stream, true, dh, dh,
                                tri_view_rows(net->rope, chunk.begin, chunk.count)));
    if (!a->qk_norm)
        return TRI_OK;
    struct tri_norm op = {.kind = TRI_NORM_RMS, .eps = a->norm.eps};
    return net->exec.ops->norm_backward(net->exec.stream, &op, false, dh, dnorm, tri_view_none(),
                                        dh, tri_view_heads(raw, heads), norm);
}

enum tri_status tri_attn_norm(const struct tri_net *net, int64_t layer, struct tri_view h,
                              struct tri_view x)
{
    return net->exec.ops->norm_forward(net->exec.stream, &net->model->arch.norm, h, x,
                                       tri_net_weight(net, layer, TRI_NORM1_W),
                                       tri_net_weight(net, layer, TRI_NORM1_B));
}

enum tri_status tri_attn_norm_backward(const struct tri_net *net, int64_t layer, struct tri_view dx,
                                       struct tri_view dh, struct tri_view x)
{
    return net->exec.ops->norm_backward(
        net->exec.stream, &net->model->arch.norm, true, dx, tri_net_grad(net, layer, TRI_NORM1_W),
        tri_net_grad(net, layer, TRI_NORM1_B), dh, x, tri_net_weight(net, layer, TRI_NORM1_W));
}

enum tri_status tri_attn_project_kv(const struct tri_net *net, int64_t layer,
                                    struct tri_chunk chunk, struct tri_view h,
                                    struct tri_view k_raw)
{
    const struct tri_ops *ops = net->exec.ops;
    struct sizes n = sizes_of(net);
    struct tri_view w = tri_net_weight(net, layer, TRI_QKV_W);
    struct tri_view b = tri_net_weight(net, layer, TRI_QKV_B);
    struct tri_view kv;
    TRI_TRY(tri_store_fill(net->store, net->kv_slot, chunk.begin, chunk.count, &kv));
    TRI_TRY(ops->linear_forward(net->exec.stream, false, kv, h, part(w, n.q, 2 * n.kv),
                                part(b, n.q, 2 * n.kv)));
    struct tri_view k = tri_view_cols(kv, 0, n.kv);
    if (tri_view_present(k_raw))
        TRI_TRY(ops->copy(net->exec.stream, k_raw, k));
    TRI_TRY(norm_and_rotate(net, chunk, tri_net_weight(net, layer, TRI_K_NORM), k, k));
    return tri_store_put(net->store, net->kv_slot, chunk.begin, chunk.count);
}

enum tri_status tri_attn_queries(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                 const struct tri_attn_kept *kept, struct tri_view h)
{
    struct sizes n = sizes_of(net);
    struct tri_view raw = tri_view_present(kept->q_raw) ? kept->q_raw : kept->q;
    TRI_TRY(net->exec.ops->linear_forward(net->exec.stream, false, raw, h,
                                          part(tri_net_weight(net, layer, TRI_QKV_W), 0, n.q),
                                          part(tri_net_weight(net, layer, TRI_QKV_B), 0, n.q)));
    return norm_and_rotate(net, chunk, tri_net_weight(net, layer, TRI_Q_NORM), kept->q, raw);
}

enum tri_status tri_attn_attend(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                const struct tri_attn_kept *kept)
{
    struct tri_attention a = attention_of(net, layer);
    int64_t heads = net->model->arch.num_heads;
    return tri_attention_forward(&a, chunk, tri_view_heads(kept->o, heads), kept->lse,
                                 tri_view_heads(kept->q, heads));
}

enum tri_status tri_attn_output(const struct tri_net *net, int64_t layer, struct tri_view mid,
                                struct tri_view x, struct tri_view o)
{
    if (mid.data != x.data)
        TRI_TRY(net->exec.ops->copy(net->exec.stream, mid, x));
    return net->exec.ops->linear_forward(net->exec.stream, true, mid, o,
                                         tri_net_weight(net, layer, TRI_ATTN_OUT_W),
                                         tri_net_weight(net, layer, TRI_ATTN_OUT_B));
}

enum tri_status tri_attn_backward(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                  struct tri_view dh, struct tri_view dkv, struct tri_view dmid,
                                  struct tri_view h, struct tri_view k_raw,
                                  const struct tri_attn_kept *kept)
{
    const struct tri_ops *ops = net->exec.ops;
    struct tri_stream *s = net->exec.stream;
    struct sizes n = sizes_of(net);
    int64_t heads = net->model->arch.num_heads;
    struct tri_view w = tri_net_weight(net, layer, TRI_QKV_W);
    struct tri_view dw = tri_net_grad(net, layer, TRI_QKV_W);
    struct tri_view db = tri_net_grad(net, layer, TRI_QKV_B);
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view dout, dq, dkv_act;

    /* Output product. */
    TRI_TRY(tri_net_scratch(net, "d attention output", net->act, chunk.count, n.q, &dout));
    TRI_TRY(tri_net_scratch(net, "d queries", net->act, chunk.count, n.q, &dq));
    TRI_TRY(ops->linear_backward_w(s, tri_net_grad(net, layer, TRI_ATTN_OUT_W),
                                   tri_net_grad(net, layer, TRI_ATTN_OUT_B), dmid, kept->o));
    TRI_TRY(
        ops->linear_backward_x(s, false, dout, dmid, tri_net_weight(net, layer, TRI_ATTN_OUT_W)));

    /* Attention; afterwards this chunk's rows of dkv are final, since later chunks came first. */
    struct tri_attention a = attention_of(net, layer);
    TRI_TRY(tri_attention_backward(&a, chunk, tri_view_heads(dq, heads), dkv,
                                   tri_view_heads(dout, heads), tri_view_heads(kept->q, heads),
                                   tri_view_heads(kept->o, heads), kept->lse));
    TRI_TRY(tri_net_scratch(net, "d keys and values", net->act, chunk.count, 2 * n.kv, &dkv_act));
    TRI_TRY(ops->copy(s, dkv_act, tri_view_rows(dkv, chunk.begin, chunk.count)));

    /* RoPE and QK-norm. */
    TRI_TRY(norm_and_rotate_backward(net, chunk, tri_net_weight(net, layer, TRI_Q_NORM),
                                     tri_net_grad(net, layer, TRI_Q_NORM), dq, kept->q_raw));
    TRI_TRY(norm_and_rotate_backward(net, chunk, tri_net_weight(net, layer, TRI_K_NORM),
                                     tri_net_grad(net, layer, TRI_K_NORM),
                                     tri_view_cols(dkv_act, 0, n.kv), k_raw));

    /* Query, key and value products. */
    TRI_TRY(ops->linear_backward_w(s, part(dw, 0, n.q), part(db, 0, n.q), dq, h));
    TRI_TRY(
        ops->linear_backward_w(s, part(dw, n.q, 2 * n.kv), part(db, n.q, 2 * n.kv), dkv_act, h));
    TRI_TRY(ops->linear_backward_x(s, false, dh, dq, part(w, 0, n.q)));
    TRI_TRY(ops->linear_backward_x(s, true, dh, dkv_act, part(w, n.q, 2 * n.kv)));
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}
