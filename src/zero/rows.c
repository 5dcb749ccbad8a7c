/* Rows of parameters between host memory and buffers of which each rank may hold a part. */
#include "base/arena.h"
#include "base/range.h"
#include "zero/zero.h"

/* Elements of a unit. */
static struct tri_range span_of(const struct tri_zero *z, int param, int64_t row, int64_t rows)
{
    const struct tri_param *p = &z->model->params[param];
    int64_t width = tri_param_width(p);
    int64_t first = p->offset - z->model->unit_begin[tri_model_unit(z->model, param)];
    return (struct tri_range){first + row * width, rows * width};
}

/* What of it a rank holds; empty when there is none. */
static struct tri_range held(const struct tri_zero *z, const struct tri_zero_buffer *buffer,
                             int param, struct tri_range span, int rank)
{
    if (buffer->holds == TRI_ZERO_HOLDS_ALL)
        return span;
    int64_t part = z->partition.units[tri_model_unit(z->model, param)].part;
    int64_t begin = span.begin > part * rank ? span.begin : part * rank;
    int64_t end = span.begin + span.count;
    end = end < part * (rank + 1) ? end : part * (rank + 1);
    return (struct tri_range){begin, end > begin ? end - begin : 0};
}

bool tri_zero_holds_rows(const struct tri_zero *z, const struct tri_zero_buffer *buffer, int param,
                         int64_t row, int64_t rows)
{
    return held(z, buffer, param, span_of(z, param, row, rows), z->partition.rank).count > 0;
}

/* Where elements of a unit that this rank holds are in the buffer. */
static struct tri_view view_of(const struct tri_zero *z, const struct tri_zero_buffer *buffer,
                               int param, struct tri_range range)
{
    const struct tri_zero_unit *unit = &z->partition.units[tri_model_unit(z->model, param)];
    int64_t first = buffer->holds == TRI_ZERO_HOLDS_OWN
                        ? unit->own + range.begin - z->partition.rank * unit->part
                        : unit->full + range.begin;
    return tri_view1((char *)buffer->data + (size_t)first * tri_dtype_bytes(buffer->dtype),
                     buffer->dtype, range.count);
}

static enum tri_status get_room(struct tri_zero *z, int64_t count, float **out)
{
    void *room;
    TRI_TRY(
        tri_arena_alloc(z->exec.arena, "rows in transit", (size_t)count * sizeof(float), &room));
    *out = room;
    return TRI_OK;
}

enum tri_status tri_zero_write_rows(struct tri_zero *z, const struct tri_zero_buffer *buffer,
                                    int param, int64_t row, int64_t rows, const float *host)
{
    struct tri_exec *x = &z->exec;
    struct tri_range span = span_of(z, param, row, rows);
    struct tri_range mine = held(z, buffer, param, span, z->partition.rank);
    size_t mark = tri_arena_mark(x->arena);
    float *room;
    if (mine.count == 0)
        return TRI_OK;
    TRI_TRY(get_room(z, mine.count, &room));
    struct tri_view rows_f32 = tri_view1(room, TRI_F32, mine.count);
    TRI_TRY(x->ops->upload(x->stream, rows_f32, host + (mine.begin - span.begin)));
    TRI_TRY(x->ops->copy(x->stream, view_of(z, buffer, param, mine), rows_f32));
    TRI_TRY(x->ops->sync(x->stream));
    tri_arena_release(x->arena, mark);
    return TRI_OK;
}

/* A run of the room as a block; blocks to and from this rank itself are empty: it is there. */
static struct tri_block block_of(float *room, struct tri_range span, struct tri_range range,
                                 bool travels)
{
    size_t bytes = travels ? (size_t)range.count * sizeof(float) : 0;
    return (struct tri_block){.data = bytes > 0 ? room + (range.begin - span.begin) : room,
                              .rows = bytes > 0,
                              .row_bytes = bytes,
                              .stride = bytes};
}

/* The elements of the span that other ranks hold come to the reader. */
static enum tri_status collect(struct tri_zero *z, const struct tri_zero_buffer *buffer, int param,
                               struct tri_range span, int reader, float *room)
{
    struct tri_comm *world = z->world;
    struct tri_block *send = z->blocks;
    struct tri_block *recv = z->blocks + world->size;
    struct tri_range mine = held(z, buffer, param, span, world->rank);
    bool reads = reader < 0 || reader == world->rank;
    for (int r = 0; r < world->size; r++) {
        bool other = r != world->rank;
        send[r] = block_of(room, span, mine, other && (reader < 0 || reader == r));
        recv[r] = block_of(room, span, held(z, buffer, param, span, r), other && reads);
    }
    return world->ops->all_to_all(world, z->exec.stream, 1, send, recv);
}

bool tri_zero_is_shared(const struct tri_zero *z, const struct tri_zero_buffer *buffer)
{
    return buffer->holds != TRI_ZERO_HOLDS_ALL && z->partition.ranks > 1;
}

enum tri_status tri_zero_read_rows(struct tri_zero *z, const struct tri_zero_buffer *buffer,
                                   int param, int64_t row, int64_t rows, int reader, float *host)
{
    struct tri_exec *x = &z->exec;
    struct tri_range span = span_of(z, param, row, rows);
    struct tri_range mine = held(z, buffer, param, span, z->partition.rank);
    size_t mark = tri_arena_mark(x->arena);
    float *room;
    TRI_TRY(get_room(z, span.count, &room));
    if (mine.count > 0)
        TRI_TRY(x->ops->copy(x->stream,
                             tri_view1(room + (mine.begin - span.begin), TRI_F32, mine.count),
                             view_of(z, buffer, param, mine)));
    if (tri_zero_is_shared(z, buffer))
        TRI_TRY(collect(z, buffer, param, span, reader, room));
    if (reader < 0 || z->world == NULL || reader == z->world->rank)
        TRI_TRY(x->ops->download(x->stream, host, tri_view1(room, TRI_F32, span.count)));
    else
        TRI_TRY(x->ops->sync(x->stream)); /* the room is free for others afterwards */
    tri_arena_release(x->arena, mark);
    return TRI_OK;
}
