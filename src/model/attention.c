/* The attention half of a block: norm, projection, exchange, attention, output product. */
#include "base/arena.h"
#include "model/project.h"

/* Widths of a token: of all heads (local layout), and of this rank's (heads layout). */
struct sizes {
    int64_t q, kv;       /* Hq * D, Hk * D */
    int64_t my_q, my_kv; /* hq * D, hk * D */
};

static struct sizes sizes_of(const struct tri_net *net)
{
    const struct tri_arch *a = &net->model->arch;
    struct tri_heads mine = tri_exchange_heads(&net->exchange);
    return (struct sizes){.q = a->num_heads * a->head_dim,
                          .kv = a->num_kv_heads * a->head_dim,
                          .my_q = mine.query.count * a->head_dim,
                          .my_kv = mine.key.count * a->head_dim};
}

static bool alone(const struct tri_net *net)
{
    return tri_exchange_is_alone(&net->exchange);
}

static struct tri_attention attention_of(const struct tri_net *net, int64_t layer)
{
    const struct tri_arch *a = &net->model->arch;
    return (struct tri_attention){.exec = net->exec,
                                  .batch = net->batch,
                                  .store = net->store,
                                  .kv_slot = net->kv_slot,
                                  .num_heads = a->num_heads,
                                  .num_kv_heads = a->num_kv_heads,
                                  .heads = tri_exchange_heads(&net->exchange),
                                  .window = a->window[layer],
                                  .scale = 1.0 / __builtin_sqrt((double)a->head_dim),
                                  .deterministic = net->deterministic};
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

/* A tensor in both layouts. */
static struct tri_exchange_part matrix_part(struct tri_view local, struct tri_view heads)
{
    return (struct tri_exchange_part){.kind = TRI_HEADS_QUERY, .local = local, .heads = heads};
}

static struct tri_exchange_part block_part(enum tri_head_kind kind, struct tri_view room,
                                           struct tri_view heads)
{
    return (struct tri_exchange_part){.kind = kind, .local = room, .heads = heads, .blocks = true};
}

enum tri_status tri_attn_project(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                 int what, const struct tri_attn_kept *kept, struct tri_view h,
                                 struct tri_view k_raw)
{
    const struct tri_exchange *x = &net->exchange;
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_exchange_part parts[2];
    int num_parts = 0;
    if (what & TRI_PROJECT_QUERIES) {
        struct tri_view q = kept->q;
        if (!alone(net)) {
            TRI_TRY(tri_net_scratch(net, "queries of every rank", net->act, chunk.rows.count,
                                    tri_exchange_width(x, TRI_HEADS_QUERY), &q));
            parts[num_parts++] = block_part(TRI_HEADS_QUERY, q, kept->q);
        }
        TRI_TRY(tri_project_queries(net, layer, chunk, q, kept->q_raw, h));
    }
    if (what & TRI_PROJECT_KEYS) {
        struct tri_view slot;
        TRI_TRY(tri_store_fill(net->store, net->kv_slot, chunk.tokens.begin, chunk.tokens.count,
                               &slot));
        struct tri_view kv = slot;
        if (!alone(net)) {
            TRI_TRY(tri_net_scratch(net, "keys and values of every rank", net->act,
                                    chunk.rows.count, tri_exchange_width(x, TRI_HEADS_KEY_VALUE),
                                    &kv));
            parts[num_parts++] = block_part(TRI_HEADS_KEY_VALUE, kv, slot);
        }
        TRI_TRY(tri_project_keys(net, layer, chunk, kv, k_raw, h));
    }
    if (num_parts > 0)
        TRI_TRY(tri_exchange_to_heads(&net->exchange, chunk.index, parts, num_parts));
    tri_arena_release(net->exec.arena, mark);
    if (what & TRI_PROJECT_KEYS)
        return tri_store_put(net->store, net->kv_slot, chunk.tokens.begin, chunk.tokens.count);
    return TRI_OK;
}

enum tri_status tri_attn_attend(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                const struct tri_attn_kept *kept)
{
    struct tri_attention a = attention_of(net, layer);
    TRI_TRY(tri_attention_forward(&a, chunk.tokens,
                                  tri_view_heads(kept->o_heads, a.heads.query.count), kept->lse,
                                  tri_view_heads(kept->q, a.heads.query.count)));
    if (alone(net))
        return TRI_OK;
    struct tri_exchange_part back = matrix_part(kept->o, kept->o_heads);
    return tri_exchange_to_sequence(&net->exchange, chunk.index, &back, 1);
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

/* The gradients of one chunk on both sides of the exchange. */
struct gradients {
    struct tri_view dout, dout_heads;    /* (t, Hq*D), in blocks with several ranks; (n, hq*D) */
    struct tri_view o_heads;             /* (n, hq*D) */
    struct tri_view dq_heads, dkv_heads; /* (n, hq*D), (n, 2*hk*D) */
    struct tri_project_gradients qkv;    /* (t, ...) */
};

static enum tri_status get_gradients(const struct tri_net *net, struct tri_chunk chunk,
                                     const struct tri_attn_kept *kept, struct gradients *out)
{
    struct sizes n = sizes_of(net);
    struct gradients g = {.o_heads = alone(net) ? kept->o : kept->o_heads};
    int64_t rows = chunk.rows.count;
    int64_t tokens = chunk.tokens.count;
    TRI_TRY(tri_net_scratch(net, "d attention output", net->act, rows, n.q, &g.dout));
    TRI_TRY(tri_net_scratch(net, "d queries", net->act, rows, n.q, &g.qkv.dq));
    TRI_TRY(tri_net_scratch(net, "d keys and values", net->act, rows, 2 * n.kv, &g.qkv.dkv));
    g.dout_heads = g.dout;
    g.dq_heads = g.qkv.dq;
    g.dkv_heads = g.qkv.dkv;
    g.qkv.dq_room = g.qkv.dq;
    g.qkv.dkv_room = g.qkv.dkv;
    if (!alone(net)) {
        g.qkv.dq_room = g.dout; /* which has been sent by then, and is of the same size */
        TRI_TRY(tri_net_scratch(net, "d keys and values of every rank", net->act, rows,
                                tri_exchange_width(&net->exchange, TRI_HEADS_KEY_VALUE),
                                &g.qkv.dkv_room));
        TRI_TRY(
            tri_net_scratch(net, "d output of my heads", net->act, tokens, n.my_q, &g.dout_heads));
        TRI_TRY(
            tri_net_scratch(net, "d queries of my heads", net->act, tokens, n.my_q, &g.dq_heads));
        TRI_TRY(tri_net_scratch(net, "d keys and values of my heads", net->act, tokens, 2 * n.my_kv,
                                &g.dkv_heads));
        if (!tri_view_present(g.o_heads))
            TRI_TRY(
                tri_net_scratch(net, "output of my heads", net->act, tokens, n.my_q, &g.o_heads));
    }
    *out = g;
    return TRI_OK;
}

/* Gradients of the output product. Its input's is written into the blocks that are sent to each
 * rank, a product for each. */
static enum tri_status output_backward(const struct tri_net *net, int64_t layer,
                                       struct tri_view dout, struct tri_view dmid,
                                       struct tri_view o)
{
    const struct tri_ops *ops = net->exec.ops;
    const struct tri_arch *a = &net->model->arch;
    const struct tri_exchange *x = &net->exchange;
    struct tri_view w = tri_net_weight(net, layer, TRI_ATTN_OUT_W);
    TRI_TRY(ops->linear_backward_w(net->exec.stream, tri_net_grad(net, layer, TRI_ATTN_OUT_W),
                                   tri_net_grad(net, layer, TRI_ATTN_OUT_B), dmid, o));
    for (int r = 0; r < x->layout.ranks; r++) {
        struct tri_range heads =
            tri_heads_split(a->num_heads, a->num_kv_heads, x->layout.ranks, r).query;
        TRI_TRY(ops->linear_backward_x(
            net->exec.stream, false, tri_exchange_block(x, TRI_HEADS_QUERY, dout, r), dmid,
            tri_view_cols(w, heads.begin * a->head_dim, heads.count * a->head_dim)));
    }
    return TRI_OK;
}

/* From the gradient of the output in the local layout to those of q, k, v there. */
static enum tri_status attention_backward(const struct tri_net *net, int64_t layer,
                                          struct tri_chunk chunk, struct tri_view dkv_all,
                                          const struct tri_attn_kept *kept,
                                          const struct gradients *g)
{
    struct tri_attention a = attention_of(net, layer);
    int64_t heads = a.heads.query.count;
    if (!alone(net)) {
        struct tri_exchange_part there[2] = {block_part(TRI_HEADS_QUERY, g->dout, g->dout_heads),
                                             matrix_part(kept->o, g->o_heads)};
        int parts = tri_view_present(kept->o_heads) ? 1 : 2;
        TRI_TRY(tri_exchange_to_heads(&net->exchange, chunk.index, there, parts));
    }
    TRI_TRY(tri_attention_backward(&a, chunk.tokens, tri_view_heads(g->dq_heads, heads), dkv_all,
                                   tri_view_heads(g->dout_heads, heads),
                                   tri_view_heads(kept->q, heads),
                                   tri_view_heads(g->o_heads, heads), kept->lse));
    /* This chunk's rows are final now, since later chunks came first. */
    TRI_TRY(net->exec.ops->copy(net->exec.stream, g->dkv_heads,
                                tri_view_rows(dkv_all, chunk.tokens.begin, chunk.tokens.count)));
    if (alone(net))
        return TRI_OK;
    struct tri_exchange_part back[2] = {
        block_part(TRI_HEADS_QUERY, g->qkv.dq_room, g->dq_heads),
        block_part(TRI_HEADS_KEY_VALUE, g->qkv.dkv_room, g->dkv_heads)};
    return tri_exchange_to_sequence(&net->exchange, chunk.index, back, 2);
}

enum tri_status tri_attn_backward(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                  struct tri_view dh, struct tri_view dkv, struct tri_view dmid,
                                  struct tri_view h, struct tri_view k_raw,
                                  const struct tri_attn_kept *kept)
{
    size_t mark = tri_arena_mark(net->exec.arena);
    struct gradients g;
    TRI_TRY(get_gradients(net, chunk, kept, &g));
    TRI_TRY(output_backward(net, layer, g.dout, dmid, kept->o));
    TRI_TRY(attention_backward(net, layer, chunk, dkv, kept, &g));
    TRI_TRY(tri_project_backward(net, layer, chunk, dh, &g.qkv, h, kept->q_raw, k_raw));
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}
