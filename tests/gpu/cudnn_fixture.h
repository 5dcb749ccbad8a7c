/* The engines of attention on the card that the tests of cuDNN use. */
#ifndef TESTS_GPU_CUDNN_FIXTURE_H
#define TESTS_GPU_CUDNN_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "backend/cuda/context.h"
#include "base/arena.h"
#include "gpu/card.h"
#include "ops/cases.h"

static struct tri_backend *cudnn, *own;
static struct tri_test_place place; /* of cudnn */

static const int64_t one[] = {0, 100000}; /* document */

/* The arguments of the program: [PATTERN], only the tests that match. Ends it with code 77
 * (skipped) where cuDNN cannot be used. */
static inline void engines_open(int argc, char **argv)
{
    tri_test_need_card();
    struct tri_cuda_info info;
    tri_cuda_probe(0, &info);
    if (!info.cudnn.found) {
        printf("skipped: %s\n", info.cudnn.problem);
        exit(77);
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    struct tri_cuda_config config = {.attention = TRI_CUDA_ATTENTION_CUDNN};
    cudnn = tri_test_open_card(&config);
    config.attention = TRI_CUDA_ATTENTION_OWN;
    own = tri_test_open_card(&config);
    place.backend = cudnn;
    assert_int_equal(tri_arena_open(cudnn->memory, (size_t)24 << 30, &place.arena), TRI_OK);
}

static inline void engines_close(void)
{
    tri_test_place_close(&place);
    tri_cuda_close(own);
    tri_cuda_close(cudnn);
}

static inline void *get(size_t bytes)
{
    void *p = NULL;
    if (tri_arena_alloc(place.arena, "large", bytes, &p) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return p;
}

#endif
