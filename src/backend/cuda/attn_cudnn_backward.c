/* FlashAttention-2 backward (Dao 2023) as cuDNN recognises it: the scores again from q, k and lse,
 * then dv, dk and dq. */
#include "backend/cuda/attn_cudnn_sdpa.h"

#define F32  CUDNN_DATA_FLOAT
#define BF16 CUDNN_DATA_BFLOAT16

/* x (a score matrix) with queries as columns. */
static cudnnBackendDescriptor_t transpose(const struct tri_cudnn_scores *c,
                                          cudnnBackendDescriptor_t x)
{
    int64_t h = c->s->q_heads, n = c->s->q_rows, m = c->s->k_rows;
    int64_t dim[4] = {c->s->batch, h, m, n}, stride[4] = {h * n * m, n * m, 1, m};
    return tri_cudnn_reshape(c->g, x, tri_cudnn_inner_strided(c->g, BF16, dim, stride, NULL));
}

/* out(keys, D) = x^T y, summed over the query heads of each key head. */
static void key_gradient(const struct tri_cudnn_scores *c, cudnnBackendDescriptor_t x,
                         cudnnBackendDescriptor_t y, enum tri_cudnn_id id)
{
    const struct tri_cudnn_sdpa *s = c->s;
    struct tri_cudnn_overrides sizes = {.rows = c->k_length, .depth = c->q_length};
    cudnnBackendDescriptor_t out = tri_cudnn_sdpa_tensor(
        c, id, s->dkv_float ? F32 : BF16, s->k_heads, s->k_rows, s->head_size, s->dkv, false);
    if (s->q_heads == s->k_heads) {
        tri_cudnn_matmul(c->g, transpose(c, x), y, out, sizes);
        return;
    }
    cudnnBackendDescriptor_t all =
        tri_cudnn_inner(c->g, BF16, s->batch, s->q_heads, s->k_rows, s->head_size);
    tri_cudnn_matmul(c->g, transpose(c, x), y, all, sizes);
    tri_cudnn_reduce(c->g, CUDNN_REDUCE_TENSOR_ADD, all, out);
}

/* delta: row sums of dO O. */
static cudnnBackendDescriptor_t row_sums(const struct tri_cudnn_scores *c,
                                         cudnnBackendDescriptor_t dout, cudnnBackendDescriptor_t o)
{
    struct tri_cudnn_graph *g = c->g;
    int64_t b = c->s->batch, h = c->s->q_heads, n = c->s->q_rows, d = c->s->head_size;
    int64_t dim[4] = {b, h, n, d}, stride[4] = {h * n * d, n * d, h * d, 1};
    cudnnBackendDescriptor_t x =
        tri_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, F32, dout, o, NULL,
                            tri_cudnn_inner_strided(g, F32, dim, stride, NULL));
    x = tri_cudnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, x, tri_cudnn_row(c));
    struct tri_cudnn_tensor delta = {
        .id = TRI_CUDNN_DELTA, .dtype = F32, .dim = {b, h, n, 1}, .stride = {h * n, n, 1, 1}};
    return tri_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, F32, x,
                               tri_cudnn_value(g, TRI_CUDNN_ONE, F32), NULL,
                               tri_cudnn_tensor(g, &delta));
}

/* dq = ds k, gathered in float32 by atomic sums unless deterministic. */
static void query_gradient(const struct tri_cudnn_scores *c, cudnnBackendDescriptor_t ds,
                           cudnnBackendDescriptor_t k)
{
    struct tri_cudnn_graph *g = c->g;
    const struct tri_cudnn_sdpa *s = c->s;
    int64_t b = s->batch, h = s->q_heads, n = s->q_rows, d = s->head_size;
    struct tri_cudnn_overrides sizes = {.rows = c->q_length, .depth = c->k_length};
    int64_t dim[4] = {b, s->k_heads, s->k_rows, d};
    int64_t stride[4] = {s->k_rows * s->k.token, s->k.head, s->k.token, 1};
    k = tri_cudnn_reshape(g, k,
                          tri_cudnn_inner_strided(g, BF16, dim, stride, c->offsets[TRI_CUDNN_K]));
    cudnnBackendDescriptor_t dq =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_DQ, BF16, h, n, d, s->dq, false);
    if (s->deterministic) {
        tri_cudnn_matmul(g, ds, k, dq, sizes);
        return;
    }
    struct tri_cudnn_tensor sum = {.id = TRI_CUDNN_DQ_SUM,
                                   .dtype = F32,
                                   .dim = {b, h, n, d},
                                   .stride = {h * n * d, n * d, d, 1}};
    cudnnBackendDescriptor_t total = tri_cudnn_tensor(g, &sum);
    tri_cudnn_matmul(g, ds, k, total, sizes);
    tri_cudnn_pointwise(g, CUDNN_POINTWISE_IDENTITY, F32, total, NULL, NULL, dq);
}

void tri_cudnn_sdpa_backward(const struct tri_cudnn_scores *c)
{
    struct tri_cudnn_graph *g = c->g;
    const struct tri_cudnn_sdpa *s = c->s;
    int64_t h = s->q_heads, n = s->q_rows, m = s->k_rows, d = s->head_size;
    cudnnBackendDescriptor_t q = tri_cudnn_sdpa_tensor(c, TRI_CUDNN_Q, BF16, h, n, d, s->q, false);
    cudnnBackendDescriptor_t k =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_K, BF16, s->k_heads, m, d, s->k, true);
    cudnnBackendDescriptor_t v =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_V, BF16, s->k_heads, m, d, s->v, true);
    cudnnBackendDescriptor_t o = tri_cudnn_sdpa_tensor(c, TRI_CUDNN_O, BF16, h, n, d, s->o, false);
    cudnnBackendDescriptor_t lse =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_LSE, F32, h, n, 1, s->lse, false);
    cudnnBackendDescriptor_t dout =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_DOUT, BF16, h, n, d, s->dout, false);
    cudnnBackendDescriptor_t scale = tri_cudnn_value(g, TRI_CUDNN_SCALE, F32);
    struct tri_cudnn_overrides score_sizes = {.rows = c->q_length, .columns = c->k_length};

    cudnnBackendDescriptor_t delta = row_sums(c, dout, o);

    /* p = exp(mask(scale q k^T) - lse); dv = p^T dO */
    cudnnBackendDescriptor_t x = tri_cudnn_matmul(g, q, k, tri_cudnn_score(c, F32), score_sizes);
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, F32, x, scale, NULL, tri_cudnn_score(c, F32));
    x = tri_cudnn_hide_padding(c, x);
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_SUB, F32, x, lse, NULL, tri_cudnn_score(c, F32));
    x = tri_cudnn_hide_band(c, x);
    cudnnBackendDescriptor_t p =
        tri_cudnn_pointwise(g, CUDNN_POINTWISE_EXP, F32, x, NULL, NULL, tri_cudnn_score(c, F32));
    key_gradient(c, p, dout, TRI_CUDNN_DV);

    /* ds = scale p (dO v^T - delta); dk = ds^T q; dq = ds k */
    x = tri_cudnn_matmul(g, dout, v, tri_cudnn_score(c, F32), score_sizes);
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_SUB, F32, x, delta, NULL, tri_cudnn_score(c, F32));
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, F32, x, p, NULL, tri_cudnn_score(c, F32));
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, F32, x, scale, NULL, tri_cudnn_score(c, F32));
    key_gradient(c, x, q, TRI_CUDNN_DK);
    query_gradient(c, x, k);
}
