/* The 16-bit floating formats: conversions that every reader and writer of them shares.
 *
 * bfloat16 is the upper half of a float32; float16 is IEEE 754 binary16. Narrowing rounds to
 * nearest, ties to even; overflow gives infinity; a NaN stays a NaN (made quiet, sign kept). */
#ifndef TRI_TENSOR_HALF_H
#define TRI_TENSOR_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t tri_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float tri_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float tri_bf16_to_float(uint16_t h)
{
    return tri_float_of_bits((uint32_t)h << 16);
}

static inline uint16_t tri_bf16_from_float(float value)
{
    uint32_t bits = tri_float_bits(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(bits >> 16 | 0x0040u); /* truncation alone could turn NaN into infinity */
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static inline float tri_f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (uint32_t)h >> 10 & 0x1Fu;
    uint32_t fraction = (uint32_t)h & 0x3FFu;
    if (exponent == 0x1F)
        return tri_float_of_bits(sign | 0x7F800000u | fraction << 13);
    if (exponent == 0) /* zero and subnormals: fraction * 2^-24, exact in float32 */
        return tri_float_of_bits(sign | tri_float_bits((float)fraction * 0x1p-24f));
    return tri_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t tri_f16_from_float(float value)
{
    uint32_t bits = tri_float_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu));
    if (magnitude >= 0x477FF000u) /* 65520, half way past the largest float16 */
        return (uint16_t)(sign | 0x7C00u);
    if (magnitude < 0x38800000u) {
        /* Below 2^-14 the result is a multiple of 2^-24, which is the unit in the last place of
         * 0.5f: the addition rounds to it. */
        float shifted = tri_float_of_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (tri_float_bits(shifted) - 0x3F000000u));
    }
    magnitude += 0x0FFFu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

/* A float32 from which a double can be rounded once more without error: inexact results get an odd
 * last bit (round to odd, Boldo & Melquiond 2008), so that a tie of the narrower format is seen as
 * what it is. Only for narrowing further. */
static inline float tri_float_to_odd(double value)
{
    float near = (float)value;
    if ((double)near == value || isnan(value) || isinf(near))
        return near;
    uint32_t bits = tri_float_bits(near);
    if (fabs((double)near) > fabs(value))
        bits--; /* towards zero */
    return tri_float_of_bits(bits | 1u);
}

static inline uint16_t tri_bf16_from_double(double value)
{
    return tri_bf16_from_float(tri_float_to_odd(value));
}

static inline uint16_t tri_f16_from_double(double value)
{
    return tri_f16_from_float(tri_float_to_odd(value));
}

#endif
