/* The exchange on tensors of any strides: what is not a matrix already is packed into one. */
#include "api/batch.h"

struct tri_exchange tri_sp_exchange(const struct tri_sp_batch *batch, int64_t num_heads,
                                    int64_t num_kv_heads, int64_t head_dim)
{
    return (struct tri_exchange){.exec = batch->device->exec,
                                 .comm = batch->sequence,
                                 .layout = batch->layout,
                                 .num_heads = num_heads,
                                 .num_kv_heads = num_kv_heads,
                                 .head_dim = head_dim};
}

enum tri_status tri_sp_check(const struct tri_sp_batch *batch, const char *name,
                             const struct tri_tensor *t, int64_t tokens, int64_t heads)
{
    if (t->num_dims != 4 || t->dim[0] != batch->shape.rows || t->dim[1] != tokens ||
        t->dim[2] != heads || t->dim[3] < 1)
        return tri_fail(TRI_INVALID,
                        "%s has %d dimensions, %lld x %lld x %lld x %lld; this batch wants (%lld, "
                        "%lld, %lld, D)",
                        name, t->num_dims, (long long)t->dim[0], (long long)t->dim[1],
                        (long long)t->dim[2], (long long)t->dim[3], (long long)batch->shape.rows,
                        (long long)tokens, (long long)heads);
    return TRI_OK;
}

/* Tokens [begin, begin + count) of row b: (count, H, D). */
static struct tri_tensor row_of(struct tri_tensor t, int64_t b, int64_t begin, int64_t count)
{
    t = tri_tensor_slice(tri_tensor_slice(t, 0, b, 1), 1, begin, count);
    for (int d = 0; d < 3; d++) {
        t.dim[d] = t.dim[d + 1];
        t.stride[d] = t.stride[d + 1];
    }
    t.num_dims = 3;
    return t;
}

/* A matrix (count, H*D) as the same (count, H, D). */
static struct tri_tensor matrix_as(struct tri_view v, const struct tri_tensor *like)
{
    struct tri_tensor t = tri_tensor_make(v.data, v.dtype, 3, like->dim);
    t.stride[0] = v.stride[0];
    return t;
}

enum tri_status tri_sp_pack(struct tri_sp_batch *batch, struct tri_view to, struct tri_tensor from,
                            int64_t b, int64_t begin, int64_t count)
{
    struct tri_tensor row = row_of(from, b, begin, count);
    return tri_device_copy(batch->device, matrix_as(to, &row), row);
}

enum tri_status tri_sp_unpack(struct tri_sp_batch *batch, struct tri_tensor to,
                              struct tri_view from, int64_t b, int64_t begin, int64_t count)
{
    struct tri_tensor row = row_of(to, b, begin, count);
    return tri_device_copy(batch->device, row, matrix_as(from, &row));
}

enum tri_status tri_sp_matrix(struct tri_sp_batch *batch, const char *name, struct tri_tensor t,
                              int64_t b, int64_t begin, int64_t count, bool read,
                              struct tri_view *out)
{
    struct tri_tensor row = row_of(t, b, begin, count);
    int64_t h = row.dim[1];
    int64_t d = row.dim[2];
    if ((d == 1 || row.stride[2] == 1) && (h == 1 || row.stride[1] == d) &&
        (count <= 1 || row.stride[0] >= h * d)) {
        *out = tri_view2(row.data, row.dtype, count, h * d);
        if (count > 1)
            out->stride[0] = row.stride[0];
        return TRI_OK;
    }
    TRI_TRY(tri_device_scratch(batch->device, name, t.dtype, count, h * d, out));
    return read ? tri_sp_pack(batch, *out, t, b, begin, count) : TRI_OK;
}

static enum tri_status check_parts(struct tri_sp_batch *batch, int64_t num_heads,
                                   int64_t num_kv_heads, const struct tri_sp_part *parts,
                                   int num_parts)
{
    struct tri_sp_heads mine;
    int64_t numbers[3 + 3 * TRI_SP_MAX_PARTS] = {num_heads, num_kv_heads, num_parts};
    if (num_parts < 1 || num_parts > TRI_SP_MAX_PARTS)
        return tri_fail(TRI_INVALID, "%d tensors in one exchange: 1 to %d", num_parts,
                        TRI_SP_MAX_PARTS);
    for (int p = 0; p < num_parts; p++) {
        numbers[3 + 3 * p] = parts[p].kind;
        numbers[4 + 3 * p] = parts[p].local.dtype;
        numbers[5 + 3 * p] = parts[p].local.dim[3];
    }
    TRI_TRY(
        tri_sp_agree(batch, "the exchange (heads, types, head sizes)", numbers, 3 + 3 * num_parts));
    TRI_TRY(tri_sp_heads(num_heads, num_kv_heads, batch->layout.ranks, batch->rank, &mine));
    for (int p = 0; p < num_parts; p++) {
        bool query = parts[p].kind == TRI_SP_QUERY_HEADS;
        TRI_TRY(tri_sp_check(batch, "the local tensor of an exchange", &parts[p].local,
                             batch->local, query ? num_heads : num_kv_heads));
        TRI_TRY(tri_sp_check(batch, "the tensor of heads of an exchange", &parts[p].heads,
                             batch->shape.tokens, query ? mine.query_count : mine.key_count));
        if (parts[p].local.dtype != parts[p].heads.dtype ||
            parts[p].local.dim[3] != parts[p].heads.dim[3])
            return tri_fail(TRI_INVALID,
                            "the two tensors of an exchange differ in type or D: %s "
                            "%lld and %s %lld",
                            tri_dtype_name(parts[p].local.dtype), (long long)parts[p].local.dim[3],
                            tri_dtype_name(parts[p].heads.dtype), (long long)parts[p].heads.dim[3]);
        if (parts[p].local.dim[3] != parts[0].local.dim[3])
            return tri_fail(TRI_INVALID, "tensors of one exchange have the same head size");
    }
    return TRI_OK;
}

/* One chunk of one row there (to_heads) or back. */
static enum tri_status exchange_chunk(struct tri_sp_batch *batch, const struct tri_exchange *x,
                                      const struct tri_sp_part *parts, int num_parts, int64_t b,
                                      int64_t index, bool to_heads)
{
    struct tri_exchange_part views[TRI_SP_MAX_PARTS] = {{.blocks = false}};
    struct tri_chunk chunk = tri_layout_at(&batch->layout, index, batch->rank);
    for (int p = 0; p < num_parts; p++) {
        views[p].kind = parts[p].kind == TRI_SP_QUERY_HEADS ? TRI_HEADS_QUERY : TRI_HEADS_KEY;
        TRI_TRY(tri_sp_matrix(batch, "exchange of my tokens", parts[p].local, b, chunk.rows.begin,
                              chunk.rows.count, to_heads, &views[p].local));
        TRI_TRY(tri_sp_matrix(batch, "exchange of my heads", parts[p].heads, b, chunk.tokens.begin,
                              chunk.tokens.count, !to_heads, &views[p].heads));
    }
    TRI_TRY(to_heads ? tri_exchange_to_heads(x, index, views, num_parts)
                     : tri_exchange_to_sequence(x, index, views, num_parts));
    for (int p = 0; p < num_parts; p++)
        if (to_heads)
            TRI_TRY(tri_sp_unpack(batch, parts[p].heads, views[p].heads, b, chunk.tokens.begin,
                                  chunk.tokens.count));
        else
            TRI_TRY(tri_sp_unpack(batch, parts[p].local, views[p].local, b, chunk.rows.begin,
                                  chunk.rows.count));
    return TRI_OK;
}

static enum tri_status exchange(struct tri_sp_batch *batch, int64_t num_heads, int64_t num_kv_heads,
                                const struct tri_sp_part *parts, int num_parts, bool to_heads)
{
    TRI_TRY(check_parts(batch, num_heads, num_kv_heads, parts, num_parts));
    struct tri_exchange x = tri_sp_exchange(batch, num_heads, num_kv_heads, parts[0].local.dim[3]);
    if (tri_exchange_is_alone(&x)) {
        for (int p = 0; p < num_parts; p++)
            TRI_TRY(tri_device_copy(batch->device, to_heads ? parts[p].heads : parts[p].local,
                                    to_heads ? parts[p].local : parts[p].heads));
        return TRI_OK;
    }
    struct tri_arena *arena = batch->device->exec.arena;
    size_t mark = tri_arena_mark(arena);
    enum tri_status st = TRI_OK;
    for (int64_t b = 0; b < batch->shape.rows && st == TRI_OK; b++)
        for (int64_t i = 0; i < tri_layout_chunks(&batch->layout) && st == TRI_OK; i++) {
            st = exchange_chunk(batch, &x, parts, num_parts, b, i, to_heads);
            tri_arena_release(arena, mark);
        }
    return st;
}

enum tri_status tri_sp_to_heads(struct tri_sp_batch *batch, int64_t num_heads, int64_t num_kv_heads,
                                const struct tri_sp_part *parts, int num_parts)
{
    return exchange(batch, num_heads, num_kv_heads, parts, num_parts, true);
}

enum tri_status tri_sp_to_sequence(struct tri_sp_batch *batch, int64_t num_heads,
                                   int64_t num_kv_heads, const struct tri_sp_part *parts,
                                   int num_parts)
{
    return exchange(batch, num_heads, num_kv_heads, parts, num_parts, false);
}
