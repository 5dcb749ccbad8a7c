#include "gpu/attn_plain.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

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
static void add_rows(const struct tri_test_case *c, double *const out[])
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

/* Round each result once, after what the tensor held is added. */
static void finish(const struct tri_test_case *c, int index, double *sum)
{
    const struct tri_test_tensor *t = &c->tensor[index];
    bool narrows = c->op == TRI_TEST_ATTN_BACKWARD || index == 0;
    for (int64_t i = 0; i < tri_test_count(t) && narrows; i++) {
        double before = t->role != TRI_TEST_INOUT  ? 0
                        : t->kind == TRI_TEST_STAT ? (double)(float)t->value[i]
                                                   : narrow(t->value[i]);
        double result = before + narrow(sum[i]);
        sum[i] = t->kind == TRI_TEST_STAT ? (double)(float)result : narrow(result);
    }
}

void tri_test_plain_attn(const struct tri_test_case *c, double *const out[])
{
    add_rows(c, out);
    for (int i = 0; i < c->num_tensors; i++)
        if (out[i] != NULL)
            finish(c, i, out[i]);
}
