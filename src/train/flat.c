/* Rows of parameters between host memory and the trainer's flat buffers. */
#include "train/trainer.h"

struct tri_flat tri_flat_weights(struct tri_trainer *t)
{
    if (t->optimizer.master != NULL && t->optimizer.master != t->weights)
        return (struct tri_flat){.trainer = t, .data = t->optimizer.master, .dtype = t->stat};
    return (struct tri_flat){.trainer = t, .data = t->weights, .dtype = t->act};
}

struct tri_flat tri_flat_grads(struct tri_trainer *t)
{
    return (struct tri_flat){.trainer = t, .data = t->grads, .dtype = t->stat};
}

struct tri_flat tri_flat_moment(struct tri_trainer *t, int which)
{
    return (struct tri_flat){
        .trainer = t, .data = which == 0 ? t->optimizer.m : t->optimizer.v, .dtype = t->stat};
}

/* The rows in the flat buffer, and float32 scratch of the same shape in backend memory. */
static enum tri_status prepare(const struct tri_flat *flat, int param, int64_t row, int64_t rows,
                               struct tri_view *there, struct tri_view *scratch)
{
    struct tri_view all = tri_param_view(flat->trainer->model, param, flat->data, flat->dtype);
    struct tri_view part = tri_view_rows(all, row, rows);
    struct tri_view room = part;
    room.dtype = TRI_F32;
    TRI_TRY(tri_arena_alloc(flat->trainer->exec.arena, "rows in transit", tri_view_bytes(room),
                            &room.data));
    *there = part;
    *scratch = room;
    return TRI_OK;
}

enum tri_status tri_flat_sink(void *ctx, int param, int64_t row, int64_t rows, const float *data)
{
    const struct tri_flat *flat = ctx;
    struct tri_exec *x = &flat->trainer->exec;
    size_t mark = tri_arena_mark(x->arena);
    struct tri_view there, scratch;
    TRI_TRY(prepare(flat, param, row, rows, &there, &scratch));
    TRI_TRY(x->ops->upload(x->stream, scratch, data));
    TRI_TRY(x->ops->copy(x->stream, there, scratch));
    TRI_TRY(x->ops->sync(x->stream));
    tri_arena_release(x->arena, mark);
    return TRI_OK;
}

enum tri_status tri_flat_source(void *ctx, int param, int64_t row, int64_t rows, float *data)
{
    const struct tri_flat *flat = ctx;
    struct tri_exec *x = &flat->trainer->exec;
    size_t mark = tri_arena_mark(x->arena);
    struct tri_view there, scratch;
    TRI_TRY(prepare(flat, param, row, rows, &there, &scratch));
    TRI_TRY(x->ops->copy(x->stream, scratch, there));
    TRI_TRY(x->ops->download(x->stream, data, scratch));
    tri_arena_release(x->arena, mark);
    return TRI_OK;
}
