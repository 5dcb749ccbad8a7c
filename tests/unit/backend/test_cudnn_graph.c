/* Attention graphs of cuDNN take form without a card: every kind of mask, forward and backward. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backend/cuda/attn_cudnn_sdpa.h"

static struct tri_cudnn_api api;

static struct tri_cudnn_sdpa shape_of(int64_t q_heads, int64_t k_heads, int64_t q_rows,
                                      int64_t k_rows, int64_t d)
{
    return (struct tri_cudnn_sdpa){.batch = 1,
                                   .q_heads = q_heads,
                                   .k_heads = k_heads,
                                   .q_rows = q_rows,
                                   .k_rows = k_rows,
                                   .head_size = d,
                                   .q = {q_heads * d, d},
                                   .k = {2 * k_heads * d, d}, /* halves of one buffer */
                                   .v = {2 * k_heads * d, d},
                                   .o = {q_heads * d, d},
                                   .lse = {q_heads, 1},
                                   .dout = {q_heads * d, d},
                                   .dq = {q_heads * d, d},
                                   .dkv = {k_heads * d, d}};
}

/* Build, finish, free; returns the number of operations. */
static int form(const struct tri_cudnn_sdpa *shape)
{
    struct tri_cudnn_graph graph;
    cudnnBackendDescriptor_t out = NULL;
    tri_cudnn_graph_begin(&graph, &api);
    tri_cudnn_sdpa_build(&graph, shape);
    int num_ops = graph.num_ops;
    enum tri_status st = tri_cudnn_graph_finish(&graph, NULL, &out);
    if (st != TRI_OK)
        fail_msg("%s (backward %d, causal %d, bottom-right %d, window %d, padded %d, ragged %d)",
                 tri_error_text(), shape->backward, shape->causal, shape->bottom_right,
                 shape->window, shape->padded, shape->ragged);
    assert_non_null(out);
    tri_cudnn_graph_free(&graph);
    return num_ops;
}

/* The numbers that NVIDIA's frontend comes to. */
static void test_number_of_operations(void **state)
{
    (void)state;
    struct tri_cudnn_sdpa shape = shape_of(32, 8, 32768, 32768, 128);
    shape.causal = 1;
    assert_int_equal(form(&shape), 14);
    shape.backward = 1;
    assert_int_equal(form(&shape), 24);
    shape.deterministic = 1; /* no sums of dq aside */
    assert_int_equal(form(&shape), 23);
    shape = shape_of(32, 32, 32768, 32768, 128);
    shape.causal = shape.backward = 1;
    assert_int_equal(form(&shape), 22); /* no sums over groups of heads */
}

static void test_every_mask(void **state)
{
    (void)state;
    enum {
        BACKWARD = 1,
        CAUSAL = 2,
        PREFIX = 4,
        WINDOW = 8,
        PADDED = 16,
        RAGGED = 32,
        GROUPS = 64
    };
    for (int bits = 0; bits < 128; bits++) {
        if ((bits & RAGGED) != 0 && (bits & PADDED) == 0)
            continue;
        struct tri_cudnn_sdpa shape = shape_of(8, (bits & GROUPS) != 0 ? 2 : 8, 4096,
                                               (bits & PREFIX) != 0 ? 65536 : 4096, 96);
        shape.batch = (bits & RAGGED) != 0 ? 16 : 1;
        shape.backward = (bits & BACKWARD) != 0;
        shape.causal = (bits & CAUSAL) != 0;
        shape.bottom_right = shape.causal && (bits & PREFIX) != 0;
        shape.window = (bits & WINDOW) != 0;
        shape.padded = (bits & PADDED) != 0;
        shape.ragged = (bits & RAGGED) != 0;
        form(&shape);
    }
}

static void test_long_sequences_and_head_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {64, 80, 96, 128, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int backward = 0; backward <= 1; backward++) {
            struct tri_cudnn_sdpa shape = shape_of(32, 8, 1 << 20, 1 << 24, sizes[i]);
            shape.causal = shape.bottom_right = 1;
            shape.backward = backward;
            form(&shape);
        }
}

static void test_failure_is_reported(void **state)
{
    (void)state;
    struct tri_cudnn_graph graph;
    cudnnBackendDescriptor_t out = NULL;
    struct tri_cudnn_sdpa shape = shape_of(8, 8, -1, 128, 64); /* no such shape */
    tri_cudnn_graph_begin(&graph, &api);
    tri_cudnn_sdpa_build(&graph, &shape);
    assert_int_equal(tri_cudnn_graph_finish(&graph, NULL, &out), TRI_UNSUPPORTED);
    assert_null(out);
    assert_non_null(tri_error_text());
    tri_cudnn_graph_free(&graph);
    tri_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_of_operations),
        cmocka_unit_test(test_every_mask),
        cmocka_unit_test(test_long_sequences_and_head_sizes),
        cmocka_unit_test(test_failure_is_reported),
    };
    struct tri_cuda_library found;
    if (tri_cudnn_api_open(&found, &api) != TRI_OK) {
        printf("skipped: %s\n", tri_error_text());
        return 0;
    }
    printf("cuDNN %s in %s\n", found.version, found.path);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
