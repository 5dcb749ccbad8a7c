/* Elements more than 2^31 apart: rows of sparse memory, of which only the pages that hold an
 * element become real. Each op runs on compact tensors and on the same rows spread out, and must
 * give the same numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/rng.h"
#include "ops/kernel_sets.h"

enum { ROWS = 4, WIDTH = 64, HEADS = 2, MAX_VIEWS = 9 };

/* Row 1 is past 2^31 elements from row 0; for row 3 even 2^32 is passed. */
static const int64_t far_apart = (INT64_C(1) << 31) + 72;
/* Rows that are near enough for a 32-bit stride but not for a 32-bit offset. */
static const int64_t fairly_apart = (INT64_C(1) << 30) + 72;

static float compact[MAX_VIEWS][ROWS * WIDTH];
static float *spread[MAX_VIEWS]; /* rows `stride` apart */
static int64_t stride;
static struct tri_view near_view[MAX_VIEWS], far_view[MAX_VIEWS];

static size_t spread_bytes(void)
{
    return (size_t)((ROWS - 1) * far_apart + WIDTH) * sizeof(float);
}

/* Random numbers in all tensors, the same in both places. */
static void fill(void)
{
    for (int n = 0; n < MAX_VIEWS; n++) {
        for (int64_t i = 0; i < ROWS * WIDTH; i++)
            compact[n][i] = (float)tri_rng_normal(29, (uint64_t)n, (uint64_t)i);
        for (int64_t r = 0; r < ROWS; r++)
            memcpy(spread[n] + r * stride, compact[n] + r * WIDTH, WIDTH * sizeof(float));
        near_view[n] = tri_view2(compact[n], TRI_F32, ROWS, WIDTH);
        far_view[n] = tri_view2(spread[n], TRI_F32, ROWS, WIDTH);
        far_view[n].stride[0] = stride;
    }
}

/* Only to 1e-6 of the norm: strides may lead to another kernel. */
static void check_equal(const char *op)
{
    for (int n = 0; n < MAX_VIEWS; n++) {
        double error = 0, norm = 0;
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t i = 0; i < WIDTH; i++) {
                double a = compact[n][r * WIDTH + i], b = spread[n][r * stride + i];
                error += (a - b) * (a - b);
                norm += a * a;
            }
        if (!(sqrt(error) <= 1e-6 * sqrt(norm)))
            fail_msg("%s with rows %lld apart: tensor %d is off by %g of %g", op, (long long)stride,
                     n, sqrt(error), sqrt(norm));
    }
}

/* One op on the views v; vectors are rows of the views, which never are apart. */
struct op_call {
    const char *name;
    enum tri_status (*run)(const struct tri_ops *ops, struct tri_stream *s,
                           const struct tri_view *v, double *loss);
};

static struct tri_view vector(struct tri_view v, int64_t row)
{
    struct tri_view one = tri_view_rows(v, row, 1);
    return tri_view1(one.data, v.dtype, v.dim[1]);
}

static enum tri_status run_copy(const struct tri_ops *ops, struct tri_stream *s,
                                const struct tri_view *v, double *loss)
{
    (void)loss;
    TRI_TRY(ops->copy(s, v[0], v[1]));
    TRI_TRY(ops->add(s, v[2], v[3]));
    return ops->zero(s, v[4]);
}

static enum tri_status run_embed(const struct tri_ops *ops, struct tri_stream *s,
                                 const struct tri_view *v, double *loss)
{
    static const int32_t ids[ROWS] = {3, 0, 2, 3};
    (void)loss;
    TRI_TRY(ops->embed_forward(s, v[0], ids, v[1]));
    return ops->embed_backward(s, v[2], ids, v[3]);
}

static enum tri_status run_norm(const struct tri_ops *ops, struct tri_stream *s,
                                const struct tri_view *v, double *loss)
{
    static const struct tri_norm layer = {TRI_NORM_LAYER, 1e-5};
    (void)loss;
    struct tri_view w = vector(v[5], 3), b = vector(v[5], 2);
    TRI_TRY(ops->norm_forward(s, &layer, v[0], v[1], w, b));
    return ops->norm_backward(s, &layer, true, v[2], vector(v[4], 3), vector(v[4], 2), v[3], v[1],
                              w);
}

static enum tri_status run_linear(const struct tri_ops *ops, struct tri_stream *s,
                                  const struct tri_view *v, double *loss)
{
    (void)loss;
    struct tri_view y = tri_view_cols(v[0], 8, ROWS), x = v[1], w = v[2];
    TRI_TRY(ops->linear_forward(s, false, y, x, w, tri_view_none()));
    TRI_TRY(ops->linear_backward_x(s, true, v[3], y, w));
    return ops->linear_backward_w(s, v[4], tri_view_none(), y, x);
}

static enum tri_status run_rope(const struct tri_ops *ops, struct tri_stream *s,
                                const struct tri_view *v, double *loss)
{
    static const int64_t pos[ROWS] = {0, 1, 77, 1000000};
    static const double inv_freq[8] = {1, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6};
    (void)loss;
    struct tri_view table = tri_view_cols(v[2], 16, 16);
    TRI_TRY(ops->rope_table(s, table, pos, inv_freq, 1));
    return ops->rope(s, false, tri_view_heads(v[0], HEADS), tri_view_heads(v[1], HEADS), table);
}

static enum tri_status run_act(const struct tri_ops *ops, struct tri_stream *s,
                               const struct tri_view *v, double *loss)
{
    (void)loss;
    TRI_TRY(ops->act_forward(s, TRI_ACT_SILU, v[0], v[1], v[2]));
    return ops->act_backward(s, TRI_ACT_SILU, v[3], v[4], v[5], v[1], v[2]);
}

static enum tri_status run_attn(const struct tri_ops *ops, struct tri_stream *s,
                                const struct tri_view *v, double *loss)
{
    static const int64_t documents[] = {0, ROWS};
    static double room[1 << 20];
    (void)loss;
    struct tri_attn op = {.scale = 0.2, .doc_begin = documents, .num_docs = 1};
    struct tri_view h[MAX_VIEWS];
    for (int n = 0; n < MAX_VIEWS; n++)
        h[n] = tri_view_heads(v[n], HEADS);
    struct tri_view lse = tri_view_cols(v[8], 0, HEADS);
    if (ops->attn_workspace(s, &op, true, h[1], h[2]) > sizeof(room) ||
        ops->attn_workspace(s, &op, false, h[1], h[2]) > sizeof(room))
        return tri_fail(TRI_NOMEM, "the test's workspace is too small");
    TRI_TRY(ops->attn_forward(s, &op, h[0], lse, h[1], h[2], h[3], room));
    return ops->attn_backward(s, &op, true, h[4], h[5], h[6], h[7], h[1], h[2], h[3], h[0], lse,
                              room);
}

static enum tri_status run_cross_entropy(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct tri_view *v, double *loss)
{
    static const int32_t labels[ROWS] = {63, -100, 0, 7};
    return ops->cross_entropy(s, true, 0.5, loss, v[0], labels);
}

static const struct op_call op_calls[] = {
    {"copy, add, zero", run_copy},
    {"embed", run_embed},
    {"norm", run_norm},
    {"linear", run_linear},
    {"rope", run_rope},
    {"act", run_act},
    {"attn", run_attn},
    {"cross_entropy", run_cross_entropy},
};

/* Address space for the spread rows; without it (strict overcommit, small limits) tests skip. */
static int map_rows(void **state)
{
    (void)state;
    for (int n = 0; n < MAX_VIEWS; n++) {
        void *p = mmap(NULL, spread_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            print_message("skipped: %zu bytes of address space cannot be had\n", spread_bytes());
            return 0;
        }
        madvise(p, spread_bytes(), MADV_NOHUGEPAGE); /* a few rows, so small pages */
        spread[n] = p;
    }
    return 0;
}

static int unmap_rows(void **state)
{
    (void)state;
    for (int n = 0; n < MAX_VIEWS; n++)
        if (spread[n] != NULL)
            munmap(spread[n], spread_bytes());
    return 0;
}

static void test_kernels(void **state)
{
    const enum tri_cpu_kernels *kernels = *state;
    if (spread[MAX_VIEWS - 1] == NULL)
        skip();
    struct tri_backend *backend = tri_test_open_kernels(*kernels, 2);
    if (backend == NULL)
        skip();
    const int64_t strides[] = {fairly_apart, far_apart};
    for (int i = 0; i < 2; i++)
        for (size_t n = 0; n < sizeof(op_calls) / sizeof(op_calls[0]); n++) {
            double near_loss = 0, far_loss = 0;
            stride = strides[i];
            fill();
            enum tri_status near =
                op_calls[n].run(&backend->ops, backend->stream, near_view, &near_loss);
            enum tri_status far =
                op_calls[n].run(&backend->ops, backend->stream, far_view, &far_loss);
            if (near == TRI_OK && far == TRI_UNSUPPORTED && stride > INT32_MAX) {
                /* Libraries of matrix products have 32-bit strides. Saying so is right, too. */
                print_message("%s refused: %s\n", op_calls[n].name, tri_error_text());
                continue;
            }
            if (near != TRI_OK || far != TRI_OK)
                fail_msg("%s: %s", op_calls[n].name, tri_error_text());
            check_equal(op_calls[n].name);
            assert_true(fabs(near_loss - far_loss) <= 1e-6 * fabs(near_loss));
        }
    tri_cpu_close(backend);
}

int main(void)
{
    static enum tri_cpu_kernels kernels[] = {TRI_CPU_REFERENCE, TRI_CPU_GENERIC, TRI_CPU_AVX2,
                                             TRI_CPU_AVX512};
    const struct CMUnitTest tests[] = {
        {"reference", test_kernels, NULL, NULL, &kernels[0]},
        {"generic", test_kernels, NULL, NULL, &kernels[1]},
        {"avx2", test_kernels, NULL, NULL, &kernels[2]},
        {"avx512", test_kernels, NULL, NULL, &kernels[3]},
    };
    return cmocka_run_group_tests_name("ops.offsets", tests, map_rows, unmap_rows);
}
