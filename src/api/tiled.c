/* The loop over tiles of any function of rows. */
#include "trireme/tiled.h"

#include "base/range.h"
#include "comm/comm.h"

static enum tri_status check_cut(const struct tri_tiled *op, const char *what,
                                 const struct tri_tiled_input *in)
{
    const struct tri_tensor *t = in->value.data != NULL ? &in->value : &in->grad;
    if (in->dim < 0 || in->dim >= t->num_dims || t->dim[in->dim] != op->rows)
        return tri_fail(TRI_INVALID, "tiled %s: dimension %d of %d does not have the %lld rows",
                        what, in->dim, t->num_dims, (long long)op->rows);
    if (in->value.data == NULL || in->grad.data == NULL)
        return TRI_OK;
    for (int d = 0; d < t->num_dims; d++)
        if (in->grad.num_dims != t->num_dims || in->grad.dim[d] != t->dim[d])
            return tri_fail(TRI_INVALID, "tiled %s: its gradient has another shape", what);
    return TRI_OK;
}

static enum tri_status check(const struct tri_tiled *op)
{
    if (op->rows < 0 || op->tiles < 1 || op->num_inputs < 0 ||
        op->num_inputs > TRI_TILED_MAX_INPUTS)
        return tri_fail(TRI_INVALID,
                        "tiled compute of %lld rows in %lld tiles with %d inputs: at least one "
                        "tile, at most %d inputs",
                        (long long)op->rows, (long long)op->tiles, op->num_inputs,
                        TRI_TILED_MAX_INPUTS);
    if (op->reduction != TRI_TILED_NONE && op->reduction != TRI_TILED_SUM &&
        op->reduction != TRI_TILED_MEAN)
        return tri_fail(TRI_INVALID, "tiled compute: there is no reduction %d", (int)op->reduction);
    for (int i = 0; i < op->num_inputs; i++)
        TRI_TRY(check_cut(op, "input", &op->inputs[i]));
    return op->reduction == TRI_TILED_NONE ? check_cut(op, "output", &op->output) : TRI_OK;
}

static struct tri_tensor cut(struct tri_tensor t, int dim, struct tri_range rows)
{
    return t.data != NULL ? tri_tensor_slice(t, dim, rows.begin, rows.count) : t;
}

/* The tensors of tile i; `values` and `grads` are the caller's room. */
static struct tri_tile tile_at(const struct tri_tiled *op, int64_t i, bool backward,
                               struct tri_tensor *values, struct tri_tensor *grads)
{
    struct tri_range rows = tri_split(op->rows, op->tiles, i);
    struct tri_tile tile = {
        .index = i, .begin = rows.begin, .count = rows.count, .value = values, .grad = grads};
    for (int k = 0; k < op->num_inputs; k++) {
        values[k] = cut(op->inputs[k].value, op->inputs[k].dim, rows);
        grads[k] = backward ? cut(op->inputs[k].grad, op->inputs[k].dim, rows) : tri_tensor_none();
    }
    if (op->reduction == TRI_TILED_NONE && backward)
        tile.output_grad = cut(op->output.grad, op->output.dim, rows);
    else if (op->reduction == TRI_TILED_NONE)
        tile.output = cut(op->output.value, op->output.dim, rows);
    return tile;
}

enum tri_status tri_tiled_forward(const struct tri_tiled *op, struct tri_loss_sum *total)
{
    struct tri_tensor values[TRI_TILED_MAX_INPUTS], grads[TRI_TILED_MAX_INPUTS];
    struct tri_loss_sum sum = {0, 0};
    TRI_TRY(check(op));
    for (int64_t i = 0; i < op->tiles; i++) {
        struct tri_tile tile = tile_at(op, i, false, values, grads);
        TRI_TRY(op->forward(op->ctx, &tile, &sum));
    }
    *total = sum;
    return TRI_OK;
}

enum tri_status tri_tiled_backward(const struct tri_tiled *op, double upstream,
                                   const struct tri_loss_sum *total)
{
    struct tri_tensor values[TRI_TILED_MAX_INPUTS], grads[TRI_TILED_MAX_INPUTS];
    TRI_TRY(check(op));
    if (op->reduction == TRI_TILED_MEAN)
        upstream = total->count > 0 ? upstream / (double)total->count : 0.0;
    for (int64_t i = 0; i < op->tiles; i++) {
        struct tri_tile tile = tile_at(op, i, true, values, grads);
        tile.upstream = op->reduction == TRI_TILED_NONE ? 0.0 : upstream;
        TRI_TRY(op->backward(op->ctx, &tile));
    }
    if (op->done != NULL)
        op->done(op->ctx);
    return TRI_OK;
}

enum tri_status tri_tiles_agree(struct tri_comm *comm, int64_t *tiles)
{
    return comm != NULL ? tri_comm_max_int(comm, tiles, 1) : TRI_OK;
}
