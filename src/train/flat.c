/* Rows of parameters between host memory and the trainer's buffers. */
#include <stdlib.h>

#include "ckpt/hf_rows.h"
#include "train/trainer.h"

static struct tri_flat flat_of(struct tri_trainer *t, void *data, enum tri_dtype dtype,
                               enum tri_zero_holds holds)
{
    return (struct tri_flat){
        .zero = t->zero, .buffer = {.data = data, .dtype = dtype, .holds = holds}, .reader = -1};
}

struct tri_flat tri_flat_weights(struct tri_trainer *t)
{
    if (t->optimizer.master != NULL && t->optimizer.master != t->zero->weights)
        return flat_of(t, t->optimizer.master, t->zero->stat, TRI_ZERO_HOLDS_OWN);
    return tri_flat_used_weights(t);
}

struct tri_flat tri_flat_used_weights(struct tri_trainer *t)
{
    return flat_of(t, t->zero->weights, t->zero->act,
                   t->zero->stage == 3 ? TRI_ZERO_HOLDS_OWN : TRI_ZERO_HOLDS_ALL);
}

struct tri_flat tri_flat_grads(struct tri_trainer *t)
{
    return flat_of(t, t->zero->grads, t->zero->stat,
                   t->zero->stage >= 2 ? TRI_ZERO_HOLDS_OWN : TRI_ZERO_HOLDS_PART);
}

struct tri_flat tri_flat_moment(struct tri_trainer *t, int which)
{
    return flat_of(t, which == 0 ? t->optimizer.m : t->optimizer.v, t->zero->stat,
                   TRI_ZERO_HOLDS_OWN);
}

enum tri_status tri_flat_sink(void *ctx, int param, int64_t row, int64_t rows, const float *data)
{
    const struct tri_flat *flat = ctx;
    return tri_zero_write_rows(flat->zero, &flat->buffer, param, row, rows, data);
}

enum tri_status tri_flat_source(void *ctx, int param, int64_t row, int64_t rows, float *data)
{
    const struct tri_flat *flat = ctx;
    return tri_zero_read_rows(flat->zero, &flat->buffer, param, row, rows, flat->reader, data);
}

enum tri_status tri_flat_give(struct tri_flat *flat)
{
    const struct tri_model *model = flat->zero->model;
    enum tri_status st = TRI_OK;
    if (!tri_zero_is_shared(flat->zero, &flat->buffer))
        return TRI_OK;
    float *room = malloc((size_t)tri_hf_piece_room(model) * sizeof *room);
    if (room == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a piece of the model");
    for (int i = 0; i < model->num_hf && st == TRI_OK; i++)
        st = tri_hf_gather_pieces(model, i, tri_flat_source, flat, room, NULL, NULL);
    free(room);
    return st;
}
