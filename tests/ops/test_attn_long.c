/* Attention's sums over tens of thousands of keys, and of queries in backward, must be as good as
 * short ones: rounding must not add up along the sequence. Every fast kernel set of the CPU against
 * the reference kernels, over random numbers and over keys that all get the same score, where sums
 * of equal parts round again and again in the same direction. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "base/rng.h"

enum { LONG = 65536, FEW = 8, HEAD = 16 };

/* One head of each; q, o, lse, dout, dq have `num_queries` rows, the others `num_keys`. */
struct tensors {
    int64_t num_queries, num_keys;
    float *q, *k, *v, *o, *lse, *dout, *dq, *dk, *dv;
};

static float *zeros(int64_t count)
{
    float *x = calloc((size_t)count, sizeof *x);
    assert_non_null(x);
    return x;
}

static void open_tensors(struct tensors *t, int64_t num_queries, int64_t num_keys)
{
    t->num_queries = num_queries;
    t->num_keys = num_keys;
    t->q = zeros(num_queries * HEAD);
    t->o = zeros(num_queries * HEAD);
    t->lse = zeros(num_queries);
    t->dout = zeros(num_queries * HEAD);
    t->dq = zeros(num_queries * HEAD);
    t->k = zeros(num_keys * HEAD);
    t->v = zeros(num_keys * HEAD);
    t->dk = zeros(num_keys * HEAD);
    t->dv = zeros(num_keys * HEAD);
}

static void close_tensors(struct tensors *t)
{
    float *all[] = {t->q, t->k, t->v, t->o, t->lse, t->dout, t->dq, t->dk, t->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Column 0 decides the scores: 0 for all keys when they are `equal`. The other columns of keys and
 * the values then alternate, so that all terms of a sum of gradients have one sign. */
static void fill(struct tensors *t, bool equal)
{
    for (int64_t i = 0; i < t->num_queries * HEAD; i++) {
        const int64_t d = i % HEAD;
        t->q[i] = equal ? (d == 0 ? 1.0f : 0.0f) : (float)tri_rng_normal(5, 0, (uint64_t)i);
        t->dout[i] = equal ? 1.0f + 0.01f * (float)d : (float)tri_rng_normal(5, 1, (uint64_t)i);
    }
    for (int64_t i = 0; i < t->num_keys * HEAD; i++) {
        const int64_t d = i % HEAD;
        const bool odd = i / HEAD % 2 == 1;
        t->k[i] = !equal   ? (float)tri_rng_normal(5, 2, (uint64_t)i)
                  : d == 0 ? 0.0f
                  : odd    ? 1.0f + 0.01f * (float)d
                           : 0.3f;
        t->v[i] = !equal ? (float)tri_rng_normal(5, 3, (uint64_t)i)
                  : odd  ? 1.1f + 0.013f * (float)d
                         : 0.1f;
    }
}

static struct tri_view heads(float *data, int64_t tokens)
{
    return tri_view_heads(tri_view2(data, TRI_F32, tokens, HEAD), 1);
}

static struct tri_attn causal(int64_t q_begin)
{
    static const int64_t documents[] = {0, LONG};
    return (struct tri_attn){
        .scale = 0.25, .doc_begin = documents, .num_docs = 1, .q_begin = q_begin};
}

static void run(struct tri_backend *backend, const struct tensors *t, bool backward)
{
    const struct tri_attn op = causal(t->num_queries == LONG ? 0 : LONG - t->num_queries);
    const struct tri_ops *ops = &backend->ops;
    const struct tri_view q = heads(t->q, t->num_queries), k = heads(t->k, t->num_keys);
    const struct tri_view v = heads(t->v, t->num_keys), o = heads(t->o, t->num_queries);
    const struct tri_view lse = tri_view2(t->lse, TRI_F32, t->num_queries, 1);
    void *room = malloc(ops->attn_workspace(backend->stream, &op, backward, q, k) + 1);
    assert_non_null(room);
    if (!backward) {
        assert_int_equal(ops->attn_forward(backend->stream, &op, o, lse, q, k, v, room), TRI_OK);
    } else {
        memset(t->dk, 0, (size_t)(t->num_keys * HEAD) * sizeof *t->dk);
        memset(t->dv, 0, (size_t)(t->num_keys * HEAD) * sizeof *t->dv);
        assert_int_equal(ops->attn_backward(backend->stream, &op, false,
                                            heads(t->dq, t->num_queries), heads(t->dk, t->num_keys),
                                            heads(t->dv, t->num_keys),
                                            heads(t->dout, t->num_queries), q, k, v, o, lse, room),
                         TRI_OK);
    }
    assert_int_equal(ops->sync(backend->stream), TRI_OK);
    free(room);
}

/* The tensor is as near to the other as to 2e-6 of its norm. */
static void assert_near(const char *kernels, const char *what, const float *got,
                        const float *expected, int64_t count)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        const double e = expected[i], d = (double)got[i] - e;
        error += d * d;
        norm += e * e;
    }
    print_message("%s: %s is off by %.1e\n", kernels, what, sqrt(error / norm));
    if (!(sqrt(error) <= 2e-6 * sqrt(norm)))
        fail_msg("%s: %s is off by %.1e of its norm", kernels, what, sqrt(error / norm));
}

static struct tri_backend *open_backend(enum tri_cpu_kernels kernels)
{
    const struct tri_cpu_config config = {.threads = 1, .kernels = kernels};
    struct tri_backend *backend = NULL;
    const enum tri_status status = tri_cpu_open(&config, &backend);
    if (status == TRI_UNSUPPORTED)
        print_message("skipped: %s\n", tri_error_text());
    else
        assert_int_equal(status, TRI_OK);
    return backend;
}

/* `expected` has the reference's results; its o and lse are what backward begins with. */
static void compare(const struct tensors *expected, bool forward)
{
    for (int k = TRI_CPU_GENERIC; k <= TRI_CPU_AVX512; k++) {
        struct tri_backend *backend = open_backend((enum tri_cpu_kernels)k);
        if (backend == NULL)
            continue;
        struct tensors t;
        open_tensors(&t, expected->num_queries, expected->num_keys);
        struct tensors mixed = *expected; /* the same inputs */
        mixed.o = t.o;
        mixed.lse = t.lse;
        const int64_t q_count = t.num_queries * HEAD, k_count = t.num_keys * HEAD;
        if (forward) {
            run(backend, &mixed, false);
            assert_near(backend->kernels, "o", t.o, expected->o, q_count);
            assert_near(backend->kernels, "lse", t.lse, expected->lse, t.num_queries);
        }
        mixed.o = expected->o;
        mixed.lse = expected->lse;
        mixed.dq = t.dq;
        mixed.dk = t.dk;
        mixed.dv = t.dv;
        run(backend, &mixed, true);
        assert_near(backend->kernels, "dq", t.dq, expected->dq, q_count);
        assert_near(backend->kernels, "dk", t.dk, expected->dk, k_count);
        assert_near(backend->kernels, "dv", t.dv, expected->dv, k_count);
        close_tensors(&t);
        tri_cpu_close(backend);
    }
}

static void few_queries_see_many_keys(void **state)
{
    (void)state;
    struct tri_backend *reference = open_backend(TRI_CPU_REFERENCE);
    for (int equal = 0; equal <= 1; equal++) {
        struct tensors t;
        open_tensors(&t, FEW, LONG);
        fill(&t, equal);
        run(reference, &t, false);
        run(reference, &t, true);
        print_message("%s scores\n", equal ? "equal" : "random");
        compare(&t, true);
        close_tensors(&t);
    }
    tri_cpu_close(reference);
}

static void many_queries_see_few_keys(void **state)
{
    (void)state;
    struct tri_backend *reference = open_backend(TRI_CPU_REFERENCE);
    for (int equal = 0; equal <= 1; equal++) {
        struct tensors t;
        open_tensors(&t, LONG, FEW);
        fill(&t, equal);
        /* As if the keys that are not here had been seen, too, with values that average to 0.6. */
        for (int64_t i = 0; i < LONG; i++) {
            t.lse[i] = (float)log((double)(i + 1));
            for (int64_t d = 0; d < HEAD; d++)
                t.o[i * HEAD + d] = equal ? 0.6f : 0.0f;
        }
        run(reference, &t, true);
        print_message("%s scores\n", equal ? "equal" : "random");
        compare(&t, false);
        close_tensors(&t);
    }
    tri_cpu_close(reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_queries_see_many_keys),
        cmocka_unit_test(many_queries_see_few_keys),
    };
    return cmocka_run_group_tests_name("ops.attn_long", tests, NULL, NULL);
}
