/* Textbook float64 versions of what include/trireme/tiled.h computes, and tensors to try it on. */
#ifndef TESTS_UNIT_API_DENSE_H
#define TESTS_UNIT_API_DENSE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trireme/trireme.h"

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != TRI_OK)                                                                      \
            fail_msg("%s", tri_error_text());                                                      \
    } while (0)

static inline struct tri_device *exact_device(void)
{
    struct tri_device *device = NULL;
    struct tri_device_config config = {
        .cpu_kernels = "reference", .threads = 1, .scratch_bytes = (size_t)1 << 28};
    MUST(tri_device_open(&config, &device));
    return device;
}

/* n numbers between -1 and 1 that depend on the seed; the caller frees them. */
static inline double *numbers(int64_t n, int64_t seed)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = sin(0.7 * (double)(seed + 1) + 1.3 * (double)i + 0.01 * (double)(i * i % 97));
    return x;
}

static inline double *zeros(int64_t n)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static inline struct tri_tensor tensor2(double *data, int64_t rows, int64_t cols)
{
    const int64_t dim[] = {rows, cols};
    return tri_tensor_make(data, TRI_F64, 2, dim);
}

static inline struct tri_tensor tensor3(double *data, int64_t a, int64_t b, int64_t c)
{
    const int64_t dim[] = {a, b, c};
    return tri_tensor_make(data, TRI_F64, 3, dim);
}

/* Where (row, col) of (n, E) is when the tensor is stored transposed, as (E, n). */
static inline struct tri_tensor transposed(double *data, int64_t rows, int64_t cols)
{
    return tri_tensor_swap(tensor2(data, cols, rows), 0, 1);
}

static inline double *transpose(const double *x, int64_t rows, int64_t cols)
{
    double *y = zeros(rows * cols);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            y[j * rows + i] = x[i * cols + j];
    return y;
}

static inline void assert_near(const double *got, const double *want, int64_t n, double bound,
                               const char *what)
{
    double scale = 1e-300, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        scale = fmax(scale, fabs(want[i]));
        double error = fabs(got[i] - want[i]);
        if (!(error <= worst))
            worst = error;
    }
    if (!(worst <= bound * fmax(scale, 1)))
        fail_msg("%s: off by %.3g of %.3g", what, worst, scale);
}

/* ---- MLP: y = (silu(x gate^T) * (x up^T)) out^T ------------------------------------------------
 */

struct dense_mlp {
    int64_t rows, e, f;
    const double *x, *in_w, *in_b, *out_w, *out_b, *dy;   /* biases may be NULL */
    double *y, *dx, *d_in_w, *d_in_b, *d_out_w, *d_out_b; /* += but for y and dx */
};

static inline void dense_mlp_row(const struct dense_mlp *m, int64_t r)
{
    const double *x = m->x + r * m->e;
    const double *dy = m->dy + r * m->e;
    for (int64_t i = 0; i < m->e; i++)
        m->y[r * m->e + i] = m->out_b != NULL ? m->out_b[i] : 0;
    for (int64_t j = 0; j < m->f; j++) {
        double g = m->in_b != NULL ? m->in_b[j] : 0;
        double u = m->in_b != NULL ? m->in_b[m->f + j] : 0;
        for (int64_t i = 0; i < m->e; i++) {
            g += m->in_w[j * m->e + i] * x[i];
            u += m->in_w[(m->f + j) * m->e + i] * x[i];
        }
        double s = 1 / (1 + exp(-g));
        double a = g * s * u;
        double da = 0;
        for (int64_t i = 0; i < m->e; i++) {
            m->y[r * m->e + i] += m->out_w[i * m->f + j] * a;
            m->d_out_w[i * m->f + j] += dy[i] * a;
            da += dy[i] * m->out_w[i * m->f + j];
        }
        double dg = da * u * (s + g * s * (1 - s));
        double du = da * g * s;
        m->d_in_b[j] += dg;
        m->d_in_b[m->f + j] += du;
        for (int64_t i = 0; i < m->e; i++) {
            m->d_in_w[j * m->e + i] += dg * x[i];
            m->d_in_w[(m->f + j) * m->e + i] += du * x[i];
            m->dx[r * m->e + i] += dg * m->in_w[j * m->e + i] + du * m->in_w[(m->f + j) * m->e + i];
        }
    }
    for (int64_t i = 0; i < m->e; i++)
        m->d_out_b[i] += dy[i];
}

/* ---- loss: cross entropy of x w^T --------------------------------------------------------------
 */

struct dense_loss {
    int64_t rows, e, v;
    const double *x, *w;
    const int32_t *labels;
    double upstream;
    double sum;
    int64_t count;
    double *dx, *dw; /* += */
};

static inline void dense_loss_row(struct dense_loss *l, int64_t r)
{
    const double *x = l->x + r * l->e;
    double logit[64], sum = 0;
    if (l->labels[r] < 0)
        return;
    for (int64_t k = 0; k < l->v; k++) {
        logit[k] = 0;
        for (int64_t i = 0; i < l->e; i++)
            logit[k] += l->w[k * l->e + i] * x[i];
        sum += exp(logit[k]);
    }
    l->sum += log(sum) - logit[l->labels[r]];
    l->count++;
    for (int64_t k = 0; k < l->v; k++) {
        double d = l->upstream * (exp(logit[k]) / sum - (k == l->labels[r]));
        for (int64_t i = 0; i < l->e; i++) {
            l->dx[r * l->e + i] += d * l->w[k * l->e + i];
            l->dw[k * l->e + i] += d * x[i];
        }
    }
}

#endif
