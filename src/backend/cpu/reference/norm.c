/* RMSNorm and LayerNorm over the last dimension.
 *
 * Both are y = w * (x - mean) * rstd + b; RMSNorm takes mean = 0 and has no b:
 *   RMSNorm    rstd = 1 / sqrt(mean(x^2) + eps)
 *   LayerNorm  rstd = 1 / sqrt(mean((x - mean)^2) + eps)
 */
#include "backend/cpu/reference/reference.h"

#include <assert.h>
#include <math.h>

struct moments {
    double mean; /* 0 for RMSNorm */
    double rstd; /* 1 / standard deviation */
};

static struct moments row_moments(const struct tri_norm *op, struct tri_view x, int64_t row)
{
    int64_t n = tri_reference_width(x);
    struct moments moments = {0};
    if (op->kind == TRI_NORM_LAYER) {
        for (int64_t i = 0; i < n; i++)
            moments.mean += tri_reference_get(x, row + i);
        moments.mean /= (double)n;
    }
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double centred = tri_reference_get(x, row + i) - moments.mean;
        squares += centred * centred;
    }
    moments.rstd = 1 / sqrt(squares / (double)n + op->eps);
    return moments;
}

enum tri_status tri_reference_norm_forward(struct tri_stream *s, const struct tri_norm *op,
                                           struct tri_view y, struct tri_view x, struct tri_view w,
                                           struct tri_view b)
{
    (void)s;
    assert(tri_view_same_shape(y, x) && w.dim[0] == tri_reference_width(x));
    TRI_TRY(tri_reference_check("norm_forward", (struct tri_view[]){y, x, w, b}, 4));
    for (int64_t r = 0; r < tri_reference_rows(x); r++) {
        int64_t from = tri_reference_row(x, r), to = tri_reference_row(y, r);
        struct moments m = row_moments(op, x, from);
        for (int64_t i = 0; i < tri_reference_width(x); i++) {
            double normed = (tri_reference_get(x, from + i) - m.mean) * m.rstd;
            double bias = tri_view_present(b) ? tri_reference_get(b, i) : 0;
            tri_reference_set(y, to + i, tri_reference_get(w, i) * normed + bias);
        }
    }
    return TRI_OK;
}

/* With n = (x - mean) * rstd and g = w * dy, means over the row:
 *   dx = rstd * (g - mean(g) - n * mean(g * n))      without mean(g) for RMSNorm
 *   dw += dy * n     db += dy */
enum tri_status tri_reference_norm_backward(struct tri_stream *s, const struct tri_norm *op,
                                            bool accumulate, struct tri_view dx, struct tri_view dw,
                                            struct tri_view db, struct tri_view dy,
                                            struct tri_view x, struct tri_view w)
{
    (void)s;
    assert(tri_view_same_shape(dx, x) && tri_view_same_shape(dy, x));
    TRI_TRY(tri_reference_check("norm_backward", (struct tri_view[]){dx, dw, db, dy, x, w}, 6));
    int64_t n = tri_reference_width(x);
    for (int64_t r = 0; r < tri_reference_rows(x); r++) {
        int64_t x_row = tri_reference_row(x, r);
        int64_t dy_row = tri_reference_row(dy, r);
        int64_t dx_row = tri_reference_row(dx, r);
        struct moments m = row_moments(op, x, x_row);

        double mean_g = 0, mean_gn = 0;
        for (int64_t i = 0; i < n; i++) {
            double normed = (tri_reference_get(x, x_row + i) - m.mean) * m.rstd;
            double g = tri_reference_get(w, i) * tri_reference_get(dy, dy_row + i);
            mean_g += g / (double)n;
            mean_gn += g * normed / (double)n;
        }
        if (op->kind == TRI_NORM_RMS)
            mean_g = 0;

        for (int64_t i = 0; i < n; i++) {
            double normed = (tri_reference_get(x, x_row + i) - m.mean) * m.rstd;
            double out = tri_reference_get(dy, dy_row + i); /* before dx, which may be dy */
            double in = m.rstd * (tri_reference_get(w, i) * out - mean_g - normed * mean_gn);
            if (accumulate)
                tri_reference_add(dx, dx_row + i, in);
            else
                tri_reference_set(dx, dx_row + i, in);
            tri_reference_add(dw, i, out * normed);
            if (tri_view_present(db))
                tri_reference_add(db, i, out);
        }
    }
    return TRI_OK;
}
