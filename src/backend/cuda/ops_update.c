/* Loss, optimizer, global norm. */
#include <math.h>

#include "backend/cuda/context.h"

static enum tri_status cuda_cross_entropy(struct tri_stream *s, bool backward, double scale,
                                          double *loss_sum, struct tri_view logits,
                                          const int32_t *labels)
{
    return tri_cuda_check(
        tri_kernel_cross_entropy(tri_cuda_launch(s), backward, scale, loss_sum, logits, labels),
        "run cross-entropy");
}

static enum tri_status cuda_adamw(struct tri_stream *s, const struct tri_adamw *op,
                                  struct tri_view p, struct tri_view m, struct tri_view v,
                                  struct tri_view w, struct tri_view g)
{
    /* Bias corrections in float64: 1 - beta^step loses most digits of a float32. */
    struct tri_adamw_step step = {
        .lr = (float)op->lr,
        .beta1 = (float)op->beta1,
        .beta2 = (float)op->beta2,
        .eps = (float)op->eps,
        .decay = (float)op->weight_decay,
        .correction1 = (float)(1.0 / (1.0 - pow(op->beta1, (double)op->step))),
        .correction2 = (float)(1.0 / sqrt(1.0 - pow(op->beta2, (double)op->step))),
        .grad_scale = (float)op->grad_scale,
        .rest1 = (float)(1.0 - op->beta1),
        .rest2 = (float)(1.0 - op->beta2)};
    return tri_cuda_check(tri_kernel_adamw(tri_cuda_launch(s), step, p, m, v, w, g), "run AdamW");
}

static enum tri_status cuda_sum_squares(struct tri_stream *s, double *sum, struct tri_view x)
{
    return tri_cuda_check(tri_kernel_sum_squares(tri_cuda_launch(s), sum, x), "sum squares");
}

void tri_cuda_update_ops(struct tri_ops *ops)
{
    ops->cross_entropy = cuda_cross_entropy;
    ops->adamw = cuda_adamw;
    ops->sum_squares = cuda_sum_squares;
}
