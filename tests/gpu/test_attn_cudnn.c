/* Attention through cuDNN, in bfloat16: every mask against the float64 oracle, larger shapes
 * against our own kernel on the card, equal bits when deterministic, and what cuDNN gets wrong.
 *
 * The rule: an error is at most twice that of a plain implementation in the same precision, here
 * one that rounds weights and their gradients to bfloat16 before the products, as tensor cores
 * want it, and each result once. */
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
#include "base/rng.h"
#include "gpu/card.h"
#include "ops/cases.h"
#include "tensor/half.h"

static struct tri_backend *cudnn, *own;
static struct tri_test_place place;

/* ---- the plain implementation -------------------------------------------------------------------
 */

static double narrow(double x)
{
    return tri_test_round(TRI_BF16, x);
}

static bool sees(const struct tri_attn *op, int64_t query, int64_t key)
{
    if (key > query || (op->window > 0 && query - key >= op->window))
        return false;
    for (int64_t d = 1; d < op->num_docs; d++)
        if (op->doc_begin[d] > key && op->doc_begin[d] <= query)
            return false;
    return true;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *a, double factor, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        a[i] += factor * b[i];
}

/* Inputs of a case as bfloat16 numbers. */
static double *rounded(const struct tri_test_tensor *t)
{
    int64_t n = tri_test_count(t);
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = narrow(t->value[i]);
    return x;
}

/* The shape of a case, forward (o lse q k v) or backward (dq dk dv do q k v o lse). */
struct plain {
    const struct tri_attn *op;
    int64_t tq, tk, hq, hk, d;
    double *q, *k, *v, *dout, *o;
    const double *lse;
};

static void plain_row(const struct plain *p, int64_t i, int64_t h, double *const out[])
{
    int64_t d = p->d, hk = h / (p->hq / p->hk);
    const double *q = p->q + (i * p->hq + h) * d;
    double max = -INFINITY, sum = 0, delta = 0, lse;
    double *weight = malloc((size_t)(p->tk + 1) * sizeof *weight);
    assert_non_null(weight);
    for (int64_t j = 0; j < p->tk; j++) {
        bool visible = sees(p->op, p->op->q_begin + i, p->op->k_begin + j);
        weight[j] = visible ? p->op->scale * dot(q, p->k + (j * p->hk + hk) * d, d) : -INFINITY;
        max = fmax(max, weight[j]);
    }
    for (int64_t j = 0; j < p->tk && max > -INFINITY; j++)
        sum += exp(weight[j] - max);
    lse = max + log(sum);
    if (p->dout != NULL) {
        lse = p->lse[i * p->hq + h];
        delta = dot(p->dout + (i * p->hq + h) * d, p->o + (i * p->hq + h) * d, d);
    }
    for (int64_t j = 0; j < p->tk; j++) {
        if (weight[j] == -INFINITY)
            continue;
        int64_t at = (j * p->hk + hk) * d, row = (i * p->hq + h) * d;
        double w = exp(weight[j] - lse);
        if (p->dout == NULL) {
            add_scaled(out[0] + row, narrow(w), p->v + at, d);
            continue;
        }
        const double *dout = p->dout + row;
        double ds = narrow(w * (dot(dout, p->v + at, d) - delta) * p->op->scale);
        add_scaled(out[0] + row, ds, p->k + at, d);
        add_scaled(out[1] + at, ds, q, d);
        add_scaled(out[2] + at, narrow(w), dout, d);
    }
    if (p->dout == NULL)
        out[1][i * p->hq + h] = max > -INFINITY ? (double)(float)lse : -INFINITY;
    free(weight);
}

/* Adds to what `out` holds. */
static void plain(const struct tri_test_case *c, double *const out[])
{
    bool backward = c->op == TRI_TEST_ATTN_BACKWARD;
    const struct tri_test_tensor *t = c->tensor + (backward ? 4 : 2);
    struct plain p = {.op = &c->attn,
                      .tq = t[0].dim[0],
                      .hq = t[0].dim[1],
                      .d = t[0].dim[2],
                      .tk = t[1].dim[0],
                      .hk = t[1].dim[1],
                      .q = rounded(&t[0]),
                      .k = rounded(&t[1]),
                      .v = rounded(&t[2]),
                      .dout = backward ? rounded(&c->tensor[3]) : NULL,
                      .o = backward ? rounded(&t[3]) : NULL,
                      .lse = backward ? t[4].value : NULL};
    for (int64_t i = 0; i < p.tq; i++)
        for (int64_t h = 0; h < p.hq; h++)
            plain_row(&p, i, h, out);
    free(p.q);
    free(p.k);
    free(p.v);
    free(p.dout);
    free(p.o);
}

static double *plain_result(const struct tri_test_case *c, int index, double *const sums[])
{
    const struct tri_test_tensor *t = &c->tensor[index];
    bool narrows = c->op == TRI_TEST_ATTN_BACKWARD || index == 0;
    for (int64_t i = 0; i < tri_test_count(t) && narrows; i++) {
        double before = t->role != TRI_TEST_INOUT  ? 0
                        : t->kind == TRI_TEST_STAT ? (double)(float)t->value[i]
                                                   : narrow(t->value[i]);
        double result = before + narrow(sums[index][i]);
        sums[index][i] = t->kind == TRI_TEST_STAT ? (double)(float)result : narrow(result);
    }
    return sums[index];
}

static void compare(struct tri_test_case *c)
{
    struct tri_test_place host;
    struct tri_test_result oracle, got;
    double *sums[TRI_TEST_MAX_TENSORS] = {NULL};
    tri_test_place_open(tri_test_reference(), &host);
    tri_test_run(&host, c, TRI_BF16, TRI_F64, false, &oracle);
    tri_test_place_close(&host);
    tri_test_run(&place, c, TRI_BF16, TRI_BF16, false, &got);
    for (int i = 0; i < c->num_tensors; i++)
        if (got.value[i] != NULL)
            sums[i] = calloc((size_t)tri_test_count(&c->tensor[i]) + 1, sizeof **sums);
    plain(c, sums);
    for (int i = 0; i < c->num_tensors; i++) {
        if (got.value[i] == NULL)
            continue;
        int64_t n = tri_test_count(&c->tensor[i]);
        double *want = oracle.value[i];
        double error = tri_test_distance(got.value[i], want, n);
        double plain_error = tri_test_distance(plain_result(c, i, sums), want, n);
        double norm = fmax(tri_test_norm(want, n), c->floor);
        double allowance = (8 + sqrt((double)c->sum_length)) * c->slack * 0x1p-24 * norm;
        if (!(error <= 2 * plain_error + allowance))
            fail_msg("%s: %s: error %.3g of norm %.3g; the plain error is %.3g", c->name,
                     c->tensor[i].name, error, norm, plain_error);
        free(sums[i]);
    }
    tri_test_result_free(&oracle);
    tri_test_result_free(&got);
}

static void compare_shape(const struct tri_case_attn *shape, bool deterministic)
{
    struct tri_test_case c;
    for (int backward = 0; backward <= 1; backward++)
        for (int merged = 0; merged <= backward; merged++) {
            tri_case_attn(&c, backward == 1, shape, merged == 1, merged == 1, 0);
            c.attn.deterministic = deterministic;
            if (shape->tk == 1) /* one key: dq is 0, the difference of two sums */
                c.floor = sqrt((double)(shape->tq * shape->hq * shape->d));
            compare(&c);
            tri_test_case_free(&c);
        }
}

/* ---- masks, against the oracle ------------------------------------------------------------------
 */

static const int64_t one[] = {0, 100000};
static const int64_t many[] = {0, 1, 2, 60, 61, 189, 190, 318, 447, 600, 601, 900};
enum { MANY = 11 };

static void test_head_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {8, 40, 64, 80, 96, 128, 192, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct tri_case_attn whole = {200, 200, 4, 2, sizes[i], 0, 0, 0, one, 1, 1};
        compare_shape(&whole, false);
        struct tri_case_attn chunk = {100, 333, 2, 1, sizes[i], 233, 0, 0, one, 1, 1};
        compare_shape(&chunk, false);
        struct tri_case_attn documents = {450, 450, 2, 1, sizes[i], 0, 0, 0, many, MANY, 1};
        compare_shape(&documents, false);
        compare_shape(&documents, sizes[i] <= 128);
    }
}

static const struct tri_case_attn masks[] = {
    /* tq  tk hq hk   d  q_begin k_begin window  documents  number  loudness */
    {0, 0, 2, 1, 64, 0, 0, 0, one, 1, 1},
    {5, 0, 2, 1, 64, 9, 0, 0, one, 1, 1},
    {1, 1, 2, 1, 128, 0, 0, 0, one, 1, 1},
    {1, 300, 2, 1, 128, 299, 0, 0, one, 1, 1},
    {1, 192, 2, 1, 128, 300, 0, 0, one, 1, 1},
    {300, 1, 2, 1, 128, 300, 0, 0, one, 1, 1},
    {17, 17, 8, 2, 128, 0, 0, 0, one, 1, 1},
    {333, 333, 4, 4, 128, 0, 0, 0, one, 1, 1},
    {256, 256, 4, 1, 128, 0, 0, 0, one, 1, 20},
    {128, 448, 4, 1, 128, 320, 0, 0, one, 1, 1}, /* a chunk against its prefix */
    {128, 448, 4, 1, 128, 448, 0, 0, one, 1, 1}, /* all keys before the queries */
    {200, 205, 4, 1, 128, 205, 0, 0, one, 1, 1},
    {128, 64, 2, 2, 64, 100, 64, 0, one, 1, 1},   /* keys end among the queries */
    {200, 150, 2, 1, 64, 100, 150, 0, one, 1, 1}, /* early queries see nothing */
    {200, 50, 2, 1, 64, 100, 150, 30, one, 1, 1}, /* and late ones */
    {60, 20, 2, 2, 64, 100, 180, 0, one, 1, 1},   /* nobody sees anything */
    {300, 300, 4, 2, 128, 0, 0, 100, one, 1, 1},
    {300, 300, 4, 2, 128, 0, 0, 1, one, 1, 1},
    {100, 333, 4, 2, 128, 233, 0, 64, one, 1, 1},
    {100, 333, 4, 2, 128, 233, 0, 300, one, 1, 1},
    {100, 256, 4, 2, 128, 256, 0, 150, one, 1, 1}, /* a window over keys before the queries */
    {900, 900, 4, 2, 128, 0, 0, 0, many, MANY, 1},
    {900, 900, 2, 2, 64, 0, 0, 40, many, MANY, 1},
    {300, 700, 4, 1, 128, 400, 0, 0, many, MANY, 1}, /* a straddling document and others */
    {300, 700, 4, 1, 128, 400, 0, 90, many, MANY, 1},
    {150, 100, 4, 1, 128, 350, 330, 0, many, MANY, 1},
};

static void test_masks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
        compare_shape(&masks[i], false);
}

static void test_deterministic_masks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
        compare_shape(&masks[i], true);
}

/* ---- larger shapes, against our own kernel
 * -------------------------------------------------------
 */

struct large {
    int64_t tq, tk, hq, hk, d, q_begin, k_begin, window, num_docs;
    const int64_t *doc_begin;
    bool negative;      /* all scores far below zero: lse < -88 */
    int64_t key_stride; /* elements from key to key; 0: keys and values are halves of a buffer */
};

struct tensors {
    struct tri_view v[11]; /* q k v dout | o lse dq dk dv (of one engine) */
};
enum { Q, K, V, DOUT, O, LSE, DQ, DK, DV, NUM_TENSORS };

static void *get(size_t bytes)
{
    void *p = NULL;
    if (tri_arena_alloc(place.arena, "large", bytes, &p) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return p;
}

/* Fill (tokens, heads, d) with normal numbers of one sign, or of both when sign is 0. */
static void fill(struct tri_view v, uint64_t stream, double sign)
{
    int64_t row = v.dim[1] * v.dim[2];
    uint16_t *host = malloc((size_t)row * 2);
    assert_non_null(host);
    for (int64_t t = 0; t < v.dim[0]; t++) {
        for (int64_t i = 0; i < row; i++) {
            double x = tri_rng_normal(17, stream, (uint64_t)(t * row + i));
            host[i] = tri_bf16_from_double(sign == 0 ? x : sign * fabs(x));
        }
        assert_int_equal(cudaMemcpy((uint16_t *)v.data + t * v.stride[0], host, (size_t)row * 2,
                                    cudaMemcpyHostToDevice),
                         cudaSuccess);
    }
    free(host);
}

static struct tri_view rows(int64_t tokens, int64_t heads, int64_t d, int64_t stride)
{
    struct tri_view v = tri_view3(NULL, TRI_BF16, tokens, heads, d);
    v.stride[0] = stride;
    v.data = get((size_t)(tokens * stride) * 2);
    return v;
}

static void make(const struct large *s, struct tensors *t)
{
    int64_t stride = s->key_stride > 0 ? s->key_stride : 2 * s->hk * s->d;
    t->v[Q] = rows(s->tq, s->hq, s->d, s->hq * s->d);
    t->v[DOUT] = rows(s->tq, s->hq, s->d, s->hq * s->d);
    t->v[K] = rows(s->tk, s->hk, s->d, stride);
    t->v[V] = t->v[K];
    t->v[V].data = (uint16_t *)t->v[K].data + s->hk * s->d;
    fill(t->v[Q], 0, s->negative ? 4 : 0);
    fill(t->v[DOUT], 1, 0);
    fill(t->v[K], 2, s->negative ? -1 : 0);
    fill(t->v[V], 3, 0);
}

/* Forward and backward into new outputs, whose dk and dv start at 1. */
static void run(struct tri_backend *backend, const struct large *s, bool deterministic,
                struct tensors *t)
{
    struct tri_attn op = {.scale = 1 / sqrt((double)s->d),
                          .q_begin = s->q_begin,
                          .k_begin = s->k_begin,
                          .window = s->window,
                          .doc_begin = s->doc_begin,
                          .num_docs = s->num_docs,
                          .deterministic = deterministic};
    const struct tri_ops *ops = &backend->ops;
    struct tri_stream *stream = backend->stream;
    struct tri_view *v = t->v;
    v[O] = rows(s->tq, s->hq, s->d, s->hq * s->d);
    v[DQ] = rows(s->tq, s->hq, s->d, s->hq * s->d);
    v[LSE] = tri_view2(get((size_t)(s->tq * s->hq) * 4), TRI_F32, s->tq, s->hq);
    for (int i = DK; i <= DV; i++) {
        size_t bytes = (size_t)(s->tk * s->hk * s->d) * 4;
        v[i] = tri_view3(get(bytes), TRI_F32, s->tk, s->hk, s->d);
        assert_int_equal(cudaMemset(v[i].data, 0, bytes), cudaSuccess);
    }
    for (int backward = 0; backward <= 1; backward++) {
        size_t mark = tri_arena_mark(place.arena);
        size_t bytes = ops->attn_workspace(stream, &op, backward == 1, v[Q], v[K]);
        void *workspace = get(bytes);
        assert_int_equal(cudaMemset(workspace, 0xFF, bytes), cudaSuccess);
        enum tri_status st =
            backward == 1
                ? ops->attn_backward(stream, &op, false, v[DQ], v[DK], v[DV], v[DOUT], v[Q], v[K],
                                     v[V], v[O], v[LSE], workspace)
                : ops->attn_forward(stream, &op, v[O], v[LSE], v[Q], v[K], v[V], workspace);
        if (st != TRI_OK)
            fail_msg("%s", tri_error_text());
        assert_int_equal(ops->sync(stream), TRI_OK);
        tri_arena_release(place.arena, mark);
    }
}

static void *download(struct tri_view v, size_t *bytes)
{
    *bytes = tri_view_bytes(v);
    void *host = malloc(*bytes + 1);
    assert_non_null(host);
    assert_int_equal(cudaMemcpy(host, v.data, *bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
}

static double element(enum tri_dtype dtype, const void *data, int64_t i)
{
    return dtype == TRI_F32 ? ((const float *)data)[i]
                            : tri_bf16_to_float(((const uint16_t *)data)[i]);
}

/* Both round weights or results to bfloat16 only: a few parts in a thousand apart. */
static void demand_close(const char *what, struct tri_view got, struct tri_view want, double bound)
{
    size_t bytes;
    void *a = download(got, &bytes), *b = download(want, &bytes);
    double difference = 0, norm = 0;
    int64_t bad = 0;
    for (int64_t i = 0; i < tri_view_count(got); i++) {
        double x = element(got.dtype, a, i), y = element(want.dtype, b, i);
        if (x == y)
            norm += isfinite(y) ? y * y : 0;
        else if (!isfinite(x) || !isfinite(y))
            bad++;
        else {
            difference += (x - y) * (x - y);
            norm += y * y;
        }
    }
    free(a);
    free(b);
    if (bad > 0 || !(sqrt(difference) <= bound * sqrt(norm)))
        fail_msg("%s: %lld numbers are not finite, difference %.3g of norm %.3g", what,
                 (long long)bad, sqrt(difference), sqrt(norm));
}

static void compare_large(const char *name, const struct large *s, bool deterministic)
{
    static const char *const names[] = {"q", "k", "v", "do", "o", "lse", "dq", "dk", "dv"};
    struct tensors a, b;
    size_t mark = tri_arena_mark(place.arena);
    char what[128];
    make(s, &a);
    b = a;
    run(cudnn, s, deterministic, &a);
    run(own, s, true, &b);
    for (int i = O; i < NUM_TENSORS; i++) {
        snprintf(what, sizeof what, "%s: %s", name, names[i]);
        demand_close(what, a.v[i], b.v[i], i == LSE ? 1e-5 : 1e-2);
    }
    tri_arena_release(place.arena, mark);
}

/* lse far below zero and 64 (mod 128) keys without a causal mask gave NaN in dk and dv on Hopper
 * (cudnn-frontend pull request 628), one query did too (its issue 1072). */
static void test_very_negative_scores(void **state)
{
    (void)state;
    static const int64_t keys[] = {64, 192, 448, 320, 100};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        for (int64_t queries = 1; queries <= 256; queries = queries == 1 ? 128 : queries * 2) {
            struct large s = {queries, keys[i], 8, 2, 128, keys[i], 0, 0, 1, one, true, 0};
            compare_large("keys before queries", &s, false);
            s.q_begin = keys[i] - queries;
            if (s.q_begin >= 0)
                compare_large("chunk", &s, false);
        }
}

/* Hundreds of documents of mixed lengths: several classes, batches and tables. */
static void test_many_documents(void **state)
{
    (void)state;
    enum { TOKENS = 32768, MOST = 4096 };
    static int64_t docs[MOST + 1];
    int64_t n = 0;
    for (uint64_t i = 0; docs[n] < TOKENS && n < MOST; i++) {
        double u = tri_rng_uniform(5, 0, i), w = tri_rng_uniform(5, 1, i);
        int64_t length = 1 + (int64_t)(u < 0.9 ? 150 * w : u < 0.99 ? 1500 * w : 9000 * w);
        int64_t end = docs[n] + length;
        docs[++n] = end < TOKENS ? end : TOKENS;
    }
    print_message("%lld documents\n", (long long)n);
    struct large s = {TOKENS, TOKENS, 8, 2, 64, 0, 0, 0, n, docs, false, 0};
    compare_large("documents", &s, false);
    s.q_begin = 20001;
    s.tq = 9000;
    compare_large("chunk of documents", &s, false);
    s.window = 333;
    compare_large("chunk of documents, window", &s, false);
}

/* A straddling document and others, larger than what a plan of exact sizes pays for. */
static void test_large_straddler(void **state)
{
    (void)state;
    static const int64_t docs[] = {0, 3000, 74000, 75000, 75500, 76000, 90000};
    struct large s = {20000, 76000, 4, 2, 64, 56000, 0, 0, 6, docs, false, 0};
    compare_large("large straddler", &s, false);
    s.num_docs = 1; /* one document, of which a chunk and its prefix are two pieces */
    s.doc_begin = one;
    compare_large("large chunk", &s, false);
}

/* More heads than one group takes. */
static void test_head_groups(void **state)
{
    (void)state;
    struct large s = {12000, 12000, 32, 8, 128, 0, 0, 0, 1, one, false, 0};
    compare_large("groups", &s, false);
    size_t mark = tri_arena_mark(place.arena);
    struct tri_attn op = {.scale = 1, .doc_begin = one, .num_docs = 1};
    struct tri_view q = tri_view3(get(0), TRI_BF16, 65536, 32, 128);
    struct tri_view k = tri_view3(get(0), TRI_BF16, 65536, 8, 128);
    size_t bytes = cudnn->ops.attn_workspace(cudnn->stream, &op, true, q, k);
    print_message("workspace at 64K tokens: %zu MiB\n", bytes >> 20);
    assert_true(bytes > 0 && bytes < (size_t)1 << 30);
    tri_arena_release(place.arena, mark);
}

/* Keys 2^20 elements apart: offsets pass 2^32. */
static void test_far_rows(void **state)
{
    (void)state;
    static const int64_t docs[] = {0, 1000, 2500, 4200};
    struct large s = {600, 4200, 4, 2, 128, 3600, 0, 0, 1, one, false, 1 << 20};
    compare_large("far rows", &s, false);
    s.doc_begin = docs;
    s.num_docs = 3;
    s.q_begin = 900;
    s.tq = 3000;
    compare_large("far rows of documents", &s, false);
}

static void demand_equal_bits(const struct large *s)
{
    struct tensors a, b;
    size_t mark = tri_arena_mark(place.arena);
    make(s, &a);
    b = a;
    run(cudnn, s, true, &a);
    run(cudnn, s, true, &b);
    for (int i = O; i < NUM_TENSORS; i++) {
        size_t bytes;
        void *x = download(a.v[i], &bytes), *y = download(b.v[i], &bytes);
        assert_memory_equal(x, y, bytes);
        free(x);
        free(y);
    }
    tri_arena_release(place.arena, mark);
}

static void test_deterministic_repeats(void **state)
{
    (void)state;
    struct large s = {8192, 8192, 8, 2, 128, 0, 0, 0, 1, one, false, 0};
    demand_equal_bits(&s);
    compare_large("deterministic", &s, true);
    s.hq = s.hk = 1; /* more than one chunk of queries */
    s.tq = s.tk = 40000;
    compare_large("deterministic chunks", &s, true);
    demand_equal_bits(&s);
}

static void test_refusals(void **state)
{
    (void)state;
    struct tri_attn op = {.scale = 1, .doc_begin = one, .num_docs = 1};
    struct tri_view x = tri_view3(get(1 << 16), TRI_BF16, 16, 2, 36);
    struct tri_view lse = tri_view2(get(1 << 10), TRI_F32, 16, 2);
    const struct tri_attn_engine *engine = &((struct tri_cuda *)cudnn->ctx)->cudnn;
    assert_int_equal(engine->workspace(cudnn->stream, &op, true, x, x), 0);
    assert_int_equal(engine->forward(cudnn->stream, &op, x, lse, x, x, x, NULL), TRI_UNSUPPORTED);
    x = tri_view3(x.data, TRI_F32, 16, 2, 64);
    assert_int_equal(engine->forward(cudnn->stream, &op, x, lse, x, x, x, NULL), TRI_UNSUPPORTED);
    x = tri_view3((char *)x.data + 2, TRI_BF16, 16, 2, 64);
    assert_int_equal(engine->forward(cudnn->stream, &op, x, lse, x, x, x, NULL), TRI_UNSUPPORTED);
    x = tri_view3((char *)x.data - 2, TRI_BF16, 16, 2, 64);
    x.stride[0] = (int64_t)1 << 31; /* cuDNN 9.19 takes it and gives wrong numbers */
    assert_int_equal(engine->forward(cudnn->stream, &op, x, lse, x, x, x, NULL), TRI_UNSUPPORTED);
    tri_error_clear();
}

/* test_attn_cudnn [PATTERN]: only the tests that match. */
int main(int argc, char **argv)
{
    enum { SKIPPED = 77 };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_sizes),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_deterministic_masks),
        cmocka_unit_test(test_very_negative_scores),
        cmocka_unit_test(test_many_documents),
        cmocka_unit_test(test_large_straddler),
        cmocka_unit_test(test_head_groups),
        cmocka_unit_test(test_far_rows),
        cmocka_unit_test(test_deterministic_repeats),
        cmocka_unit_test(test_refusals),
    };
    tri_test_need_card();
    struct tri_cuda_info info;
    tri_cuda_probe(0, &info);
    if (!info.cudnn.found) {
        printf("skipped: %s\n", info.cudnn.problem);
        return SKIPPED;
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    struct tri_cuda_config config = {.attention = TRI_CUDA_ATTENTION_CUDNN};
    cudnn = tri_test_open_card(&config);
    config.attention = TRI_CUDA_ATTENTION_OWN;
    own = tri_test_open_card(&config);
    place.backend = cudnn;
    assert_int_equal(tri_arena_open(cudnn->memory, (size_t)24 << 30, &place.arena), TRI_OK);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tri_test_place_close(&place);
    tri_cuda_close(own);
    tri_cuda_close(cudnn);
    return failed;
}
