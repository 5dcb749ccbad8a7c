/* Queueing a call: its batches for one group of heads after the other, and the sums around them. */
#include <math.h>

#include "backend/cuda/attn_cudnn_call.h"
#include "backend/cuda/kernels/attn_glue.h"

/* By-value tensors: read while the plan is queued. */
struct values {
    float scale, one, hidden, window;
    int32_t window_rows, keys, queries;
};

/* Head `head` of row `row` of an outer view. */
static void *at_row(struct tri_view v, int64_t row, int64_t head)
{
    size_t bytes = v.dtype == TRI_BF16 ? 2 : 4;
    return (char *)v.data + (row * v.stride[0] + head * v.stride[1]) * (int64_t)bytes;
}

static void *at_temporary(const struct tri_cudnn_call *c, size_t begin, int64_t row, int64_t heads)
{
    return c->workspace + begin + (size_t)(row * heads * c->q.dim[2]) * 2;
}

/* Where forward puts the second part of a chunk aside, from a query row on. */
static struct tri_view output_aside(const struct tri_cudnn_call *c, int64_t row)
{
    int64_t heads = tri_cudnn_query_heads(c);
    return tri_view3(at_temporary(c, c->at.o, row, heads), TRI_BF16, c->q.dim[0] - row, heads,
                     c->q.dim[2]);
}

static struct tri_view lse_aside(const struct tri_cudnn_call *c, int64_t row)
{
    int64_t heads = tri_cudnn_query_heads(c);
    return tri_view2((float *)(c->workspace + c->at.lse) + row * heads, TRI_F32, c->q.dim[0] - row,
                     heads);
}

/* `k_head` is the first key head of the group. */
static void bind_tensors(const struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                         int64_t k_head, struct tri_cudnn_bindings *b)
{
    int64_t q_head = k_head * (c->q.dim[1] / c->k.dim[1]);
    int64_t q_row = batch->q_row, k_row = batch->k_row;
    tri_cudnn_bind(b, TRI_CUDNN_Q, at_row(c->q, q_row, q_head));
    tri_cudnn_bind(b, TRI_CUDNN_K, at_row(c->k, k_row, k_head));
    tri_cudnn_bind(b, TRI_CUDNN_V, at_row(c->v, k_row, k_head));
    bool aside = !c->backward && batch->aside;
    tri_cudnn_bind(b, TRI_CUDNN_O,
                   aside ? output_aside(c, q_row).data : at_row(c->o, q_row, q_head));
    tri_cudnn_bind(b, TRI_CUDNN_LSE,
                   aside ? lse_aside(c, q_row).data : at_row(c->lse, q_row, q_head));
    if (batch->padded) {
        tri_cudnn_bind(b, TRI_CUDNN_Q_LENGTH,
                       (int32_t *)(c->workspace + c->at.q_length) + batch->slot);
        tri_cudnn_bind(b, TRI_CUDNN_K_LENGTH,
                       (int32_t *)(c->workspace + c->at.k_length) + batch->slot);
    }
    if (batch->ragged)
        for (int id = TRI_CUDNN_Q; id <= (c->backward ? TRI_CUDNN_DV : TRI_CUDNN_LSE); id++)
            tri_cudnn_bind(b, TRI_CUDNN_OFFSETS + id,
                           (int64_t *)(c->workspace + c->at.offsets) +
                               (id - TRI_CUDNN_Q) * c->slots + batch->slot);
    if (!c->backward)
        return;
    tri_cudnn_bind(b, TRI_CUDNN_DOUT, at_row(c->dout, q_row, q_head));
    tri_cudnn_bind(b, TRI_CUDNN_DQ,
                   batch->aside ? at_temporary(c, c->at.dq, q_row, tri_cudnn_query_heads(c))
                                : at_row(c->dq, q_row, q_head));
    tri_cudnn_bind(b, TRI_CUDNN_DK, at_temporary(c, c->at.dk, k_row, c->group));
    tri_cudnn_bind(b, TRI_CUDNN_DV, at_temporary(c, c->at.dv, k_row, c->group));
    tri_cudnn_bind(b, TRI_CUDNN_DELTA, c->workspace + c->at.delta);
    if (!c->deterministic)
        tri_cudnn_bind(b, TRI_CUDNN_DQ_SUM, c->workspace + c->at.dq_sum);
}

static void bind_values(const struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                        struct values *v, struct tri_cudnn_bindings *b)
{
    bool aligned = batch->causal && batch->bottom_right;
    *v = (struct values){.scale = (float)c->op->scale,
                         .one = 1.0f,
                         .hidden = -INFINITY,
                         .window = (float)batch->window,
                         .window_rows =
                             (int32_t)(batch->window + batch->piece.k_rows - batch->piece.q_rows),
                         .keys = (int32_t)batch->k_rows,
                         .queries = (int32_t)batch->q_rows};
    tri_cudnn_bind(b, TRI_CUDNN_SCALE, &v->scale);
    if (c->backward)
        tri_cudnn_bind(b, TRI_CUDNN_ONE, &v->one);
    if (batch->padded)
        tri_cudnn_bind(b, TRI_CUDNN_HIDDEN_PADDING, &v->hidden);
    if (batch->causal)
        tri_cudnn_bind(b, TRI_CUDNN_HIDDEN_FUTURE, &v->hidden);
    if (aligned && !batch->padded) {
        tri_cudnn_bind(b, TRI_CUDNN_ALIGN_K, &v->keys);
        tri_cudnn_bind(b, TRI_CUDNN_ALIGN_Q, &v->queries);
    }
    if (batch->windowed) {
        tri_cudnn_bind(b, TRI_CUDNN_HIDDEN_PAST, &v->hidden);
        tri_cudnn_bind(b, TRI_CUDNN_WINDOW,
                       aligned && batch->padded ? (void *)&v->window_rows : (void *)&v->window);
    }
}

/* dst[rows, heads of the group] += the temporary that begins at `begin`. */
static enum tri_status add_rows(const struct tri_cudnn_call *c, struct tri_view dst, size_t begin,
                                int64_t row, int64_t rows, int64_t head, int64_t heads)
{
    if (rows == 0)
        return TRI_OK;
    struct tri_view src =
        tri_view3(at_temporary(c, begin, row, heads), TRI_BF16, rows, heads, c->q.dim[2]);
    dst.data = at_row(dst, row, head);
    dst.dim[0] = rows;
    dst.dim[1] = heads;
    return tri_cuda_check(tri_kernel_copy(tri_cuda_launch(c->s), true, dst, src),
                          "add gradients of attention");
}

/* The gradients that batches left in the workspace: those of a piece's keys, and of its queries
 * when they were put aside. */
static enum tri_status add_gradients(const struct tri_cudnn_call *c,
                                     const struct tri_attn_piece *piece, bool aside, int64_t k_head)
{
    int64_t q_head = k_head * (c->q.dim[1] / c->k.dim[1]);
    TRI_TRY(add_rows(c, c->dk, c->at.dk, piece->k_row, piece->k_rows, k_head, c->group));
    TRI_TRY(add_rows(c, c->dv, c->at.dv, piece->k_row, piece->k_rows, k_head, c->group));
    return add_rows(c, c->dq, c->at.dq, piece->q_row, aside ? piece->q_rows : 0, q_head,
                    tri_cudnn_query_heads(c));
}

/* Attention over two sets of keys from that over each: o and lse of the rows of a piece. */
static enum tri_status join_output(const struct tri_cudnn_call *c,
                                   const struct tri_attn_piece *piece, int64_t k_head)
{
    int64_t q_head = k_head * (c->q.dim[1] / c->k.dim[1]);
    struct tri_view o = output_aside(c, piece->q_row), lse = lse_aside(c, piece->q_row);
    o.dim[0] = lse.dim[0] = piece->q_rows;
    struct tri_view to = c->o, to_lse = c->lse;
    to.data = at_row(to, piece->q_row, q_head);
    to_lse.data = at_row(to_lse, piece->q_row, q_head);
    to.dim[0] = to_lse.dim[0] = o.dim[0];
    to.dim[1] = to_lse.dim[1] = o.dim[1];
    return tri_cuda_check(tri_kernel_join_attention(tri_cuda_launch(c->s), to, to_lse, o, lse),
                          "join parts of attention");
}

static enum tri_status run_batch(struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                                 void *ctx)
{
    int64_t k_head = *(const int64_t *)ctx;
    struct tri_cudnn_sdpa shape;
    const struct tri_cudnn_plan *plan;
    struct tri_cudnn_bindings bindings = {.count = 0};
    struct values values;
    tri_cudnn_batch_shape(c, batch, &shape);
    TRI_TRY(tri_cudnn_plan_get(&c->engine->plans, &shape, &plan));
    bind_tensors(c, batch, k_head, &bindings);
    bind_values(c, batch, &values, &bindings);
    TRI_TRY(tri_cudnn_plan_run(&c->engine->plans, plan, &bindings, c->workspace + c->at.inside));
    if (!c->backward)
        return batch->aside ? join_output(c, &batch->piece, k_head) : TRI_OK;
    if (batch->square)
        return TRI_OK;
    return add_gradients(c, &batch->piece, batch->aside, k_head);
}

/* Rows of queries that see nothing. */
static enum tri_status clear_blind_rows(const struct tri_cudnn_call *c)
{
    struct tri_cudnn_pieces pieces;
    struct tri_attn_piece piece;
    struct tri_launch l = tri_cuda_launch(c->s);
    bool again;
    tri_cudnn_pieces_begin(&pieces, c);
    while (tri_cudnn_pieces_next(&pieces, &piece, &again)) {
        if (piece.kind != TRI_PIECE_BLIND || c->accumulate_dq)
            continue;
        struct tri_view rows = tri_view_rows(c->backward ? c->dq : c->o, piece.q_row, piece.q_rows);
        TRI_TRY(tri_cuda_check(tri_kernel_zero(l, rows), "clear rows of attention"));
        if (!c->backward)
            TRI_TRY(tri_cuda_check(
                tri_kernel_fill_lse(l, tri_view_rows(c->lse, piece.q_row, piece.q_rows)),
                "clear rows of attention"));
    }
    return TRI_OK;
}

enum tri_status tri_cudnn_call_run(struct tri_cudnn_call *c)
{
    TRI_TRY(tri_cudnn_check(&c->engine->api,
                            c->engine->api.set_stream(c->engine->plans.handle, c->s->stream),
                            "use a stream"));
    TRI_TRY(tri_cudnn_call_tables(c));
    for (int64_t k_head = 0; k_head < c->k.dim[1]; k_head += c->group) {
        TRI_TRY(tri_cudnn_call_batches(c, run_batch, &k_head));
        if (c->backward)
            TRI_TRY(add_gradients(c, &c->squares, c->accumulate_dq, k_head));
    }
    return clear_blind_rows(c);
}
