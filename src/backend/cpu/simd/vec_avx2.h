/* Vectors of eight floats: AVX2 with FMA. */
#ifndef TRI_BACKEND_CPU_SIMD_VEC_AVX2_H
#define TRI_BACKEND_CPU_SIMD_VEC_AVX2_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef __m256 vec;

/* Register tile of the attention products: 12 of the 16 registers accumulate. */
enum { LANES = 8, TILE_ROWS = 6, TILE_VECS = 2 };

static inline vec vload(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void vstore(float *p, vec v)
{
    _mm256_storeu_ps(p, v);
}

static inline vec vset(float x)
{
    return _mm256_set1_ps(x);
}

/* 0, 1, 2, ... */
static inline vec viota(void)
{
    return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
}

/* a * b + c */
static inline vec vfma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* The larger; b when either is not a number. */
static inline vec vmax(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

static inline vec vmin(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

static inline vec vsqrt(vec a)
{
    return _mm256_sqrt_ps(a);
}

static inline vec vabs(vec a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

/* a < b ? x : y */
static inline vec vless_pick(vec a, vec b, vec x, vec y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

/* The float whose bits are those of t shifted left by 23: see vexp2. */
static inline vec vexponent(vec t)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t), 23));
}

#endif
