/* The smaller and the larger of two counts, evaluated once. */
#ifndef TRI_BASE_MINMAX_H
#define TRI_BASE_MINMAX_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t tri_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tri_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline size_t tri_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
