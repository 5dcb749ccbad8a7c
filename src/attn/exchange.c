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

/* h_r*D */
static int64_t block_width(const struct tri_exchange *x, enum tri_head_kind kind, int rank)
{
    int64_t tensors = kind == TRI_HEADS_KEY_VALUE ? 2 : 1;
    return tensors * heads_of_kind(x, rank, kind).count * x->head_dim;
}

int64_t tri_exchange_width(const struct tri_exchange *x, enum tri_head_kind kind)
{
    int64_t width = 0;
    for (int r = 0; r < x->layout.ranks; r++)
        width += block_width(x, kind, r);
    return width;
}

struct tri_view tri_exchange_block(const struct tri_exchange *x, enum tri_head_kind kind,
                                   struct tri_view room, int rank)
{
    int64_t begin = 0;
    if (x->layout.ranks == 1)
        return room;
    for (int r = 0; r < rank; r++)
        begin += block_width(x, kind, r);
    char *data = (char *)room.data + (size_t)(room.dim[0] * begin) * tri_dtype_bytes(room.dtype);
    return tri_view2(data, room.dtype, room.dim[0], block_width(x, kind, rank));
}

/* Whether rank r's first key head is the last one of the rank before it. Query heads are split in
 * order, so ranks next to each other have at most one key head in common. */
static bool shares_first(const struct tri_exchange *x, int rank)
{
    if (rank == 0 || rank == x->layout.ranks)
        return false;
    struct tri_range before = heads_of(x, rank - 1).key;
    return heads_of(x, rank).key.begin < before.begin + before.count;
}

struct tri_range tri_exchange_summed(const struct tri_exchange *x, int rank)
{
    struct tri_range own = heads_of(x, rank).key;
    own.count -= shares_first(x, rank + 1);
    return own;
}

static struct tri_block block_of(struct tri_view v)
{
    size_t size = tri_dtype_bytes(v.dtype);
    return (struct tri_block){.data = v.data,
                              .rows = v.dim[0],
                              .row_bytes = (size_t)v.dim[1] * size,
                              .stride = (size_t)v.stride[0] * size};
}

/* A contiguous matrix as one run of bytes: communicators move it without a stop. */
static struct tri_block run_of(struct tri_view v)
{
    return (struct tri_block){
        .data = v.data, .rows = 1, .row_bytes = tri_view_bytes(v), .stride = tri_view_bytes(v)};
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

/* Both sides of what goes between this rank and rank r. `room` takes the place of a local matrix,
 * unless it is absent. */
static void blocks_of(const struct tri_exchange *x, int64_t index,
                      const struct tri_exchange_part *part, struct tri_view room, int rank,
                      struct tri_block *local, struct tri_block *heads)
{
    struct tri_view rows = rows_from(x, part->heads, index, rank);
    if (part->blocks) {
        *local = run_of(tri_exchange_block(x, part->kind, part->local, rank));
        *heads = run_of(rows);
        return;
    }
    *local = block_of(tri_view_present(room) ? tri_exchange_block(x, part->kind, room, rank)
                                             : columns_for(x, part->local, rank, part->kind));
    *heads = block_of(rows);
}

static enum tri_status all_to_all(const struct tri_exchange *x, int64_t index, bool to_heads,
                                  const struct tri_exchange_part *parts,
                                  const struct tri_view *rooms, int num_parts)
{
    struct tri_block local[TRI_EXCHANGE_MAX_PARTS * TRI_EXCHANGE_MAX_RANKS];
    struct tri_block heads[TRI_EXCHANGE_MAX_PARTS * TRI_EXCHANGE_MAX_RANKS];
    int size = x->comm->size;
    for (int p = 0; p < num_parts; p++) {
        if (parts[p].blocks && !tri_view_contiguous(parts[p].heads))
            return tri_fail(TRI_INTERNAL,
                            "exchange: part %d goes in blocks, but its rows of heads "
                            "have gaps",
                            p);
        for (int r = 0; r < size; r++)
            blocks_of(x, index, &parts[p], rooms[p], r, &local[p * size + r], &heads[p * size + r]);
    }
    return x->comm->ops->all_to_all(x->comm, x->exec.stream, num_parts, to_heads ? local : heads,
                                    to_heads ? heads : local);
}

enum tri_status tri_exchange_to_heads(const struct tri_exchange *x, int64_t index,
                                      const struct tri_exchange_part *parts, int num_parts)
{
    const struct tri_view none[TRI_EXCHANGE_MAX_PARTS] = {{.data = NULL}};
    return all_to_all(x, index, true, parts, none, num_parts);
}

static bool is_replicated(const struct tri_exchange *x)
{
    for (int r = 1; r < x->layout.ranks; r++)
        if (shares_first(x, r))
            return true;
    return false;
}

/* Head i of a block's keys (half 0) or values (half 1). */
static struct tri_view head_of(const struct tri_exchange *x, struct tri_view block, int half,
                               int64_t count, int64_t i)
{
    return tri_view_cols(block, (half * count + i) * x->head_dim, x->head_dim);
}

/* Heads that several ranks hold: each rank's copy is added to the next one's, in their order. */
static enum tri_status sum_copies(const struct tri_exchange *x, enum tri_head_kind kind,
                                  struct tri_view room)
{
    for (int r = 1; r < x->layout.ranks; r++) {
        if (!shares_first(x, r))
            continue;
        struct tri_view from = tri_exchange_block(x, kind, room, r - 1);
        struct tri_view to = tri_exchange_block(x, kind, room, r);
        int64_t before = heads_of(x, r - 1).key.count;
        int64_t count = heads_of(x, r).key.count;
        for (int half = 0; half < (kind == TRI_HEADS_KEY_VALUE ? 2 : 1); half++)
            TRI_TRY(x->exec.ops->add(x->exec.stream, head_of(x, to, half, count, 0),
                                     head_of(x, from, half, before, before - 1)));
    }
    return TRI_OK;
}

/* local (n_r, Hk*D) = the sums in the room of blocks. */
static enum tri_status take_sums(const struct tri_exchange *x, struct tri_view local,
                                 struct tri_view room)
{
    for (int r = 0; r < x->layout.ranks; r++) {
        struct tri_range h = tri_exchange_summed(x, r);
        struct tri_view block = tri_exchange_block(x, TRI_HEADS_KEY, room, r);
        if (h.count > 0)
            TRI_TRY(x->exec.ops->copy(
                x->exec.stream, tri_view_cols(local, h.begin * x->head_dim, h.count * x->head_dim),
                tri_view_cols(block, 0, h.count * x->head_dim)));
    }
    return TRI_OK;
}

enum tri_status tri_exchange_to_sequence(const struct tri_exchange *x, int64_t index,
                                         const struct tri_exchange_part *parts, int num_parts)
{
    struct tri_view rooms[TRI_EXCHANGE_MAX_PARTS] = {{.data = NULL}};
    bool replicated = is_replicated(x);
    size_t mark = tri_arena_mark(x->exec.arena);
    for (int p = 0; p < num_parts; p++) {
        if (!replicated || parts[p].kind == TRI_HEADS_QUERY || parts[p].blocks)
            continue;
        struct tri_view local = parts[p].local;
        struct tri_view room =
            tri_view2(NULL, local.dtype, local.dim[0], tri_exchange_width(x, TRI_HEADS_KEY));
        TRI_TRY(
            tri_arena_alloc(x->exec.arena, "replicated keys", tri_view_bytes(room), &room.data));
        rooms[p] = room;
    }
    TRI_TRY(all_to_all(x, index, false, parts, rooms, num_parts));
    for (int p = 0; p < num_parts && replicated; p++)
        if (parts[p].kind != TRI_HEADS_QUERY) {
            bool blocks = parts[p].blocks;
            TRI_TRY(sum_copies(x, parts[p].kind, blocks ? parts[p].local : rooms[p]));
            if (!blocks)
                TRI_TRY(take_sums(x, parts[p].local, rooms[p]));
        }
    tri_arena_release(x->exec.arena, mark);
    return TRI_OK;
}
