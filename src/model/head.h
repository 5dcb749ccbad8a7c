/* The end of a model with its weights wherever they lie: for a model of ours (net.h) and for a
 * training loop that is not ours (include/trireme/tiled.h). */
#ifndef TRI_MODEL_HEAD_H
#define TRI_MODEL_HEAD_H

#include "backend/backend.h"
#include "base/arena.h"

/* logits = w norm(x). Gradients of parameters are absent where a parameter is frozen. */
struct tri_head {
    struct tri_exec exec;
    const struct tri_norm *norm;       /* NULL: the product reads x itself */
    int64_t rows;                      /* most rows of logits at once, at least 1 */
    struct tri_view norm_w, norm_b, w; /* w (V, E) */
    struct tri_view d_norm_w, d_norm_b, dw;
};

/* *loss_sum (backend memory) += cross entropy summed over rows of x(n,E) with labels[t] >= 0;
 * labels are n int32 in backend memory. With `backward` dx(n,E), unless absent, = gradient of scale
 * * loss_sum, and parameter gradients +=. */
enum tri_status tri_head_loss(const struct tri_head *head, bool backward, double scale,
                              double *loss_sum, struct tri_view dx, struct tri_view x,
                              const int32_t *labels);

#endif
