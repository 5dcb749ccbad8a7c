/* The optimizer's ops. */
#include <math.h>

#include "backend/cpu/stream.h"
#include "base/minmax.h"

enum { CHUNK = 16384 }; /* elements of one piece of work; fixes the order of sum_squares */

static enum tri_status adamw(struct tri_stream *s, const struct tri_adamw *op, struct tri_view p,
                             struct tri_view m, struct tri_view v, struct tri_view w,
                             struct tri_view g)
{
    if (p.dtype != TRI_F32 || m.dtype != TRI_F32 || v.dtype != TRI_F32 || g.dtype != TRI_F32 ||
        (w.data != NULL && w.dtype != TRI_F32 && w.dtype != TRI_BF16))
        return s->cpu->reference.adamw(s, op, p, m, v, w, g);
    const double bias1 = 1.0 - pow(op->beta1, (double)op->step);
    const double bias2 = 1.0 - pow(op->beta2, (double)op->step);
    const struct tri_adamw_consts consts = {.beta1 = (float)op->beta1,
                                            .one_beta1 = (float)(1.0 - op->beta1),
                                            .beta2 = (float)op->beta2,
                                            .one_beta2 = (float)(1.0 - op->beta2),
                                            .keep = (float)(1.0 - op->lr * op->weight_decay),
                                            .step_size = (float)(op->lr / bias1),
                                            .inv_sqrt_bias2 = (float)(1.0 / sqrt(bias2)),
                                            .eps = (float)op->eps,
                                            .grad_scale = (float)op->grad_scale};
    float *p1 = p.data;
    float *m1 = m.data;
    float *v1 = v.data;
    const float *g1 = g.data;
    float *w1 = w.dtype == TRI_F32 ? w.data : NULL;
    uint16_t *w2 = w.dtype == TRI_BF16 ? w.data : NULL;
    const int64_t count = tri_view_count(p);
    const int64_t pieces = (count + CHUNK - 1) / CHUNK;
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, 4 * count)) schedule(static)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t i = piece * CHUNK;
        int64_t n = tri_min(count - i, CHUNK);
        s->cpu->simd->adamw(&consts, n, p1 + i, m1 + i, v1 + i, w1 == NULL ? NULL : w1 + i, g1 + i);
        if (w2 != NULL)
            s->cpu->simd->to_bf16(n, w2 + i, p1 + i);
    }
    return TRI_OK;
}

static enum tri_status sum_squares(struct tri_stream *s, double *sum, struct tri_view x)
{
    if (x.dtype != TRI_F32)
        return s->cpu->reference.sum_squares(s, sum, x);
    enum { PIECES = 256 };
    double part[PIECES];
    const float *data = x.data;
    const int64_t count = tri_view_count(x);
    double total = 0.0;
    for (int64_t first = 0; first < count; first += (int64_t)PIECES * CHUNK) {
        const int64_t left = count - first;
        int64_t pieces = (left + CHUNK - 1) / CHUNK;
        pieces = tri_min(pieces, PIECES);
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, pieces *CHUNK)) schedule(static)
        for (int64_t piece = 0; piece < pieces; piece++) {
            int64_t i = piece * CHUNK;
            part[piece] = s->cpu->simd->sum_squares(tri_min(left - i, CHUNK), data + first + i);
        }
        for (int64_t piece = 0; piece < pieces; piece++)
            total += part[piece];
    }
    *sum += total;
    return TRI_OK;
}

void tri_cpu_fast_optim(struct tri_ops *ops)
{
    ops->adamw = adamw;
    ops->sum_squares = sum_squares;
}
