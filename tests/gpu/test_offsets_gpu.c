/* Elements more than 2^31 apart on the card. All tensors share rows of one huge matrix, each in its
 * own columns, so that memory for one is enough. Every op runs on compact tensors and on the rows
 * spread out, and must give the same numbers. A second test has 2^31 elements in one piece. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/rng.h"
#include "gpu/card.h"

enum { ROWS = 4, WIDTH = 64, HEADS = 2, MAX_VIEWS = 9, COUNT = ROWS * WIDTH };

/* For row 3 even 2^32 elements are passed. A multiple of 8: rows stay aligned. */
static const int64_t row_stride = (INT64_C(1) << 31) + 1024;

struct tensors {
    struct tri_view v[MAX_VIEWS];
    void *ids, *pos, *labels, *loss, *workspace;
};

static struct tri_backend *backend;
static struct tri_arena *arena;

static void *get(const char *name, size_t bytes)
{
    void *p = NULL;
    if (tri_arena_alloc(arena, name, bytes, &p) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return p;
}

static void upload(void *to, enum tri_dtype dtype, int64_t count, const void *host)
{
    struct tri_view v = tri_view1(to, dtype, count);
    assert_int_equal(backend->ops.upload(backend->stream, v, host), TRI_OK);
}

static void fill(struct tensors *near_set, struct tensors *far_set)
{
    static float host[COUNT];
    size_t mark = tri_arena_mark(arena);
    float *staging = get("staging", sizeof host);
    for (int n = 0; n < MAX_VIEWS; n++) {
        for (int64_t i = 0; i < COUNT; i++)
            host[i] = (float)tri_rng_normal(31, (uint64_t)n, (uint64_t)i);
        upload(staging, TRI_F32, COUNT, host);
        struct tri_view from = tri_view2(staging, TRI_F32, ROWS, WIDTH);
        assert_int_equal(backend->ops.copy(backend->stream, near_set->v[n], from), TRI_OK);
        assert_int_equal(backend->ops.copy(backend->stream, far_set->v[n], from), TRI_OK);
    }
    tri_arena_release(arena, mark); /* the stream's order keeps it until the copies have run */
    struct tri_view loss = tri_view1(near_set->loss, TRI_F64, 1);
    assert_int_equal(backend->ops.zero(backend->stream, loss), TRI_OK);
    loss.data = far_set->loss;
    assert_int_equal(backend->ops.zero(backend->stream, loss), TRI_OK);
}

/* The far rows come back through a compact copy. */
static void check_equal(const char *op, const struct tensors *near_set,
                        const struct tensors *far_set, double tolerance)
{
    static float a[COUNT], b[COUNT];
    size_t mark = tri_arena_mark(arena);
    struct tri_view back = tri_view2(get("back", sizeof a), TRI_F32, ROWS, WIDTH);
    for (int n = 0; n < MAX_VIEWS; n++) {
        assert_int_equal(backend->ops.copy(backend->stream, back, near_set->v[n]), TRI_OK);
        assert_int_equal(backend->ops.download(backend->stream, a, back), TRI_OK);
        assert_int_equal(backend->ops.copy(backend->stream, back, far_set->v[n]), TRI_OK);
        assert_int_equal(backend->ops.download(backend->stream, b, back), TRI_OK);
        double error = 0, norm = 0;
        for (int i = 0; i < COUNT; i++) {
            error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
            norm += (double)a[i] * a[i];
        }
        if (!(sqrt(error) <= tolerance * sqrt(norm)))
            fail_msg("%s: tensor %d is off by %g of %g", op, n, sqrt(error), sqrt(norm));
    }
    double loss[2];
    assert_int_equal(backend->ops.read_scalars(backend->stream, &loss[0], near_set->loss, 1),
                     TRI_OK);
    assert_int_equal(backend->ops.read_scalars(backend->stream, &loss[1], far_set->loss, 1),
                     TRI_OK);
    assert_true(fabs(loss[0] - loss[1]) <= tolerance * fabs(loss[0]));
    tri_arena_release(arena, mark);
}

static struct tri_view vector(const void *data, enum tri_dtype dtype)
{
    return tri_view1((void *)(uintptr_t)data, dtype, WIDTH);
}

struct op_call {
    const char *name;
    enum tri_status (*run)(const struct tri_ops *ops, struct tri_stream *s,
                           const struct tensors *t);
};

static enum tri_status run_moves(const struct tri_ops *ops, struct tri_stream *s,
                                 const struct tensors *t)
{
    TRI_TRY(ops->copy(s, t->v[0], t->v[1]));
    TRI_TRY(ops->add(s, t->v[2], t->v[3]));
    return ops->zero(s, t->v[4]);
}

static enum tri_status run_embed(const struct tri_ops *ops, struct tri_stream *s,
                                 const struct tensors *t)
{
    TRI_TRY(ops->embed_forward(s, t->v[0], t->ids, t->v[1]));
    if (t->v[2].dtype != TRI_F32)
        return TRI_OK;
    return ops->embed_backward(s, t->v[2], t->ids, t->v[3]);
}

static enum tri_status run_norm(const struct tri_ops *ops, struct tri_stream *s,
                                const struct tensors *t)
{
    static const struct tri_norm layer = {TRI_NORM_LAYER, 1e-5};
    enum tri_dtype act = t->v[0].dtype;
    struct tri_view w = vector(t->v[5].data, act), b = vector(t->v[6].data, act);
    TRI_TRY(ops->norm_forward(s, &layer, t->v[0], t->v[1], w, b));
    return ops->norm_backward(s, &layer, true, t->v[2], vector(t->workspace, TRI_F32),
                              vector((float *)t->workspace + WIDTH, TRI_F32), t->v[3], t->v[1], w);
}

static enum tri_status run_linear(const struct tri_ops *ops, struct tri_stream *s,
                                  const struct tensors *t)
{
    struct tri_view y = tri_view_cols(t->v[0], 8, ROWS);
    TRI_TRY(ops->linear_forward(s, false, y, t->v[1], t->v[2], tri_view_none()));
    TRI_TRY(ops->linear_backward_x(s, true, t->v[3], y, t->v[2]));
    if (t->v[4].dtype != TRI_F32)
        return TRI_OK;
    return ops->linear_backward_w(s, t->v[4], tri_view_none(), y, t->v[1]);
}

static enum tri_status run_rope(const struct tri_ops *ops, struct tri_stream *s,
                                const struct tensors *t)
{
    static const double inv_freq[16] = {1, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6};
    struct tri_view table = tri_view2(t->workspace, TRI_F32, ROWS, 32);
    TRI_TRY(ops->rope_table(s, table, t->pos, inv_freq, 1));
    return ops->rope(s, false, tri_view_heads(t->v[0], HEADS), tri_view_heads(t->v[1], HEADS),
                     table);
}

static enum tri_status run_act(const struct tri_ops *ops, struct tri_stream *s,
                               const struct tensors *t)
{
    TRI_TRY(ops->act_forward(s, TRI_ACT_SILU, t->v[0], t->v[1], t->v[2]));
    return ops->act_backward(s, TRI_ACT_SILU, t->v[3], t->v[4], t->v[5], t->v[1], t->v[2]);
}

static enum tri_status run_attn(const struct tri_ops *ops, struct tri_stream *s,
                                const struct tensors *t)
{
    static const int64_t documents[] = {0, ROWS};
    struct tri_attn op = {.scale = 0.2, .doc_begin = documents, .num_docs = 1};
    struct tri_view h[MAX_VIEWS], lse = tri_view2(t->workspace, TRI_F32, ROWS, HEADS);
    for (int n = 0; n < MAX_VIEWS; n++)
        h[n] = tri_view_heads(t->v[n], HEADS);
    void *room = (char *)t->workspace + 4096;
    if (ops->attn_workspace(s, &op, true, h[1], h[2]) > (size_t)1 << 26)
        return tri_fail(TRI_NOMEM, "the test's workspace is too small");
    TRI_TRY(ops->attn_forward(s, &op, h[0], lse, h[1], h[2], h[3], room));
    if (t->v[5].dtype != TRI_F32)
        return TRI_OK;
    return ops->attn_backward(s, &op, true, h[4], h[5], h[6], h[7], h[1], h[2], h[3], h[0], lse,
                              room);
}

static enum tri_status run_cross_entropy(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct tensors *t)
{
    return ops->cross_entropy(s, true, 0.5, t->loss, t->v[0], t->labels);
}

static const struct op_call op_calls[] = {
    {"copy, add, zero", run_moves},
    {"embed", run_embed},
    {"norm", run_norm},
    {"linear", run_linear},
    {"rope", run_rope},
    {"act", run_act},
    {"attn", run_attn},
    {"cross_entropy", run_cross_entropy},
};

static void test_far_rows(void **state)
{
    static const int32_t ids[ROWS] = {3, 0, 2, 3}, labels[ROWS] = {63, -100, 0, 7};
    static const int64_t pos[ROWS] = {0, 1, 77, 1000000};
    enum tri_dtype act = *(const enum tri_dtype *)*state;
    size_t mark = tri_arena_mark(arena), width = tri_dtype_bytes(act);
    struct tensors near_set, far_set;
    char *rows = get("rows", (size_t)(3 * row_stride + MAX_VIEWS * WIDTH) * width);
    for (int n = 0; n < MAX_VIEWS; n++) {
        near_set.v[n] = tri_view2(get("near", COUNT * width), act, ROWS, WIDTH);
        far_set.v[n] = tri_view2(rows + (size_t)n * WIDTH * width, act, ROWS, WIDTH);
        far_set.v[n].stride[0] = row_stride;
    }
    near_set.ids = far_set.ids = get("ids", sizeof ids);
    near_set.labels = far_set.labels = get("labels", sizeof labels);
    near_set.pos = far_set.pos = get("pos", sizeof pos);
    near_set.loss = get("loss", sizeof(double));
    far_set.loss = get("loss", sizeof(double));
    near_set.workspace = far_set.workspace = get("workspace", ((size_t)1 << 26) + 4096);
    upload(near_set.ids, TRI_I32, ROWS, ids);
    upload(near_set.labels, TRI_I32, ROWS, labels);
    upload(near_set.pos, TRI_I64, ROWS, pos);
    for (size_t n = 0; n < sizeof op_calls / sizeof op_calls[0]; n++) {
        fill(&near_set, &far_set);
        if (op_calls[n].run(&backend->ops, backend->stream, &near_set) != TRI_OK ||
            op_calls[n].run(&backend->ops, backend->stream, &far_set) != TRI_OK)
            fail_msg("%s: %s", op_calls[n].name, tri_error_text());
        /* Strides may lead to another product kernel, and so to another order of sums. */
        check_equal(op_calls[n].name, &near_set, &far_set, act == TRI_F32 ? 1e-6 : 4e-3);
    }
    tri_arena_release(arena, mark);
}

/* 2^31 + 8 elements in one row: the first, the last, and one past 2^31 must be right. */
static void test_long_rows(void **state)
{
    (void)state;
    const int64_t n = (INT64_C(1) << 31) + 8, at[] = {0, 12345, (INT64_C(1) << 31) - 1, n - 1};
    const struct tri_ops *ops = &backend->ops;
    struct tri_stream *s = backend->stream;
    size_t mark = tri_arena_mark(arena);
    struct tri_view x = tri_view1(get("x", (size_t)n * 2), TRI_BF16, n);
    struct tri_view y = tri_view1(get("y", (size_t)n * 4), TRI_F32, n);
    struct tri_view m = tri_view1(get("m", (size_t)n * 4), TRI_F32, n);
    struct tri_view v = tri_view1(get("v", (size_t)n * 4), TRI_F32, n);
    struct tri_view g = tri_view1(get("g", (size_t)n * 4), TRI_F32, n);
    double *sum = get("sum", sizeof(double)), total;
    struct tri_view sum_view = tri_view1(sum, TRI_F64, 1);
    assert_int_equal(ops->zero(s, x), TRI_OK);
    assert_int_equal(ops->zero(s, m), TRI_OK);
    assert_int_equal(ops->zero(s, v), TRI_OK);
    assert_int_equal(ops->zero(s, sum_view), TRI_OK);
    for (int i = 0; i < 4; i++) {
        uint16_t value = (uint16_t)(0x3F80 + 0x80 * i); /* 1, 2, 4, 8 in bfloat16 */
        upload((uint16_t *)x.data + at[i], TRI_BF16, 1, &value);
    }
    assert_int_equal(ops->copy(s, y, x), TRI_OK);
    assert_int_equal(ops->copy(s, g, x), TRI_OK);
    assert_int_equal(ops->add(s, g, x), TRI_OK);
    assert_int_equal(ops->sum_squares(s, sum, g), TRI_OK);
    struct tri_adamw adamw = {.lr = 0.5, .beta1 = 0.9, .beta2 = 0.99, .step = 1, .grad_scale = 1};
    assert_int_equal(ops->adamw(s, &adamw, y, m, v, x, g), TRI_OK);
    assert_int_equal(ops->read_scalars(s, &total, sum, 1), TRI_OK);
    assert_true(total == 4 * (1 + 4 + 16 + 64));
    for (int i = 0; i < 4; i++) { /* the first step moves by lr, whatever the gradient */
        float p;
        struct tri_view one = tri_view1((float *)y.data + at[i], TRI_F32, 1);
        assert_int_equal(ops->download(s, &p, one), TRI_OK);
        assert_true(fabs(p - ((1 << i) - 0.5)) < 1e-5);
    }
    tri_arena_release(arena, mark);
}

static int open_card(void **state)
{
    (void)state;
    /* cuDNN refuses rows this far apart; test_attn_cudnn has the farthest that it takes. */
    struct tri_cuda_config config = {.attention = TRI_CUDA_ATTENTION_OWN};
    backend = tri_test_open_card(&config);
    if (tri_arena_open(backend->memory, (size_t)64 << 30, &arena) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return 0;
}

static int close_card(void **state)
{
    (void)state;
    tri_arena_close(arena);
    tri_cuda_close(backend);
    return 0;
}

int main(void)
{
    static enum tri_dtype float32 = TRI_F32, bfloat16 = TRI_BF16;
    const struct CMUnitTest tests[] = {
        {"far rows, float32", test_far_rows, NULL, NULL, &float32},
        {"far rows, bfloat16", test_far_rows, NULL, NULL, &bfloat16},
        cmocka_unit_test(test_long_rows),
    };
    struct tri_cuda_info info;
    tri_test_need_card();
    tri_cuda_probe(0, &info);
    if (info.memory_free < (size_t)44 << 30) {
        print_message("skipped: 44 GiB of device memory are needed\n");
        return 77;
    }
    return cmocka_run_group_tests_name("gpu.offsets", tests, open_card, close_card);
}
