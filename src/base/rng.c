#include "base/rng.h"

#include <math.h>

void tri_rng_words(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4])
{
    uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                     (uint32_t)(stream >> 32)};
    uint32_t k0 = (uint32_t)seed;
    uint32_t k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * x[0];
        uint64_t b = (uint64_t)0xCD9E8D57u * x[2];
        uint32_t y0 = (uint32_t)(b >> 32) ^ x[1] ^ k0;
        uint32_t y2 = (uint32_t)(a >> 32) ^ x[3] ^ k1;
        x[1] = (uint32_t)b;
        x[3] = (uint32_t)a;
        x[0] = y0;
        x[2] = y2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = x[i];
}

double tri_rng_uniform(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint32_t w[4];
    tri_rng_words(seed, stream, counter, w);
    uint64_t bits = ((uint64_t)w[0] << 32 | w[1]) >> 11;
    return (double)bits * 0x1p-53;
}

double tri_rng_normal(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint32_t w[4];
    tri_rng_words(seed, stream, counter, w);
    double u = ((double)(((uint64_t)w[0] << 32 | w[1]) >> 11) + 1.0) * 0x1p-53; /* (0, 1] */
    double v = (double)(((uint64_t)w[2] << 32 | w[3]) >> 11) * 0x1p-53;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925286766559 * v);
}

int64_t tri_rng_permute(uint64_t seed, uint64_t stream, int64_t count, int64_t index)
{
    /* The smallest even number of bits that holds count-1, so that both halves are equal. */
    unsigned half = 1;
    while (half < 31 && ((int64_t)1 << (2 * half)) < count)
        half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t x = (uint64_t)index;
    do {
        uint64_t left = x >> half;
        uint64_t right = x & mask;
        for (uint64_t round = 0; round < 6; round++) {
            uint32_t w[4];
            tri_rng_words(seed, stream ^ (round + 1) << 56, right, w);
            uint64_t next = left ^ (w[0] & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= (uint64_t)count); /* walk the cycle until it is back inside the range */
    return (int64_t)x;
}
