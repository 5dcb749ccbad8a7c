/* Sequence-parallel attention on memory of the caller: exchange, attention of my heads, exchange
 * back; chunk by chunk, backward last chunk first (attn/attention.h). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/batch.h"
#include "attn/attention.h"

/* What one call works with. */
struct work {
    struct tri_sp_batch *batch;
    const struct tri_sp_attention *op;
    enum tri_dtype dtype, stat;
    struct tri_heads mine;
    struct tri_exchange exchange;
    struct tri_memory lender; /* memory of the caller, or scratch */
    struct tri_arena *arena;  /* over it */
    struct tri_store *store;
};

/* Of one row; laid out the same by forward and backward. */
struct kept {
    struct tri_view q;   /* (S, hq*D) */
    int kv_slot;         /* (S, 2*hk*D) */
    struct tri_view o;   /* (S, hq*D) */
    struct tri_view lse; /* (S, hq), float32 or float64 */
};

/* ---- memory of the caller as an arena ----------------------------------------------------------
 */

static enum tri_status lend(void *ctx, size_t bytes, void **base)
{
    (void)bytes;
    *base = ctx;
    return TRI_OK;
}

static enum tri_status lent(void *ctx, void *base, size_t from, size_t to)
{
    (void)ctx;
    (void)base;
    (void)from;
    (void)to;
    return TRI_OK;
}

static void give_back(void *ctx, void *base, size_t bytes)
{
    (void)ctx;
    (void)base;
    (void)bytes;
}

/* ---- sizes -------------------------------------------------------------------------------------
 */

static enum tri_dtype statistics(enum tri_dtype dtype)
{
    return dtype == TRI_F64 ? TRI_F64 : TRI_F32;
}

static size_t aligned(int64_t rows, int64_t cols, enum tri_dtype dtype)
{
    size_t bytes = (size_t)rows * (size_t)cols * tri_dtype_bytes(dtype);
    return (bytes + TRI_ARENA_ALIGN - 1) / TRI_ARENA_ALIGN * TRI_ARENA_ALIGN;
}

static enum tri_status check_op(const struct tri_sp_batch *batch, const struct tri_sp_attention *op,
                                enum tri_dtype dtype)
{
    TRI_TRY(tri_heads_check(op->num_heads, op->num_kv_heads, batch->layout.ranks));
    if (op->head_dim < 1 || op->window < 0 || !(op->scale >= 0))
        return tri_fail(TRI_INVALID, "attention with head_dim %lld, window %lld, scale %g",
                        (long long)op->head_dim, (long long)op->window, op->scale);
    if (dtype != TRI_F32 && dtype != TRI_BF16 && dtype != TRI_F64)
        return tri_fail(TRI_UNSUPPORTED, "attention of %s: float32, bfloat16 or float64",
                        tri_dtype_name(dtype));
    return TRI_OK;
}

size_t tri_sp_attention_kept_bytes(const struct tri_sp_batch *batch,
                                   const struct tri_sp_attention *op, enum tri_dtype dtype)
{
    if (check_op(batch, op, dtype) != TRI_OK)
        return 0;
    struct tri_heads h =
        tri_heads_split(op->num_heads, op->num_kv_heads, batch->layout.ranks, batch->rank);
    int64_t s = batch->shape.tokens;
    size_t row = 2 * aligned(s, h.query.count * op->head_dim, dtype) +
                 aligned(s, 2 * h.key.count * op->head_dim, dtype) +
                 aligned(s, h.query.count, statistics(dtype));
    return (size_t)batch->shape.rows * row;
}

/* ---- one call ----------------------------------------------------------------------------------
 */

static void close_work(struct work *w)
{
    tri_store_close(w->store);
    tri_arena_close(w->arena);
}

/* Fill `w`, which must not move. `memory` NULL: scratch that the caller releases. */
static enum tri_status open_work(struct work *w, struct tri_sp_batch *batch,
                                 const struct tri_sp_attention *op, enum tri_dtype dtype,
                                 void *memory)
{
    const int64_t numbers[] = {op->num_heads, op->num_kv_heads, op->head_dim, op->window, dtype};
    TRI_TRY(tri_sp_agree(batch, "the attention (heads, head size, window, type)", numbers,
                         sizeof numbers / sizeof *numbers));
    TRI_TRY(check_op(batch, op, dtype));
    struct tri_exec exec = batch->device->exec;
    size_t bytes = tri_sp_attention_kept_bytes(batch, op, dtype);
    if ((uintptr_t)memory % 64 != 0)
        return tri_fail(TRI_INVALID, "memory for what attention keeps must be aligned to 64 bytes");
    if (memory == NULL)
        TRI_TRY(tri_arena_alloc(exec.arena, "attention at work", bytes, &memory));
    *w = (struct work){
        .batch = batch,
        .op = op,
        .dtype = dtype,
        .stat = statistics(dtype),
        .mine = tri_heads_split(op->num_heads, op->num_kv_heads, batch->layout.ranks, batch->rank),
        .exchange = tri_sp_exchange(batch, op->num_heads, op->num_kv_heads, op->head_dim),
        .lender = {.name = "the caller's",
                   .ctx = memory,
                   .reserve = lend,
                   .commit = lent,
                   .release = give_back}};
    TRI_TRY(tri_arena_open(&w->lender, bytes, &w->arena));
    exec.arena = w->arena;
    enum tri_status st = tri_store_open(exec, &w->store);
    if (st != TRI_OK)
        close_work(w);
    return st;
}

/* The next row's place. */
static enum tri_status next_row(struct work *w, struct kept *out)
{
    int64_t s = w->batch->shape.tokens;
    int64_t d = w->op->head_dim;
    struct kept k = {.q = tri_view2(NULL, w->dtype, s, w->mine.query.count * d),
                     .o = tri_view2(NULL, w->dtype, s, w->mine.query.count * d),
                     .lse = tri_view2(NULL, w->stat, s, w->mine.query.count)};
    TRI_TRY(tri_arena_alloc(w->arena, "queries", tri_view_bytes(k.q), &k.q.data));
    TRI_TRY(tri_store_add(w->store, "keys and values", TRI_TIER_DEVICE, w->dtype, s,
                          2 * w->mine.key.count * d, &k.kv_slot));
    TRI_TRY(tri_arena_alloc(w->arena, "outputs", tri_view_bytes(k.o), &k.o.data));
    TRI_TRY(tri_arena_alloc(w->arena, "log-sum-exp", tri_view_bytes(k.lse), &k.lse.data));
    *out = k;
    return TRI_OK;
}

static struct tri_attention attention_of(const struct work *w, const struct kept *k, int64_t b)
{
    double scale = w->op->scale;
    return (struct tri_attention){.exec = w->batch->device->exec,
                                  .batch = &w->batch->rows[b],
                                  .store = w->store,
                                  .kv_slot = k->kv_slot,
                                  .num_heads = w->op->num_heads,
                                  .num_kv_heads = w->op->num_kv_heads,
                                  .heads = w->mine,
                                  .window = w->op->window,
                                  .scale = scale > 0 ? scale : 1 / sqrt((double)w->op->head_dim),
                                  .deterministic = w->op->deterministic};
}

/* A tensor of the caller and the same in the layout of heads. */
struct pair {
    enum tri_head_kind kind;
    struct tri_tensor local;
    struct tri_view heads; /* rows of the chunk */
};

/* Bring tensors of a chunk to heads, or back: with one rank by a copy. */
static enum tri_status move(const struct work *w, int64_t b, struct tri_chunk chunk,
                            const struct pair *pairs, int count, bool to_heads)
{
    struct tri_sp_batch *batch = w->batch;
    struct tri_exchange_part parts[TRI_EXCHANGE_MAX_PARTS];
    if (tri_exchange_is_alone(&w->exchange)) {
        for (int i = 0; i < count; i++)
            TRI_TRY(to_heads ? tri_sp_pack(batch, pairs[i].heads, pairs[i].local, b,
                                           chunk.rows.begin, chunk.rows.count)
                             : tri_sp_unpack(batch, pairs[i].local, pairs[i].heads, b,
                                             chunk.rows.begin, chunk.rows.count));
        return TRI_OK;
    }
    size_t mark = tri_arena_mark(batch->device->exec.arena);
    for (int i = 0; i < count; i++) {
        parts[i] = (struct tri_exchange_part){.kind = pairs[i].kind, .heads = pairs[i].heads};
        TRI_TRY(tri_sp_matrix(batch, "my tokens", pairs[i].local, b, chunk.rows.begin,
                              chunk.rows.count, to_heads, &parts[i].local));
    }
    TRI_TRY(to_heads ? tri_exchange_to_heads(&w->exchange, chunk.index, parts, count)
                     : tri_exchange_to_sequence(&w->exchange, chunk.index, parts, count));
    for (int i = 0; i < count && !to_heads; i++)
        TRI_TRY(tri_sp_unpack(batch, pairs[i].local, parts[i].local, b, chunk.rows.begin,
                              chunk.rows.count));
    tri_arena_release(batch->device->exec.arena, mark);
    return TRI_OK;
}

static struct pair query_pair(struct tri_tensor local, struct tri_view heads)
{
    return (struct pair){.kind = TRI_HEADS_QUERY, .local = local, .heads = heads};
}

/* One half of (keys | values). */
static struct pair key_pair(struct tri_tensor local, struct tri_view kv, int half)
{
    int64_t width = kv.dim[1] / 2;
    return (struct pair){
        .kind = TRI_HEADS_KEY, .local = local, .heads = tri_view_cols(kv, half * width, width)};
}

static struct tri_view of_chunk(struct tri_view v, struct tri_chunk chunk)
{
    return tri_view_rows(v, chunk.tokens.begin, chunk.tokens.count);
}

/* ---- forward -----------------------------------------------------------------------------------
 */

static enum tri_status forward_row(struct work *w, int64_t b, struct tri_tensor o,
                                   struct tri_tensor q, struct tri_tensor k, struct tri_tensor v)
{
    struct kept kept;
    TRI_TRY(next_row(w, &kept));
    struct tri_attention a = attention_of(w, &kept, b);
    for (int64_t i = 0; i < tri_layout_chunks(&w->batch->layout); i++) {
        struct tri_chunk chunk = tri_layout_at(&w->batch->layout, i, w->batch->rank);
        struct tri_view kv;
        TRI_TRY(
            tri_store_fill(w->store, kept.kv_slot, chunk.tokens.begin, chunk.tokens.count, &kv));
        const struct pair in[3] = {query_pair(q, of_chunk(kept.q, chunk)), key_pair(k, kv, 0),
                                   key_pair(v, kv, 1)};
        TRI_TRY(move(w, b, chunk, in, 3, true));
        TRI_TRY(tri_store_put(w->store, kept.kv_slot, chunk.tokens.begin, chunk.tokens.count));
        TRI_TRY(tri_attention_forward(
            &a, chunk.tokens, tri_view_heads(of_chunk(kept.o, chunk), w->mine.query.count),
            of_chunk(kept.lse, chunk),
            tri_view_heads(of_chunk(kept.q, chunk), w->mine.query.count)));
        const struct pair out = query_pair(o, of_chunk(kept.o, chunk));
        TRI_TRY(move(w, b, chunk, &out, 1, false));
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
    struct work w;
    size_t mark = tri_arena_mark(batch->device->exec.arena);
    TRI_TRY(open_work(&w, batch, op, q.dtype, kept));
    enum tri_status st = check(batch, "q", &q, op->num_heads, op->head_dim, q.dtype);
    if (st == TRI_OK)
        st = check(batch, "o", &o, op->num_heads, op->head_dim, q.dtype);
    if (st == TRI_OK)
        st = check(batch, "k", &k, op->num_kv_heads, op->head_dim, q.dtype);
    if (st == TRI_OK)
        st = check(batch, "v", &v, op->num_kv_heads, op->head_dim, q.dtype);
    for (int64_t b = 0; b < batch->shape.rows && st == TRI_OK; b++)
        st = forward_row(&w, b, o, q, k, v);
    close_work(&w);
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

static enum tri_status get_gradients(const struct work *w, struct gradients *out)
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

static enum tri_status backward_row(struct work *w, int64_t b, const struct gradients *g,
                                    struct tri_tensor dq, struct tri_tensor dk,
                                    struct tri_tensor dv, struct tri_tensor dout)
{
    const struct tri_ops *ops = w->batch->device->exec.ops;
    struct tri_stream *s = w->batch->device->exec.stream;
    int64_t heads = w->mine.query.count;
    int64_t tokens = w->batch->shape.tokens;
    struct kept kept;
    struct tri_view kv;
    TRI_TRY(next_row(w, &kept));
    struct tri_attention a = attention_of(w, &kept, b);
    /* The forward filled this memory: the store of this call only has to know. */
    TRI_TRY(tri_store_fill(w->store, kept.kv_slot, 0, tokens, &kv));
    TRI_TRY(tri_store_put(w->store, kept.kv_slot, 0, tokens));
    TRI_TRY(ops->zero(s, g->dkv_all));
    for (int64_t i = tri_layout_chunks(&w->batch->layout) - 1; i >= 0; i--) {
        struct tri_chunk chunk = tri_layout_at(&w->batch->layout, i, w->batch->rank);
        struct tri_view dout_heads = tri_view_rows(g->dout, 0, chunk.tokens.count);
        struct tri_view dq_heads = tri_view_rows(g->dq, 0, chunk.tokens.count);
        struct tri_view dkv_heads = tri_view_rows(g->dkv, 0, chunk.tokens.count);
        const struct pair in = query_pair(dout, dout_heads);
        TRI_TRY(move(w, b, chunk, &in, 1, true));
        TRI_TRY(tri_attention_backward(
            &a, chunk.tokens, tri_view_heads(dq_heads, heads), g->dkv_all,
            tri_view_heads(dout_heads, heads), tri_view_heads(of_chunk(kept.q, chunk), heads),
            tri_view_heads(of_chunk(kept.o, chunk), heads), of_chunk(kept.lse, chunk)));
        /* Final, since later chunks came first. */
        TRI_TRY(ops->copy(s, dkv_heads, of_chunk(g->dkv_all, chunk)));
        const struct pair out[3] = {query_pair(dq, dq_heads), key_pair(dk, dkv_heads, 0),
                                    key_pair(dv, dkv_heads, 1)};
        TRI_TRY(move(w, b, chunk, out, 3, false));
    }
    return TRI_OK;
}

enum tri_status tri_sp_attention_backward(struct tri_sp_batch *batch,
                                          const struct tri_sp_attention *op, struct tri_tensor dq,
                                          struct tri_tensor dk, struct tri_tensor dv,
                                          struct tri_tensor dout, const void *kept)
{
    struct work w;
    struct gradients g;
    size_t mark = tri_arena_mark(batch->device->exec.arena);
    if (kept == NULL)
        return tri_fail(TRI_INVALID, "the backward of attention needs what its forward kept");
    TRI_TRY(open_work(&w, batch, op, dout.dtype, (void *)(uintptr_t)kept));
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
    close_work(&w);
    tri_arena_release(batch->device->exec.arena, mark);
    return st;
}
