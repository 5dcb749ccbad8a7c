/* Device memory, streams and the scalars' way back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "gpu/card.h"

static struct tri_backend *backend;

static int open_card(void **state)
{
    (void)state;
    backend = tri_test_open_card(NULL);
    return 0;
}

static int close_card(void **state)
{
    (void)state;
    tri_cuda_close(backend);
    return 0;
}

static size_t memory_free(void)
{
    struct tri_cuda_info info;
    tri_cuda_probe(0, &info);
    return info.memory_free;
}

/* Sequences of alternating length: after both were seen once, no step maps more memory. */
static void test_alternating_lengths(void **state)
{
    (void)state;
    struct tri_arena *arena;
    assert_int_equal(tri_arena_open(backend->memory, (size_t)8 << 30, &arena), TRI_OK);
    size_t settled = 0, free_settled = 0;
    for (int step = 0; step < 50; step++) {
        size_t mark = tri_arena_mark(arena), tokens = step % 2 == 0 ? 70001 : 30011;
        void *a, *b, *c;
        assert_int_equal(tri_arena_alloc(arena, "a", tokens * 8192, &a), TRI_OK);
        assert_int_equal(tri_arena_alloc(arena, "b", tokens * 1024, &b), TRI_OK);
        assert_int_equal(tri_arena_alloc(arena, "c", tokens * 4096 + 13, &c), TRI_OK);
        struct tri_view v = tri_view1(c, TRI_U8, (int64_t)tokens * 4096 + 13);
        assert_int_equal(backend->ops.zero(backend->stream, v), TRI_OK);
        assert_int_equal(backend->ops.sync(backend->stream), TRI_OK);
        tri_arena_release(arena, mark);
        if (step == 1) {
            settled = tri_arena_committed(arena);
            free_settled = memory_free();
        } else if (step > 1) {
            assert_int_equal(tri_arena_committed(arena), settled);
            assert_int_equal(memory_free(), free_settled);
        }
    }
    size_t before = memory_free();
    tri_arena_close(arena);
    assert_true(memory_free() >= before + settled / 2); /* the card has it back */
}

/* More than the card has: one clear line, and the arena goes on as before. */
static void test_out_of_memory(void **state)
{
    (void)state;
    struct tri_arena *arena;
    void *small, *large;
    assert_int_equal(tri_arena_open(backend->memory, (size_t)1 << 40, &arena), TRI_OK);
    assert_int_equal(tri_arena_alloc(arena, "small", 1000, &small), TRI_OK);
    assert_int_equal(tri_arena_alloc(arena, "logits", (size_t)1 << 39, &large), TRI_NOMEM);
    assert_non_null(strstr(tri_error_text(), "logits"));
    assert_non_null(strstr(tri_error_text(), "chunk_size"));
    assert_int_equal(tri_arena_alloc(arena, "another", 5 << 20, &large), TRI_OK);
    struct tri_view v = tri_view1(large, TRI_U8, 5 << 20);
    assert_int_equal(backend->ops.zero(backend->stream, v), TRI_OK);
    assert_int_equal(backend->ops.sync(backend->stream), TRI_OK);
    tri_arena_close(arena);
}

/* Up on one stream, used on another, back on a third; only events order them. */
static void test_streams(void **state)
{
    (void)state;
    enum { COUNT = 1 << 22, ROUNDS = 20 };
    struct tri_stream *compute = tri_cuda_stream(backend, TRI_CUDA_COMPUTE);
    struct tri_stream *up = tri_cuda_stream(backend, TRI_CUDA_TO_DEVICE);
    struct tri_stream *down = tri_cuda_stream(backend, TRI_CUDA_TO_HOST);
    assert_ptr_equal(compute, backend->stream);
    struct tri_arena *arena;
    assert_int_equal(tri_arena_open(backend->memory, (size_t)1 << 30, &arena), TRI_OK);
    void *in, *sum;
    assert_int_equal(tri_arena_alloc(arena, "in", COUNT * sizeof(float), &in), TRI_OK);
    assert_int_equal(tri_arena_alloc(arena, "sum", COUNT * sizeof(float), &sum), TRI_OK);
    struct tri_view in_view = tri_view1(in, TRI_F32, COUNT);
    struct tri_view sum_view = tri_view1(sum, TRI_F32, COUNT);
    float *host = malloc(COUNT * sizeof(float));
    assert_non_null(host);
    const struct tri_ops *ops = &backend->ops;
    assert_int_equal(ops->zero(compute, sum_view), TRI_OK);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            host[i] = (float)(round + i % 3);
        assert_int_equal(tri_cuda_stream_wait(up, compute), TRI_OK); /* `in` is free again */
        assert_int_equal(ops->upload(up, in_view, host), TRI_OK);
        assert_int_equal(tri_cuda_stream_wait(compute, up), TRI_OK);
        assert_int_equal(ops->add(compute, sum_view, in_view), TRI_OK);
    }
    assert_int_equal(tri_cuda_stream_wait(down, compute), TRI_OK);
    assert_int_equal(ops->download(down, host, sum_view), TRI_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true(host[i] == (float)(ROUNDS * (ROUNDS - 1) / 2 + ROUNDS * (i % 3)));
    free(host);
    tri_arena_close(arena);
}

/* More doubles than the page-locked buffer holds. */
static void test_scalars(void **state)
{
    (void)state;
    enum { COUNT = 10001 };
    static double host[COUNT], back[COUNT];
    struct tri_arena *arena;
    void *device;
    for (int i = 0; i < COUNT; i++)
        host[i] = sin(i);
    assert_int_equal(tri_arena_open(backend->memory, (size_t)1 << 24, &arena), TRI_OK);
    assert_int_equal(tri_arena_alloc(arena, "scalars", sizeof host, &device), TRI_OK);
    struct tri_view v = tri_view1(device, TRI_F64, COUNT);
    assert_int_equal(backend->ops.upload(backend->stream, v, host), TRI_OK);
    assert_int_equal(backend->ops.read_scalars(backend->stream, back, device, COUNT), TRI_OK);
    assert_memory_equal(host, back, sizeof host);
    tri_arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alternating_lengths),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_scalars),
    };
    tri_test_need_card();
    return cmocka_run_group_tests_name("gpu.memory", tests, open_card, close_card);
}
