/* Sequence-parallel attention: exchange, attention of my heads, exchange back; chunk by chunk,
 * backward last chunk first (attn/attention.h). */
#include <stdint.h>

#include "api/attention_work.h"

static struct tri_sp_pair query_pair(struct tri_tensor local, struct tri_view heads)
{
    return (struct tri_sp_pair){.kind = TRI_HEADS_QUERY, .local = local, .heads = heads};
}

/* One half of (keys | values). */
static struct tri_sp_pair key_pair(struct tri_tensor local, struct tri_view kv, int half)
{
    int64_t width = kv.dim[1] / 2;
    return (struct tri_sp_pair){
        .kind = TRI_HEADS_KEY, .local = local, .heads = tri_view_cols(kv, half * width, width)};
}

static struct tri_view of_chunk(struct tri_view v, struct tri_chunk chunk)
{
    return tri_view_rows(v, chunk.tokens.begin, chunk.tokens.count);
}

/* ---- forward -----------------------------------------------------------------------------------
 */

static enum tri_status forward_row(struct tri_sp_work *w, int64_t b, struct tri_tensor o,
                                   struct tri_tensor q, struct tri_tensor k, struct tri_tensor v)
{
    struct tri_sp_kept kept;
    TRI_TRY(tri_sp_next_row(w, &kept));
    struct tri_attention a = tri_sp_attention_of(w, &kept, b);
    for (int64_t i = 0; i < tri_layout_chunks(&w->batch->layout); i++) {
        struct tri_chunk chunk = tri_layout_at(&w->batch->layout, i, w->batch->rank);
        struct tri_view kv;
        TRI_TRY(
            tri_store_fill(w->store, kept.kv_slot, chunk.tokens.begin, chunk.tokens.count, &kv));
        const struct tri_sp_pair in[3] = {query_pair(q, of_chunk(kept.q, chunk)),
                                          key_pair(k, kv, 0), key_pair(v, kv, 1)};
        TRI_TRY(tri_sp_move(w, b, chunk, in, 3, true));
        TRI_TRY(tri_store_put(w->store, kept.kv_slot, chunk.tokens.begin, chunk.tokens.count));
        TRI_TRY(tri_attention_forward(
            &a, chunk.tokens, tri_view_heads(of_chunk(kept.o, chunk), w->mine.query.count),
            of_chunk(kept.lse, chunk),
            tri_view_heads(of_chunk(kept.q, chunk), w->mine.query.count)));
        const struct tri_sp_pair out = query_pair(o, of_chunk(kept.o, chunk));
        TRI_TRY(tri_sp_move(w, b, chunk, &out, 1, false));
    }
    return TRI_OK;
}

static enum tri_status check(const struct tri_sp_batch *batch, const char *name,
                             const struct tri_tensor *t, int64_t heads, int64_t head_dim,
                             enum tri_dtype dtype)
{
    TRI_TRY(tri_sp_check(batch, name, t, batch->local, heads));
    if (t->dim[3] != head_dim || t->dtype != dtype)
        return tri_fail(TRI_INVALID, "%s is %s with heads of %lld; this attention wants %s of %lld",
                        name, tri_dtype_name(t->dtype), (long long)t->dim[3], tri_dtype_name(dtype),
                        (long long)head_dim);
    return TRI_OK;
}

enum tri_status tri_sp_attention_forward(struct tri_sp_batch *batch,
                                         const struct tri_sp_attention *op, struct tri_tensor o,
                                         void *kept, struct tri_tensor q, struct tri_tensor k,
                                         struct tri_tensor v)
{
    struct tri_sp_work w;
    size_t mark = tri_arena_mark(batch->device->exec.arena);
    TRI_TRY(tri_sp_work_open(&w, batch, op, q.dtype, kept));
    enum tri_status st = check(batch, "q", &q, op->num_heads, op->head_dim, q.dtype);
    if (st == TRI_OK)
        st = check(batch, "o", &o, op->num_heads, op->head_dim, q.dtype);
    if (st == TRI_OK)
        st = check(batch, "k", &k, op->num_kv_heads, op->head_dim, q.dtype);
    if (st == TRI_OK)
        st = check(batch, "v", &v, op->num_kv_heads, op->head_dim, q.dtype);
    for (int64_t b = 0; b < batch->shape.rows && st == TRI_OK; b++)
        st = forward_row(&w, b, o, q, k, v);
    tri_sp_work_close(&w);
    tri_arena_release(batch->device->exec.arena, mark);
    return st;
}

/* ---- backward ----------------------------------------------------------------------------------
 */

/* Scratch of a row's backward. */
struct gradients {
    struct tri_view dout, dq, dkv; /* of a chunk, dtype of the tensors */
    struct tri_view dkv_all;       /* (S, 2*hk*D), statistics */
};

static enum tri_status get_gradients(const struct tri_sp_work *w, struct gradients *out)
{
    int64_t q = w->mine.query.count * w->op->head_dim;
    int64_t kv = 2 * w->mine.key.count * w->op->head_dim;
    int64_t longest = tri_layout_chunk(&w->batch->layout, 0).count;
    struct tri_device *device = w->batch->device;
    TRI_TRY(tri_device_scratch(device, "d output of my heads", w->dtype, longest, q, &out->dout));
    TRI_TRY(tri_device_scratch(device, "d queries of my heads", w->dtype, longest, q, &out->dq));
    TRI_TRY(tri_device_scratch(device, "d keys and values of my heads", w->dtype, longest, kv,
                               &out->dkv));
    return tri_device_scratch(device, "d keys and values of a row", w->stat, w->batch->shape.tokens,
                              kv, &out->dkv_all);
}

static enum tri_status backward_row(struct tri_sp_work *w, int64_t b, const struct gradients *g,
                                    struct tri_tensor dq, struct tri_tensor dk,
                                    struct tri_tensor dv, struct tri_tensor dout)
{
    const struct tri_ops *ops = w->batch->device->exec.ops;
    struct tri_stream *s = w->batch->device->exec.stream;
    int64_t heads = w->mine.query.count;
    int64_t tokens = w->batch->shape.tokens;
    struct tri_sp_kept kept;
    struct tri_view kv;
    TRI_TRY(tri_sp_next_row(w, &kept));
    struct tri_attention a = tri_sp_attention_of(w, &kept, b);
    /* The forward filled this memory: the store of this call only has to know. */
    TRI_TRY(tri_store_fill(w->store, kept.kv_slot, 0, tokens, &kv));
    TRI_TRY(tri_store_put(w->store, kept.kv_slot, 0, tokens));
    TRI_TRY(ops->zero(s, g->dkv_all));
    for (int64_t i = tri_layout_chunks(&w->batch->layout) - 1; i >= 0; i--) {
        struct tri_chunk chunk = tri_layout_at(&w->batch->layout, i, w->batch->rank);
        struct tri_view dout_heads = tri_view_rows(g->dout, 0, chunk.tokens.count);
        struct tri_view dq_heads = tri_view_rows(g->dq, 0, chunk.tokens.count);
        struct tri_view dkv_heads = tri_view_rows(g->dkv, 0, chunk.tokens.count);
        const struct tri_sp_pair in = query_pair(dout, dout_heads);
        TRI_TRY(tri_sp_move(w, b, chunk, &in, 1, true));
        TRI_TRY(tri_attention_backward(
            &a, chunk.tokens, tri_view_heads(dq_heads, heads), g->dkv_all,
            tri_view_heads(dout_heads, heads), tri_view_heads(of_chunk(kept.q, chunk), heads),
            tri_view_heads(of_chunk(kept.o, chunk), heads), of_chunk(kept.lse, chunk)));
        /* Final, since later chunks came first. */
        TRI_TRY(ops->copy(s, dkv_heads, of_chunk(g->dkv_all, chunk)));
        const struct tri_sp_pair out[3] = {query_pair(dq, dq_heads), key_pair(dk, dkv_heads, 0),
                                           key_pair(dv, dkv_heads, 1)};
        TRI_TRY(tri_sp_move(w, b, chunk, out, 3, false));
    }
    return TRI_OK;
}

enum tri_status tri_sp_attention_backward(struct tri_sp_batch *batch,
                                          const struct tri_sp_attention *op, struct tri_tensor dq,
                                          struct tri_tensor dk, struct tri_tensor dv,
                                          struct tri_tensor dout, const void *kept)
{
    struct tri_sp_work w;
    struct gradients g;
    size_t mark = tri_arena_mark(batch->device->exec.arena);
    if (kept == NULL)
        return tri_fail(TRI_INVALID, "the backward of attention needs what its forward kept");
    TRI_TRY(tri_sp_work_open(&w, batch, op, dout.dtype, (void *)(uintptr_t)kept));
    enum tri_status st = check(batch, "dout", &dout, op->num_heads, op->head_dim, dout.dtype);
    if (st == TRI_OK)
        st = check(batch, "dq", &dq, op->num_heads, op->head_dim, dout.dtype);
    if (st == TRI_OK)
        st = check(batch, "dk", &dk, op->num_kv_heads, op->head_dim, dout.dtype);
    if (st == TRI_OK)
        st = check(batch, "dv", &dv, op->num_kv_heads, op->head_dim, dout.dtype);
    if (st == TRI_OK)
        st = get_gradients(&w, &g);
    for (int64_t b = 0; b < batch->shape.rows && st == TRI_OK; b++)
        st = backward_row(&w, b, &g, dq, dk, dv, dout);
    tri_sp_work_close(&w);
    tri_arena_release(batch->device->exec.arena, mark);
    return st;
}
