/* Attention: softmax(scale q k^T + mask) v and its gradients.
 *
 * Scores are never stored: forward computes them twice (maximum, then sum), backward computes them
 * again from the log-sum-exp, once for dq and once for dk and dv, as in FlashAttention-2 (Dao
 * 2023). So memory is linear in the number of tokens.
 */
#include "backend/cpu/reference/reference.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct range {
    int64_t begin;
    int64_t end; /* not in it; may be below begin: empty */
};

static struct range intersect(struct range a, struct range b)
{
    if (b.begin > a.begin)
        a.begin = b.begin;
    if (b.end < a.end)
        a.end = b.end;
    return a;
}

/* The document that holds a token: binary search for the last one that begins at or before it. */
static struct range document_of(const struct tri_attn *op, int64_t token)
{
    int64_t low = 0, high = op->num_docs;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (op->doc_begin[middle] <= token)
            low = middle;
        else
            high = middle;
    }
    assert(op->doc_begin[low] <= token && token < op->doc_begin[low + 1]);
    return (struct range){op->doc_begin[low], op->doc_begin[low + 1]};
}

/* Rows of k that query row i sees, and rows of q that see key row j: both are ranges, since
 * causality, documents and windows all cut ranges. Rows count from q_begin and k_begin. */
static struct range keys_of_query(const struct tri_attn *op, int64_t i, int64_t num_keys)
{
    int64_t token = op->q_begin + i;
    struct range seen = {document_of(op, token).begin, token + 1};
    if (op->window > 0 && token - seen.begin >= op->window)
        seen.begin = token - op->window + 1;
    seen.begin -= op->k_begin;
    seen.end -= op->k_begin;
    return intersect(seen, (struct range){0, num_keys});
}

static struct range queries_of_key(const struct tri_attn *op, int64_t j, int64_t num_queries)
{
    int64_t token = op->k_begin + j;
    struct range seeing = {token, document_of(op, token).end};
    if (op->window > 0 && seeing.end - token > op->window)
        seeing.end = token + op->window;
    seeing.begin -= op->q_begin;
    seeing.end -= op->q_begin;
    return intersect(seeing, (struct range){0, num_queries});
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, double factor, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * x[i];
}

/* Row (token, head) of a (T,H,D) tensor as float64. */
static const double *load_head(struct tri_view v, int64_t t, int64_t h, double *buffer)
{
    return tri_reference_load(v, t * v.stride[0] + h * v.stride[1], v.dim[2], buffer);
}

static int64_t lse_offset(struct tri_view lse, int64_t t, int64_t h)
{
    return t * lse.stride[0] + h;
}

static void check_shapes(struct tri_view q, struct tri_view k, struct tri_view v, struct tri_view o,
                         struct tri_view lse)
{
    assert(tri_view_same_shape(k, v) && tri_view_same_shape(q, o));
    assert(q.dim[2] == k.dim[2] && q.dim[1] % k.dim[1] == 0);
    assert(lse.dim[0] == q.dim[0] && lse.dim[1] == q.dim[1]);
    (void)q, (void)k, (void)v, (void)o, (void)lse; /* without assertions */
}

/* Forward: converted rows of q and of k or v, and the sum of v. Backward: rows of q, k, v and dout,
 * two sums, and delta(Tq,Hq). */
enum { FORWARD_ROWS = 3, BACKWARD_ROWS = 6 };

size_t tri_reference_attn_workspace(struct tri_stream *s, const struct tri_attn *op, bool backward,
                                    struct tri_view q, struct tri_view k)
{
    (void)s;
    (void)op;
    (void)k;
    int64_t doubles = FORWARD_ROWS * q.dim[2];
    if (backward)
        doubles = BACKWARD_ROWS * q.dim[2] + q.dim[0] * q.dim[1];
    return (size_t)doubles * sizeof(double);
}

enum tri_status tri_reference_attn_forward(struct tri_stream *s, const struct tri_attn *op,
                                           struct tri_view o, struct tri_view lse,
                                           struct tri_view q, struct tri_view k, struct tri_view v,
                                           void *workspace)
{
    (void)s;
    check_shapes(q, k, v, o, lse);
    TRI_TRY(tri_reference_check("attn_forward", (struct tri_view[]){o, lse, q, k, v}, 5));
    int64_t head_size = q.dim[2], group = q.dim[1] / k.dim[1];
    double *q_buffer = workspace, *kv_buffer = q_buffer + head_size,
           *sum_pv = kv_buffer + head_size;

    for (int64_t i = 0; i < q.dim[0]; i++) {
        struct range seen = keys_of_query(op, i, k.dim[0]);
        for (int64_t h = 0; h < q.dim[1]; h++) {
            const double *query = load_head(q, i, h, q_buffer);
            double max = -INFINITY;
            for (int64_t j = seen.begin; j < seen.end; j++)
                max = fmax(max, op->scale *
                                    dot(query, load_head(k, j, h / group, kv_buffer), head_size));

            double sum_p = 0;
            memset(sum_pv, 0, (size_t)head_size * sizeof(double));
            for (int64_t j = seen.begin; j < seen.end; j++) {
                const double *key = load_head(k, j, h / group, kv_buffer);
                double p = exp(op->scale * dot(query, key, head_size) - max);
                sum_p += p;
                add_scaled(sum_pv, p, load_head(v, j, h / group, kv_buffer), head_size);
            }

            bool blind = seen.begin >= seen.end;
            for (int64_t d = 0; d < head_size; d++)
                tri_reference_set(o, i * o.stride[0] + h * o.stride[1] + d,
                                  blind ? 0 : sum_pv[d] / sum_p);
            tri_reference_set(lse, lse_offset(lse, i, h), blind ? -INFINITY : max + log(sum_p));
        }
    }
    return TRI_OK;
}

/* With P = exp(scale q k^T - lse), dP = dout v^T and delta = rowsum(dout * o):
 *   dS = P * (dP - delta)     dq = scale dS k     dk = scale dS^T q     dv = P^T dout */
struct backward {
    const struct tri_attn *op;
    struct tri_view dout, q, k, v, lse;
    double *q_buffer, *k_buffer, *v_buffer, *dout_buffer; /* (D) */
    double *sum_a, *sum_b;                                /* (D) */
    double *delta;                                        /* (Tq,Hq) */
};

/* P and dS of one pair from its four rows. */
static void pair(const struct backward *b, int64_t i, int64_t h, const double *query,
                 const double *key, const double *value, const double *dout, double *p, double *ds)
{
    int64_t head_size = b->q.dim[2];
    double lse = tri_reference_get(b->lse, lse_offset(b->lse, i, h));
    *p = exp(b->op->scale * dot(query, key, head_size) - lse);
    *ds = *p * (dot(dout, value, head_size) - b->delta[i * b->q.dim[1] + h]);
}

static void backward_query(const struct backward *b, bool accumulate, struct tri_view dq,
                           struct tri_view o, int64_t i, int64_t h)
{
    int64_t head_size = b->q.dim[2], hk = h / (b->q.dim[1] / b->k.dim[1]);
    struct range seen = keys_of_query(b->op, i, b->k.dim[0]);
    const double *query = load_head(b->q, i, h, b->q_buffer);
    const double *dout = load_head(b->dout, i, h, b->dout_buffer);
    b->delta[i * b->q.dim[1] + h] = dot(dout, load_head(o, i, h, b->k_buffer), head_size);

    memset(b->sum_a, 0, (size_t)head_size * sizeof(double));
    for (int64_t j = seen.begin; j < seen.end; j++) {
        const double *key = load_head(b->k, j, hk, b->k_buffer);
        double p, ds;
        pair(b, i, h, query, key, load_head(b->v, j, hk, b->v_buffer), dout, &p, &ds);
        add_scaled(b->sum_a, b->op->scale * ds, key, head_size);
    }
    int64_t row = i * dq.stride[0] + h * dq.stride[1];
    for (int64_t d = 0; d < head_size; d++)
        if (accumulate)
            tri_reference_add(dq, row + d, b->sum_a[d]);
        else
            tri_reference_set(dq, row + d, b->sum_a[d]);
}

static void backward_key(const struct backward *b, struct tri_view dk, struct tri_view dv,
                         int64_t j, int64_t hk)
{
    int64_t head_size = b->q.dim[2], group = b->q.dim[1] / b->k.dim[1];
    struct range seeing = queries_of_key(b->op, j, b->q.dim[0]);
    const double *key = load_head(b->k, j, hk, b->k_buffer);
    const double *value = load_head(b->v, j, hk, b->v_buffer);

    memset(b->sum_a, 0, (size_t)head_size * sizeof(double));
    memset(b->sum_b, 0, (size_t)head_size * sizeof(double));
    for (int64_t h = hk * group; h < (hk + 1) * group; h++) {
        for (int64_t i = seeing.begin; i < seeing.end; i++) {
            const double *query = load_head(b->q, i, h, b->q_buffer);
            const double *dout = load_head(b->dout, i, h, b->dout_buffer);
            double p, ds;
            pair(b, i, h, query, key, value, dout, &p, &ds);
            add_scaled(b->sum_a, b->op->scale * ds, query, head_size);
            add_scaled(b->sum_b, p, dout, head_size);
        }
    }
    for (int64_t d = 0; d < head_size; d++) {
        tri_reference_add(dk, j * dk.stride[0] + hk * dk.stride[1] + d, b->sum_a[d]);
        tri_reference_add(dv, j * dv.stride[0] + hk * dv.stride[1] + d, b->sum_b[d]);
    }
}

enum tri_status tri_reference_attn_backward(struct tri_stream *s, const struct tri_attn *op,
                                            bool accumulate_dq, struct tri_view dq,
                                            struct tri_view dk, struct tri_view dv,
                                            struct tri_view dout, struct tri_view q,
                                            struct tri_view k, struct tri_view v, struct tri_view o,
                                            struct tri_view lse, void *workspace)
{
    (void)s;
    check_shapes(q, k, v, o, lse);
    TRI_TRY(tri_reference_check("attn_backward",
                                (struct tri_view[]){dq, dk, dv, dout, q, k, v, o, lse}, 9));
    int64_t head_size = q.dim[2];
    double *rows = workspace;
    struct backward b = {
        .op = op,
        .dout = dout,
        .q = q,
        .k = k,
        .v = v,
        .lse = lse,
        .q_buffer = rows,
        .k_buffer = rows + head_size,
        .v_buffer = rows + 2 * head_size,
        .dout_buffer = rows + 3 * head_size,
        .sum_a = rows + 4 * head_size,
        .sum_b = rows + 5 * head_size,
        .delta = rows + BACKWARD_ROWS * head_size,
    };
    for (int64_t i = 0; i < q.dim[0]; i++)
        for (int64_t h = 0; h < q.dim[1]; h++)
            backward_query(&b, accumulate_dq, dq, o, i, h);
    for (int64_t j = 0; j < k.dim[0]; j++)
        for (int64_t hk = 0; hk < k.dim[1]; hk++)
            backward_key(&b, dk, dv, j, hk);
    return TRI_OK;
}
