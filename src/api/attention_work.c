#include "api/attention_work.h"

#include <math.h>
#include <stdint.h>

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

/* ---- a call -----------------------------------------------------------------------------------
 */

void tri_sp_work_close(struct tri_sp_work *w)
{
    tri_store_close(w->store);
    tri_arena_close(w->arena);
}

enum tri_status tri_sp_work_open(struct tri_sp_work *w, struct tri_sp_batch *batch,
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
    *w = (struct tri_sp_work){
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
        tri_sp_work_close(w);
    return st;
}

enum tri_status tri_sp_next_row(struct tri_sp_work *w, struct tri_sp_kept *out)
{
    int64_t s = w->batch->shape.tokens;
    int64_t d = w->op->head_dim;
    struct tri_sp_kept k = {.q = tri_view2(NULL, w->dtype, s, w->mine.query.count * d),
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

struct tri_attention tri_sp_attention_of(const struct tri_sp_work *w, const struct tri_sp_kept *k,
                                         int64_t b)
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

enum tri_status tri_sp_move(const struct tri_sp_work *w, int64_t b, struct tri_chunk chunk,
                            const struct tri_sp_pair *pairs, int count, bool to_heads)
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
