/* Token-wise layers other than products. */
#include "backend/cuda/context.h"

static enum tri_status cuda_embed_forward(struct tri_stream *s, struct tri_view y,
                                          const int32_t *ids, struct tri_view table)
{
    return tri_cuda_check(tri_kernel_embed_forward(tri_cuda_launch(s), y, ids, table),
                          "gather embeddings");
}

static enum tri_status cuda_embed_backward(struct tri_stream *s, struct tri_view dtable,
                                           const int32_t *ids, struct tri_view dy)
{
    return tri_cuda_check(tri_kernel_embed_backward(tri_cuda_launch(s), dtable, ids, dy),
                          "sum gradients of embeddings");
}

static enum tri_status cuda_norm_forward(struct tri_stream *s, const struct tri_norm *op,
                                         struct tri_view y, struct tri_view x, struct tri_view w,
                                         struct tri_view b)
{
    return tri_cuda_check(tri_kernel_norm_forward(tri_cuda_launch(s), op->kind == TRI_NORM_LAYER,
                                                  op->eps, y, x, w, b),
                          "run a norm forward");
}

static enum tri_status cuda_norm_backward(struct tri_stream *s, const struct tri_norm *op,
                                          bool accumulate, struct tri_view dx, struct tri_view dw,
                                          struct tri_view db, struct tri_view dy, struct tri_view x,
                                          struct tri_view w)
{
    return tri_cuda_check(tri_kernel_norm_backward(tri_cuda_launch(s), op->kind == TRI_NORM_LAYER,
                                                   op->eps, accumulate, dx, dw, db, dy, x, w),
                          "run a norm backward");
}

static enum tri_status cuda_rope_table(struct tri_stream *s, struct tri_view table,
                                       const int64_t *pos, const double *inv_freq, double scale)
{
    return tri_cuda_check(tri_kernel_rope_table(tri_cuda_launch(s), table, pos, inv_freq, scale),
                          "make the table of rotary angles");
}

static enum tri_status cuda_rope(struct tri_stream *s, bool inverse, struct tri_view y,
                                 struct tri_view x, struct tri_view table)
{
    return tri_cuda_check(tri_kernel_rope(tri_cuda_launch(s), inverse, y, x, table),
                          "rotate heads");
}

static enum tri_status cuda_act_forward(struct tri_stream *s, enum tri_activation act,
                                        struct tri_view y, struct tri_view gate, struct tri_view up)
{
    return tri_cuda_check(tri_kernel_act_forward(tri_cuda_launch(s), (int)act, y, gate, up),
                          "run an activation forward");
}

static enum tri_status cuda_act_backward(struct tri_stream *s, enum tri_activation act,
                                         struct tri_view dgate, struct tri_view dup,
                                         struct tri_view dy, struct tri_view gate,
                                         struct tri_view up)
{
    return tri_cuda_check(
        tri_kernel_act_backward(tri_cuda_launch(s), (int)act, dgate, dup, dy, gate, up),
        "run an activation backward");
}

void tri_cuda_layer_ops(struct tri_ops *ops)
{
    ops->embed_forward = cuda_embed_forward;
    ops->embed_backward = cuda_embed_backward;
    ops->norm_forward = cuda_norm_forward;
    ops->norm_backward = cuda_norm_backward;
    ops->rope_table = cuda_rope_table;
    ops->rope = cuda_rope;
    ops->act_forward = cuda_act_forward;
    ops->act_backward = cuda_act_backward;
}
