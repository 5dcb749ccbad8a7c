/* Vectors of four floats in the compiler's own vector arithmetic: any processor. */
#ifndef TRI_BACKEND_CPU_SIMD_VEC_GENERIC_H
#define TRI_BACKEND_CPU_SIMD_VEC_GENERIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(16)));
typedef int32_t ivec __attribute__((vector_size(16)));

/* Register tile of the attention products: TILE_ROWS x (TILE_VECS * LANES). */
enum { LANES = 4, TILE_ROWS = 6, TILE_VECS = 2 };

static inline vec vload(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vstore(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

static inline vec vset(float x)
{
    return (vec){x, x, x, x};
}

/* 0, 1, 2, ... */
static inline vec viota(void)
{
    return (vec){0, 1, 2, 3};
}

static inline vec vbits_pick(ivec mask, vec a, vec b)
{
    return (vec)((mask & (ivec)a) | (~mask & (ivec)b));
}

/* a * b + c */
static inline vec vfma(vec a, vec b, vec c)
{
    return a * b + c;
}

/* The larger; b when either is not a number. */
static inline vec vmax(vec a, vec b)
{
    return vbits_pick((ivec)(a > b), a, b);
}

static inline vec vmin(vec a, vec b)
{
    return vbits_pick((ivec)(a < b), a, b);
}

static inline vec vsqrt(vec a)
{
    for (int i = 0; i < LANES; i++)
        a[i] = sqrtf(a[i]);
    return a;
}

static inline vec vabs(vec a)
{
    return (vec)((ivec)a & 0x7fffffff);
}

/* a < b ? x : y */
static inline vec vless_pick(vec a, vec b, vec x, vec y)
{
    return vbits_pick((ivec)(a < b), x, y);
}

/* The float whose bits are those of t shifted left by 23: see vexp2. */
static inline vec vexponent(vec t)
{
    return (vec)((ivec)t << 23);
}

#endif
