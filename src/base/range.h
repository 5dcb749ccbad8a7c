/* Ranges of rows, tokens, heads or elements, and the one way to cut them. */
#ifndef TRI_BASE_RANGE_H
#define TRI_BASE_RANGE_H

#include <stdint.h>

/* [begin, begin + count). */
struct tri_range {
    int64_t begin;
    int64_t count;
};

/* Part i of `parts` of [0, n): [floor(i n / parts), floor((i + 1) n / parts)). Sizes differ by at
 * most one, and some are 0 when there are more parts than elements. */
static inline struct tri_range tri_split(int64_t n, int64_t parts, int64_t i)
{
    /* floor(i n / parts) without the product i n, which could overflow. */
    int64_t whole = n / parts;
    int64_t rest = n % parts;
    struct tri_range part;
    part.begin = i * whole + i * rest / parts;
    part.count = (i + 1) * whole + (i + 1) * rest / parts - part.begin;
    return part;
}

#endif
