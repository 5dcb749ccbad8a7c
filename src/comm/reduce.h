/* What the communicators share that work on host memory themselves. */
#ifndef TRI_COMM_REDUCE_H
#define TRI_COMM_REDUCE_H

#include "comm/comm.h"

/* into (n) = reduction over `count` sources (n each), in their order; float32, float64 or int64.
 * `into` may be one of the sources. */
void tri_reduce(void *into, const void *const *sources, int count, int64_t n, enum tri_dtype dtype,
                enum tri_reduction reduction);

/* Copy a block into another of the same rows and row_bytes. */
void tri_block_copy(const struct tri_block *to, const struct tri_block *from);

#endif
