#include "model/block.h"

#include "base/arena.h"

/* Views for everything the attention half needs: kept ones where present, scratch elsewhere.
 * Only the backward of QK-norm needs the queries before it, and only a fresh attention writes
 * o_heads. */
static enum tri_status complete(const struct tri_net *net, struct tri_chunk chunk, bool raw,
                                bool attend, struct tri_attn_kept *attn)
{
    const struct tri_arch *a = &net->model->arch;
    int64_t width = a->num_heads * a->head_dim;
    int64_t heads = tri_exchange_heads(&net->exchange).query.count;
    int64_t n = chunk.tokens.count;
    int64_t t = chunk.rows.count;
    if (!tri_view_present(attn->q))
        TRI_TRY(tri_net_scratch(net, "queries", net->act, n, heads * a->head_dim, &attn->q));
    if (raw && a->qk_norm && !tri_view_present(attn->q_raw))
        TRI_TRY(tri_net_scratch(net, "queries before norm", net->act, t, width, &attn->q_raw));
    if (!tri_view_present(attn->o))
        TRI_TRY(tri_net_scratch(net, "attention output", net->act, t, width, &attn->o));
    if (tri_exchange_is_alone(&net->exchange))
        attn->o_heads = attn->o;
    else if (attend)
        TRI_TRY(tri_net_scratch(net, "output of my heads", net->act, n, heads * a->head_dim,
                                &attn->o_heads));
    if (!tri_view_present(attn->lse))
        TRI_TRY(tri_net_scratch(net, "log-sum-exp", net->stat, n, heads, &attn->lse));
    return TRI_OK;
}

enum tri_status tri_block_forward(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                  struct tri_view y, struct tri_view x,
                                  const struct tri_block_kept *kept)
{
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_attn_kept attn = kept->attn;
    struct tri_view h;
    TRI_TRY(complete(net, chunk, false, true, &attn));
    TRI_TRY(tri_net_scratch(net, "attention norm", net->act, chunk.rows.count, x.dim[1], &h));
    TRI_TRY(tri_attn_norm(net, layer, h, x));
    TRI_TRY(tri_attn_project(net, layer, chunk, TRI_PROJECT_QUERIES | TRI_PROJECT_KEYS, &attn, h,
                             kept->k_raw));
    TRI_TRY(tri_attn_attend(net, layer, chunk, &attn));
    TRI_TRY(tri_attn_output(net, layer, y, x, attn.o));
    tri_arena_release(net->exec.arena, mark);
    if (tri_view_present(kept->mid))
        TRI_TRY(net->exec.ops->copy(net->exec.stream, kept->mid, y));
    return tri_mlp_forward(net, layer, y, net->model->arch.parallel_residual ? x : y, kept->in);
}

enum tri_status tri_block_rebuild_kv(const struct tri_net *net, int64_t layer,
                                     struct tri_chunk chunk, struct tri_view x,
                                     struct tri_view k_raw)
{
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view h;
    TRI_TRY(tri_net_scratch(net, "attention norm", net->act, chunk.rows.count, x.dim[1], &h));
    TRI_TRY(tri_attn_norm(net, layer, h, x));
    TRI_TRY(tri_attn_project(net, layer, chunk, TRI_PROJECT_KEYS, NULL, h, k_raw));
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}

/* The input of the MLP: x, or x + attention, kept or added up again. */
static enum tri_status mlp_input(const struct tri_net *net, int64_t layer, struct tri_view x,
                                 const struct tri_block_kept *kept, struct tri_view o,
                                 struct tri_view *mid)
{
    if (net->model->arch.parallel_residual) {
        *mid = x;
        return TRI_OK;
    }
    if (tri_view_present(kept->mid)) {
        *mid = kept->mid;
        return TRI_OK;
    }
    TRI_TRY(tri_net_scratch(net, "attention residual", net->act, x.dim[0], x.dim[1], mid));
    return tri_attn_output(net, layer, *mid, x, o);
}

enum tri_status tri_block_backward(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                   struct tri_view d, struct tri_view dkv, struct tri_view x,
                                   const struct tri_block_kept *kept)
{
    bool parallel = net->model->arch.parallel_residual;
    bool attended = tri_view_present(kept->attn.o);
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_attn_kept attn = kept->attn;
    struct tri_view h, dh, mid;
    TRI_TRY(complete(net, chunk, true, !attended, &attn));
    TRI_TRY(tri_net_scratch(net, "attention norm", net->act, chunk.rows.count, x.dim[1], &h));
    TRI_TRY(tri_net_scratch(net, "d attention norm", net->act, chunk.rows.count, x.dim[1], &dh));
    TRI_TRY(tri_attn_norm(net, layer, h, x));
    if (!tri_view_present(kept->attn.q))
        TRI_TRY(
            tri_attn_project(net, layer, chunk, TRI_PROJECT_QUERIES, &attn, h, tri_view_none()));
    if (!attended)
        TRI_TRY(tri_attn_attend(net, layer, chunk, &attn));

    /* A parallel block feeds the same gradient to both halves; a sequential one goes through the
     * MLP first. Either way d ends as the sum over the residual and both halves. */
    if (parallel)
        TRI_TRY(tri_attn_backward(net, layer, chunk, dh, dkv, d, h, kept->k_raw, &attn));
    size_t inner = tri_arena_mark(net->exec.arena);
    TRI_TRY(mlp_input(net, layer, x, kept, attn.o, &mid));
    TRI_TRY(tri_mlp_backward(net, layer, d, mid, kept->in));
    tri_arena_release(net->exec.arena, inner);
    if (!parallel)
        TRI_TRY(tri_attn_backward(net, layer, chunk, dh, dkv, d, h, kept->k_raw, &attn));
    TRI_TRY(tri_attn_norm_backward(net, layer, d, dh, x));
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}
