/* AdamW, and the sum of squares behind the global gradient norm. */
#include "backend/cpu/reference/reference.h"

#include <assert.h>
#include <math.h>

/* Loshchilov & Hutter 2019, in PyTorch's order: decay first, then the step along
 * m_hat / (sqrt(v_hat) + eps), where m_hat and v_hat are the moments without the bias of their
 * start at zero. */
enum tri_status tri_reference_adamw(struct tri_stream *s, const struct tri_adamw *op,
                                    struct tri_view p, struct tri_view m, struct tri_view v,
                                    struct tri_view w, struct tri_view g)
{
    (void)s;
    int64_t n = tri_view_count(p);
    assert(tri_view_count(m) == n && tri_view_count(v) == n && tri_view_count(g) == n);
    TRI_TRY(tri_reference_check("adamw", (struct tri_view[]){p, m, v, w, g}, 5));
    double m_bias = 1 - pow(op->beta1, (double)op->step);
    double v_bias = 1 - pow(op->beta2, (double)op->step);
    for (int64_t i = 0; i < n; i++) {
        double grad = tri_reference_get(g, i) * op->grad_scale;
        double first = op->beta1 * tri_reference_get(m, i) + (1 - op->beta1) * grad;
        double second = op->beta2 * tri_reference_get(v, i) + (1 - op->beta2) * grad * grad;
        double param = tri_reference_get(p, i) * (1 - op->lr * op->weight_decay);
        param -= op->lr * (first / m_bias) / (sqrt(second / v_bias) + op->eps);
        tri_reference_set(m, i, first);
        tri_reference_set(v, i, second);
        tri_reference_set(p, i, param);
        if (tri_view_present(w)) /* what p became, so that weights follow from saved masters */
            tri_reference_set(w, i, tri_reference_get(p, i));
    }
    return TRI_OK;
}

enum tri_status tri_reference_sum_squares(struct tri_stream *s, double *sum, struct tri_view x)
{
    (void)s;
    assert(tri_view_contiguous(x));
    TRI_TRY(tri_reference_check("sum_squares", &x, 1));
    /* Neumaier 1974: `lost` holds what rounding cut off, so that the result is a yardstick for any
     * other order of summation. */
    double total = 0, lost = 0;
    for (int64_t i = 0; i < tri_view_count(x); i++) {
        double square = tri_reference_get(x, i) * tri_reference_get(x, i);
        double next = total + square;
        lost += total >= square ? total - next + square : square - next + total;
        total = next;
    }
    *sum += total + lost;
    return TRI_OK;
}
