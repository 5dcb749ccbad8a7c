/* Batches, layouts in memory and numbers for the tests of the public exchange and attention. Only
 * public headers. */
#ifndef TESTS_UNIT_API_SP_FIXTURE_H
#define TESTS_UNIT_API_SP_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trireme/trireme.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return wrong(__LINE__);                                                                \
    } while (0)
#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum tri_status st_ = (call);                                                              \
        if (st_ != TRI_OK)                                                                         \
            return st_;                                                                            \
    } while (0)

static inline enum tri_status wrong(int line)
{
    fprintf(stderr, "line %d\n", line);
    return TRI_INTERNAL;
}

static inline enum tri_status open_device(const char *kernels, struct tri_device **out)
{
    struct tri_device_config config = {
        .cpu_kernels = kernels, .threads = 1, .scratch_bytes = (size_t)1 << 28};
    return tri_device_open(&config, out);
}

/* How a (B, T, H, D) tensor lies in memory. */
enum memory { BATCH_FIRST, SEQUENCE_FIRST, HEADS_FIRST, SPREAD, NUM_MEMORIES };

static inline struct tri_tensor make(enum tri_dtype dtype, double *memory, enum memory how,
                                     int64_t b, int64_t t, int64_t h, int64_t d)
{
    if (how == SEQUENCE_FIRST) {
        const int64_t dim[] = {t, b, h, d};
        return tri_tensor_swap(tri_tensor_make(memory, dtype, 4, dim), 0, 1);
    }
    if (how == HEADS_FIRST) {
        const int64_t dim[] = {b, h, t, d};
        return tri_tensor_swap(tri_tensor_make(memory, dtype, 4, dim), 1, 2);
    }
    if (how == SPREAD) { /* every third element of memory, and the head size outermost */
        const int64_t dim[] = {d, t, h, b};
        struct tri_tensor x = tri_tensor_make(memory, dtype, 4, dim);
        for (int i = 0; i < 4; i++)
            x.stride[i] *= 3;
        return tri_tensor_swap(x, 0, 3);
    }
    const int64_t dim[] = {b, t, h, d};
    return tri_tensor_make(memory, dtype, 4, dim);
}

#endif
