/* Vectors of sixteen floats: AVX-512 F, DQ, BW, VL. */
#ifndef TRI_BACKEND_CPU_SIMD_VEC_AVX512_H
#define TRI_BACKEND_CPU_SIMD_VEC_AVX512_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef __m512 vec;

/* Register tile of the attention products: 24 of the 32 registers accumulate. */
enum { LANES = 16, TILE_ROWS = 12, TILE_VECS = 2 };

static inline vec vload(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void vstore(float *p, vec v)
{
    _mm512_storeu_ps(p, v);
}

static inline vec vset(float x)
{
    return _mm512_set1_ps(x);
}

/* 0, 1, 2, ... */
static inline vec viota(void)
{
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* a * b + c */
static inline vec vfma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* The larger; b when either is not a number. */
static inline vec vmax(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

static inline vec vmin(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

static inline vec vsqrt(vec a)
{
    return _mm512_sqrt_ps(a);
}

static inline vec vabs(vec a)
{
    return _mm512_abs_ps(a);
}

/* a < b ? x : y */
static inline vec vless_pick(vec a, vec b, vec x, vec y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

/* The float whose bits are those of t shifted left by 23: see vexp2. */
static inline vec vexponent(vec t)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(t), 23));
}

#endif
