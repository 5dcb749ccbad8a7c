/* The kernels that know the width of a vector.
 *
 * One set of sources (the .inc files of this folder) is compiled once for each instruction set;
 * each compilation fills one table. All pointers are to float32 rows, all counts are elements, and
 * nothing here starts a thread: the ops in the folder above cut the work. */
#ifndef TRI_BACKEND_CPU_SIMD_SIMD_H
#define TRI_BACKEND_CPU_SIMD_SIMD_H

#include "backend/backend.h"
#include "backend/cpu/attn.h"

/* What one row of normalisation needs in backward. */
struct tri_norm_row {
    float mean;    /* 0 for RMSNorm */
    float rstd;    /* 1/sqrt(var + eps) or 1/sqrt(mean(x^2) + eps) */
    float mean_g;  /* mean of w*dy (0 for RMSNorm) */
    float mean_gx; /* mean of w*dy * xhat */
};

/* AdamW with its scalars folded. */
struct tri_adamw_consts {
    float beta1, one_beta1, beta2, one_beta2;
    float keep;      /* 1 - lr * weight_decay */
    float step_size; /* lr / (1 - beta1^t) */
    float inv_sqrt_bias2;
    float eps;
    float grad_scale;
};

struct tri_simd {
    const char *name;

    /* y += x */
    void (*add)(int64_t n, float *y, const float *x);
    void (*to_bf16)(int64_t n, uint16_t *y, const float *x);
    void (*from_bf16)(int64_t n, float *y, const uint16_t *x);

    /* y = norm(x); w and b hold n, b may be NULL. */
    void (*norm_forward)(const struct tri_norm *op, int64_t n, float *y, const float *x,
                         const float *w, const float *b);
    void (*norm_stats)(const struct tri_norm *op, int64_t n, const float *dy, const float *x,
                       const float *w, struct tri_norm_row *out);
    /* One row: dx = or +=, sum_w += dy * xhat, sum_b += dy; sum_b may be NULL, dx may be dy. */
    void (*norm_backward)(bool accumulate, int64_t n, float *dx, float *sum_w, float *sum_b,
                          const float *dy, const float *x, const float *w,
                          const struct tri_norm_row *row);

    /* cos and sin (half each) of pos * inv_freq, times scale. */
    void (*rope_table)(int64_t half, float *table, int64_t pos, const double *inv_freq,
                       double scale);
    /* One head: the first 2*half elements turn, the others up to d are copied. sign is 1 or -1. */
    void (*rope)(int64_t half, int64_t d, float sign, float *y, const float *x, const float *table);

    void (*act_forward)(enum tri_activation act, int64_t n, float *y, const float *gate,
                        const float *up);
    void (*act_backward)(enum tri_activation act, int64_t n, float *dgate, float *dup,
                         const float *dy, const float *gate, const float *up);

    /* The loss of one trained row; with `backward` the row becomes its gradient. */
    double (*cross_entropy)(bool backward, float scale, int64_t n, float *logits, int64_t label);

    void (*adamw)(const struct tri_adamw_consts *c, int64_t n, float *p, float *m, float *v,
                  float *w, const float *g);
    double (*sum_squares)(int64_t n, const float *x);

    /* Attention: room for one thread's tile, and one task of each pass (attn.h). */
    struct tri_attn_tiles tiles;
    void (*attn_forward)(const struct tri_attn_call *call, int64_t task, float *tile);
    void (*attn_backward)(const struct tri_attn_call *call, int64_t task, float *tile);
    float (*dot)(int64_t n, const float *x, const float *y);
};

/* NULL where the build leaves them out. */
extern const struct tri_simd *const tri_simd_generic;
extern const struct tri_simd *const tri_simd_avx2;
extern const struct tri_simd *const tri_simd_avx512;

#endif
