/* Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011).
 *
 * A number depends only on (seed, stream, counter): never on how work was split over threads,
 * tiles or ranks, and resuming needs no saved state. */
#ifndef TRI_BASE_RNG_H
#define TRI_BASE_RNG_H

#include <stdint.h>

/* Four independent 32-bit words for this (seed, stream, counter). */
void tri_rng_words(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);

/* Uniform in [0, 1). */
double tri_rng_uniform(uint64_t seed, uint64_t stream, uint64_t counter);

/* Standard normal (Box-Muller). */
double tri_rng_normal(uint64_t seed, uint64_t stream, uint64_t counter);

/* Image of `index` under a pseudo-random permutation of [0, count) chosen by (seed, stream):
 * a shuffle in constant memory (Feistel network with cycle walking). 0 <= index < count. */
int64_t tri_rng_permute(uint64_t seed, uint64_t stream, int64_t count, int64_t index);

#endif
