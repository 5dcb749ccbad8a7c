/* Every op of every CPU kernel set against the float64 oracle, by the rule in harness.h. */
#include "ops/cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "ops/kernel_sets.h"

struct kernel_set {
    const char *name;
    enum tri_cpu_kernels kernels;
};
static const struct kernel_set kernel_sets[] = {{"reference", TRI_CPU_REFERENCE},
                                                {"generic", TRI_CPU_GENERIC},
                                                {"avx2", TRI_CPU_AVX2},
                                                {"avx512", TRI_CPU_AVX512}};

enum { NUM_KERNEL_SETS = 4, MAX_TESTS = 16 };

struct subject {
    const struct kernel_set *set;
    const char *family;
    char name[64];
};

struct comparison {
    struct tri_test_place *place;
    enum tri_dtype act;
};

static void compare(struct tri_test_case *c, void *ctx)
{
    const struct comparison *comparison = ctx;
    tri_test_compare(comparison->place, c, comparison->act);
}

/* Long sums run through the same kernels, only slower. */
static void compare_small(struct tri_test_case *c, void *ctx)
{
    if (c->sum_length < 200)
        compare(c, ctx);
}

static void test_family(void **state)
{
    const struct subject *subject = *state;
    struct tri_backend *backend = tri_test_open_kernels(subject->set->kernels, 2);
    if (backend == NULL)
        skip();
    struct tri_test_place place;
    tri_test_place_open(backend, &place);
    struct comparison comparison = {&place, TRI_F32};
    tri_case_visit(subject->family,
                   subject->set->kernels == TRI_CPU_REFERENCE ? compare_small : compare,
                   &comparison);
    tri_test_place_close(&place);
    tri_cpu_close(backend);
}

/* Float64 tensors must reach kernels that compute in float64. */
static void test_float64(void **state)
{
    const struct subject *subject = *state;
    struct tri_backend *backend = tri_test_open_kernels(subject->set->kernels, 2);
    if (backend == NULL)
        skip();
    struct tri_test_place place;
    tri_test_place_open(backend, &place);
    struct comparison comparison = {&place, TRI_F64};
    for (int i = 0; tri_case_families[i] != NULL; i++)
        tri_case_visit(tri_case_families[i], compare_small, &comparison);
    tri_test_place_close(&place);
    tri_cpu_close(backend);
}

/* Run a case and demand the bits of an earlier run. */
struct repetition {
    struct tri_test_place *first, *second;
};

static void repeat(struct tri_test_case *c, void *ctx)
{
    const struct repetition *repetition = ctx;
    struct tri_test_result a, b;
    tri_test_run(repetition->first, c, TRI_F32, TRI_F32, false, &a);
    tri_test_run(repetition->second, c, TRI_F32, TRI_F32, false, &b);
    for (int i = 0; i < c->num_tensors; i++) {
        size_t bytes = (size_t)tri_test_count(&c->tensor[i]) * sizeof(double);
        if (a.value[i] != NULL && memcmp(a.value[i], b.value[i], bytes) != 0)
            fail_msg("%s: %s changes with the number of threads", c->name, c->tensor[i].name);
    }
    tri_test_result_free(&a);
    tri_test_result_free(&b);
}

/* sum_squares and deterministic attention: equal bits on one and on three threads. */
static void test_threads(void **state)
{
    const struct subject *subject = *state;
    struct tri_backend *one = tri_test_open_kernels(subject->set->kernels, 1);
    if (one == NULL)
        skip();
    struct tri_backend *three = tri_test_open_kernels(subject->set->kernels, 3);
    assert_non_null(three);
    struct tri_test_place first, second;
    tri_test_place_open(one, &first);
    tri_test_place_open(three, &second);
    struct repetition repetition = {&first, &second};
    tri_case_visit("optim", repeat, &repetition);
    tri_case_visit("attn", repeat, &repetition);
    tri_test_place_close(&first);
    tri_test_place_close(&second);
    tri_cpu_close(one);
    tri_cpu_close(three);
}

/* Queries that see no key of the range: o and dq exactly 0, lse -infinity, dk and dv untouched. */
static void test_blind(void **state)
{
    static const int64_t documents[] = {0, 150, 500};
    static const struct tri_case_attn shapes[] = {
        {70, 90, 4, 2, 64, 100, 300, 0, documents, 2, 1},   /* keys after the queries */
        {70, 90, 4, 2, 64, 150, 60, 0, documents, 2, 1},    /* keys of another document */
        {70, 90, 2, 1, 128, 300, 180, 31, documents, 2, 1}, /* keys before the window */
    };
    const struct subject *subject = *state;
    struct tri_backend *backend = tri_test_open_kernels(subject->set->kernels, 2);
    if (backend == NULL)
        skip();
    struct tri_test_place place;
    tri_test_place_open(backend, &place);
    for (int i = 0; i < 3; i++) {
        struct tri_test_case c;
        struct tri_test_result r;
        tri_case_attn(&c, false, &shapes[i], false, false, 3);
        tri_test_run(&place, &c, TRI_F32, TRI_F32, false, &r);
        for (int64_t n = 0; n < tri_test_count(&c.tensor[0]); n++)
            assert_true(r.value[0][n] == 0);
        for (int64_t n = 0; n < tri_test_count(&c.tensor[1]); n++)
            assert_true(isinf(r.value[1][n]) && r.value[1][n] < 0);
        tri_test_result_free(&r);
        tri_test_case_free(&c);

        /* Once with the log-sum-exp of no key at all, once with that of keys elsewhere. */
        for (int merged = 0; merged < 2; merged++) {
            tri_case_attn(&c, true, &shapes[i], false, merged, 3);
            tri_test_run(&place, &c, TRI_F32, TRI_F32, false, &r);
            for (int64_t n = 0; n < tri_test_count(&c.tensor[0]); n++)
                assert_true(r.value[0][n] == 0);
            for (int t = 1; t <= 2; t++)
                for (int64_t n = 0; n < tri_test_count(&c.tensor[t]); n++)
                    assert_true(r.value[t][n] == (float)c.tensor[t].value[n]);
            tri_test_result_free(&r);
            tri_test_case_free(&c);
        }
    }
    tri_test_place_close(&place);
    tri_cpu_close(backend);
}

static void test_scalars(void **state)
{
    const struct subject *subject = *state;
    struct tri_backend *backend = tri_test_open_kernels(subject->set->kernels, 2);
    if (backend == NULL)
        skip();
    const double source[3] = {1, -2.5, 1e300};
    double host[4] = {0, 0, 0, 7};
    struct tri_test_place place;
    tri_test_place_open(backend, &place);
    void *memory;
    assert_int_equal(tri_arena_alloc(place.arena, "scalars", sizeof(source), &memory), TRI_OK);
    const struct tri_ops *ops = &backend->ops;
    struct tri_view view = tri_view1(memory, TRI_F64, 3);
    assert_int_equal(ops->upload(backend->stream, view, source), TRI_OK);
    assert_int_equal(ops->read_scalars(backend->stream, host, memory, 3), TRI_OK);
    assert_memory_equal(host, source, sizeof(source));
    assert_true(host[3] == 7);
    assert_int_equal(ops->read_scalars(backend->stream, host, memory, 0), TRI_OK);
    tri_test_place_close(&place);
    tri_cpu_close(backend);
}

static void add_test(struct CMUnitTest *tests, struct subject *subjects, size_t *n,
                     const struct kernel_set *set, const char *name, void (*run)(void **state))
{
    assert_true(*n < (size_t)NUM_KERNEL_SETS * MAX_TESTS);
    struct subject *subject = &subjects[*n];
    *subject = (struct subject){.set = set, .family = name};
    snprintf(subject->name, sizeof(subject->name), "%s.%s", set->name, name);
    tests[(*n)++] =
        (struct CMUnitTest){.name = subject->name, .test_func = run, .initial_state = subject};
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void **state);
    } others[] = {{"float64", test_float64},
                  {"threads", test_threads},
                  {"blind", test_blind},
                  {"scalars", test_scalars}};
    static struct subject subjects[NUM_KERNEL_SETS * MAX_TESTS];
    static struct CMUnitTest tests[NUM_KERNEL_SETS * MAX_TESTS];
    size_t n = 0;
    for (int i = 0; i < NUM_KERNEL_SETS; i++) {
        for (int j = 0; tri_case_families[j] != NULL; j++)
            add_test(tests, subjects, &n, &kernel_sets[i], tri_case_families[j], test_family);
        for (int j = 0; j < 4; j++)
            add_test(tests, subjects, &n, &kernel_sets[i], others[j].name, others[j].run);
    }
    return _cmocka_run_group_tests("ops.backends", tests, n, NULL, NULL);
}
