/* Attention over many keys where one takes nearly all and each of the others is too small to change
 * 1 in float32: together they must count, in the output and in the log-sum-exp. Every kernel set of
 * the CPU against closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ops/kernel_sets.h"

enum { KEYS = 65536, QUERIES = 8, HEAD = 16 };
static const float tail_score = -17.4f; /* e^-17.4 < 2^-25 */

/* One head of each. */
struct tensors {
    float *q, *k, *v, *o, *lse;
};

static void open_tensors(struct tensors *t)
{
    t->q = calloc(QUERIES * HEAD, sizeof *t->q);
    t->k = calloc((size_t)KEYS * HEAD, sizeof *t->k);
    t->v = calloc((size_t)KEYS * HEAD, sizeof *t->v);
    t->o = calloc(QUERIES * HEAD, sizeof *t->o);
    t->lse = calloc(QUERIES, sizeof *t->lse);
    assert_true(t->q && t->k && t->v && t->o && t->lse);
    for (int i = 0; i < QUERIES; i++)
        t->q[i * HEAD] = 1.0f;
    for (int i = 0; i < KEYS; i++) {
        t->k[(size_t)i * HEAD] = i == 0 ? 0.0f : tail_score;
        t->v[(size_t)i * HEAD] = i == 0 ? 0.0f : 1.0f; /* the tail's share */
        t->v[(size_t)i * HEAD + 1] = 1.0f;             /* all shares: 1 */
    }
}

static void close_tensors(struct tensors *t)
{
    free(t->q);
    free(t->k);
    free(t->v);
    free(t->o);
    free(t->lse);
}

static struct tri_view heads(float *data, int64_t tokens)
{
    return tri_view_heads(tri_view2(data, TRI_F32, tokens, HEAD), 1);
}

static void check(struct tri_backend *backend, struct tensors *t)
{
    static const int64_t documents[] = {0, KEYS};
    const struct tri_attn op = {
        .scale = 1, .doc_begin = documents, .num_docs = 1, .q_begin = KEYS - QUERIES};
    const struct tri_view q = heads(t->q, QUERIES), k = heads(t->k, KEYS);
    void *room = malloc(backend->ops.attn_workspace(backend->stream, &op, false, q, k) + 1);
    assert_non_null(room);
    assert_int_equal(backend->ops.attn_forward(backend->stream, &op, heads(t->o, QUERIES),
                                               tri_view2(t->lse, TRI_F32, QUERIES, 1), q, k,
                                               heads(t->v, KEYS), room),
                     TRI_OK);
    assert_int_equal(backend->ops.sync(backend->stream), TRI_OK);
    free(room);

    /* The last query sees all keys. */
    const double tail = (KEYS - 1) * exp((double)tail_score);
    const float *o = t->o + (QUERIES - 1) * HEAD;
    const double share = fabs((double)o[0] / (tail / (1 + tail)) - 1);
    const double all = fabs((double)o[1] - 1);
    const double lse = fabs((double)t->lse[QUERIES - 1] - log1p(tail));
    print_message("%s: the tail's share is off by %.1e of it, all shares by %.1e, lse by %.1e\n",
                  backend->kernels, share, all, lse);
    assert_true(share <= 5e-5);
    assert_true(all <= 5e-6);
    assert_true(lse <= 5e-5);
}

static void test_tail(void **state)
{
    (void)state;
    struct tensors t;
    open_tensors(&t);
    for (int k = TRI_CPU_REFERENCE; k <= TRI_CPU_AVX512; k++) {
        struct tri_backend *backend = tri_test_open_kernels((enum tri_cpu_kernels)k, 1);
        if (backend == NULL)
            continue;
        check(backend, &t);
        tri_cpu_close(backend);
    }
    close_tensors(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tail)};
    return cmocka_run_group_tests_name("ops.attn_tail", tests, NULL, NULL);
}
