#include "attn/exchange.h"

#include "base/arena.h"

bool tri_exchange_is_alone(const struct tri_exchange *x)
{
    return x->comm == NULL || x->comm->size == 1;
}

static struct tri_heads heads_of(const struct tri_exchange *x, int rank)
{
    return tri_heads_split(x->num_heads, x->num_kv_heads, x->layout.ranks, rank);
}

struct tri_heads tri_exchange_heads(const struct tri_exchange *x)
{
    return heads_of(x, x->comm == NULL ? 0 : x->comm->rank);
}

static struct tri_range heads_of_kind(const struct tri_exchange *x, int rank,
                                      enum tri_head_kind kind)
{
    struct tri_heads h = heads_of(x, rank);
    return kind == TRI_HEADS_QUERY ? h.query : h.key;
}

static struct tri_block block_of(struct tri_view v)
{
    size_t size = tri_dtype_bytes(v.dtype);
    return (struct tri_block){.data = v.data,
                              .rows = v.dim[0],
                              .row_bytes = (size_t)v.dim[1] * size,
                              .stride = (size_t)v.stride[0] * size};
}

/* What rank r gets of my tokens: columns of its heads. */
static struct tri_view columns_for(const struct tri_exchange *x, struct tri_view local, int rank,
                                   enum tri_head_kind kind)
{
    struct tri_range h = heads_of_kind(x, rank, kind);
    return tri_view_cols(local, h.begin * x->head_dim, h.count * x->head_dim);
}

/* What I hold of rank r's tokens: rows of its part of the chunk. */
static struct tri_view rows_from(const struct tri_exchange *x, struct tri_view heads, int64_t index,
                                 int rank)
{
    struct tri_range chunk = tri_layout_chunk(&x->layout, index);
    struct tri_range part = tri_layout_part(&x->layout, index, rank);
    return tri_view_rows(heads, part.begin - chunk.begin, part.count);
}

enum tri_status tri_exchange_to_heads(const struct tri_exchange *x, int64_t index,
                                      const struct tri_exchange_part *parts, int num_parts)
{
    struct tri_block send[TRI_EXCHANGE_MAX_PARTS * TRI_EXCHANGE_MAX_RANKS];
    struct tri_block recv[TRI_EXCHANGE_MAX_PARTS * TRI_EXCHANGE_MAX_RANKS];
    int size = x->comm->size;
    for (int p = 0; p < num_parts; p++)
        for (int r = 0; r < size; r++) {
            send[p * size + r] = block_of(columns_for(x, parts[p].local, r, parts[p].kind));
            recv[p * size + r] = block_of(rows_from(x, parts[p].heads, index, r));
        }
    return x->comm->ops->all_to_all(x->comm, x->exec.stream, num_parts, send, recv);
}

/* Whether some key head lives on several ranks. */
static bool is_replicated(const struct tri_exchange *x)
{
    for (int r = 1; r < x->layout.ranks; r++) {
        struct tri_range before = heads_of(x, r - 1).key;
        if (heads_of(x, r).key.begin < before.begin + before.count)
            return true;
    }
    return false;
}

/* Room for what each rank sends of its key heads: (n_r, h_r*D) of every rank, one after the other.
 */
static enum tri_status get_staging(const struct tri_exchange *x, struct tri_view local,
                                   struct tri_view *staging)
{
    int64_t width = 0;
    for (int r = 0; r < x->layout.ranks; r++)
        width += heads_of(x, r).key.count * x->head_dim;
    struct tri_view room = tri_view2(NULL, local.dtype, local.dim[0], width);
    TRI_TRY(tri_arena_alloc(x->exec.arena, "replicated keys", tri_view_bytes(room), &room.data));
    *staging = room;
    return TRI_OK;
}

/* Columns of rank r in the staging room. */
static struct tri_view staged(const struct tri_exchange *x, struct tri_view staging, int rank)
{
    int64_t begin = 0;
    for (int r = 0; r < rank; r++)
        begin += heads_of(x, r).key.count * x->head_dim;
    return tri_view_cols(staging, begin, heads_of(x, rank).key.count * x->head_dim);
}

/* local = sum over ranks, in their order: the first that holds a head writes it, others add. */
static enum tri_status add_up(const struct tri_exchange *x, struct tri_view local,
                              struct tri_view staging)
{
    const struct tri_ops *ops = x->exec.ops;
    int64_t done = 0; /* heads below have been written */
    for (int r = 0; r < x->layout.ranks; r++) {
        struct tri_range h = heads_of(x, r).key;
        struct tri_view from = staged(x, staging, r);
        for (int64_t i = 0; i < h.count; i++) {
            int64_t head = h.begin + i;
            struct tri_view to = tri_view_cols(local, head * x->head_dim, x->head_dim);
            struct tri_view one = tri_view_cols(from, i * x->head_dim, x->head_dim);
            TRI_TRY(head < done ? ops->add(x->exec.stream, to, one)
                                : ops->copy(x->exec.stream, to, one));
        }
        if (h.begin + h.count > done)
            done = h.begin + h.count;
    }
    return TRI_OK;
}

enum tri_status tri_exchange_to_sequence(const struct tri_exchange *x, int64_t index,
                                         const struct tri_exchange_part *parts, int num_parts)
{
    struct tri_block send[TRI_EXCHANGE_MAX_PARTS * TRI_EXCHANGE_MAX_RANKS];
    struct tri_block recv[TRI_EXCHANGE_MAX_PARTS * TRI_EXCHANGE_MAX_RANKS];
    struct tri_view staging[TRI_EXCHANGE_MAX_PARTS];
    int size = x->comm->size;
    bool replicated = is_replicated(x);
    size_t mark = tri_arena_mark(x->exec.arena);
    for (int p = 0; p < num_parts; p++) {
        bool stage = replicated && parts[p].kind == TRI_HEADS_KEY;
        staging[p] = tri_view_none();
        if (stage)
            TRI_TRY(get_staging(x, parts[p].local, &staging[p]));
        for (int r = 0; r < size; r++) {
            send[p * size + r] = block_of(rows_from(x, parts[p].heads, index, r));
            recv[p * size + r] = block_of(stage ? staged(x, staging[p], r)
                                                : columns_for(x, parts[p].local, r, parts[p].kind));
        }
    }
    TRI_TRY(x->comm->ops->all_to_all(x->comm, x->exec.stream, num_parts, send, recv));
    for (int p = 0; p < num_parts; p++)
        if (tri_view_present(staging[p]))
            TRI_TRY(add_up(x, parts[p].local, staging[p]));
    tri_arena_release(x->exec.arena, mark);
    return TRI_OK;
}
