/* Lengths and offsets of ragged and padded batches, written by the card itself: they travel as
 * arguments of a small kernel, so that the host neither copies nor waits. */
#include <string.h>

#include "backend/cuda/attn_cudnn_call.h"
#include "backend/cuda/kernels/attn_glue.h"

static void start_entries(const struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                          const struct tri_cudnn_sdpa *shape, struct tri_kernel_entries *out)
{
    const struct tri_cudnn_strides of[TRI_KERNEL_OFFSETS] = {shape->q,  shape->k,   shape->v,
                                                             shape->o,  shape->lse, shape->dout,
                                                             shape->dq, shape->dkv, shape->dkv};
    int64_t *offsets = (int64_t *)(c->workspace + c->at.offsets);
    memset(out, 0, sizeof *out);
    out->q_length = (int32_t *)(c->workspace + c->at.q_length) + batch->slot;
    out->k_length = (int32_t *)(c->workspace + c->at.k_length) + batch->slot;
    int used = !batch->ragged ? 0 : c->backward ? TRI_KERNEL_OFFSETS : TRI_CUDNN_LSE;
    for (int i = 0; i < used; i++) {
        out->offset[i] = offsets + i * c->slots + batch->slot;
        out->stride[i] = of[i].token;
    }
    for (int id = TRI_CUDNN_Q; id <= TRI_CUDNN_DV; id++)
        if (id == TRI_CUDNN_K || id == TRI_CUDNN_V || id == TRI_CUDNN_DK || id == TRI_CUDNN_DV)
            out->of_keys |= UINT32_C(1) << (id - TRI_CUDNN_Q);
}

/* Entry number i of the batch; past the pieces, empty ones at the end of the last. */
static enum tri_status add_entry(const struct tri_cudnn_call *c,
                                 const struct tri_cudnn_batch *batch, int64_t i,
                                 struct tri_kernel_entry entry, struct tri_kernel_entries *entries)
{
    entries->entry[entries->count++] = entry;
    bool last = i + 1 == batch->b;
    if (!last && entries->count < TRI_KERNEL_ENTRIES)
        return TRI_OK;
    entries->last = last;
    TRI_TRY(tri_cuda_check(tri_kernel_write_entries(tri_cuda_launch(c->s), entries),
                           "write the tables of attention"));
    entries->first += entries->count;
    entries->count = 0;
    return TRI_OK;
}

static enum tri_status write_tables(struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                                    void *ctx)
{
    struct tri_cudnn_pieces *squares = ctx; /* where the walk over those of one size stands */
    struct tri_cudnn_sdpa shape;
    struct tri_kernel_entries entries;
    struct tri_kernel_entry entry = {0};
    if (!batch->padded)
        return TRI_OK;
    tri_cudnn_batch_shape(c, batch, &shape);
    start_entries(c, batch, &shape, &entries);
    if (batch->square && batch->done == 0)
        tri_cudnn_pieces_begin(squares, c);
    for (int64_t i = 0; i < batch->b; i++) {
        struct tri_attn_piece piece = batch->piece;
        if (i < batch->count) {
            if (batch->square && !tri_cudnn_pieces_next_square(squares, batch->q_rows, &piece))
                return tri_fail(TRI_INTERNAL, "attention lost count of its documents");
            entry = (struct tri_kernel_entry){.q_row = piece.q_row,
                                              .k_row = piece.k_row,
                                              .q_rows = (int32_t)piece.q_rows,
                                              .k_rows = (int32_t)piece.k_rows};
        } else if (i == batch->count) {
            entry.q_row += entry.q_rows;
            entry.k_row += entry.k_rows;
            entry.q_rows = entry.k_rows = 0;
        }
        TRI_TRY(add_entry(c, batch, i, entry, &entries));
    }
    return TRI_OK;
}

enum tri_status tri_cudnn_call_tables(struct tri_cudnn_call *c)
{
    struct tri_cudnn_pieces squares;
    return tri_cudnn_call_batches(c, write_tables, &squares);
}
