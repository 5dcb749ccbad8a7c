/* FlashAttention forward as cuDNN recognises it: o = softmax(mask(scale q k^T)) v and
 * lse = log sum exp of the rows. */
#include "backend/cuda/attn_cudnn_sdpa.h"

#define F32  CUDNN_DATA_FLOAT
#define BF16 CUDNN_DATA_BFLOAT16

void tri_cudnn_sdpa_forward(const struct tri_cudnn_scores *c)
{
    struct tri_cudnn_graph *g = c->g;
    const struct tri_cudnn_sdpa *s = c->s;
    int64_t d = s->head_size;
    cudnnBackendDescriptor_t q =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_Q, BF16, s->q_heads, s->q_rows, d, s->q, false);
    cudnnBackendDescriptor_t k =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_K, BF16, s->k_heads, s->k_rows, d, s->k, true);
    cudnnBackendDescriptor_t v =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_V, BF16, s->k_heads, s->k_rows, d, s->v, false);
    cudnnBackendDescriptor_t o =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_O, BF16, s->q_heads, s->q_rows, d, s->o, false);
    cudnnBackendDescriptor_t lse =
        tri_cudnn_sdpa_tensor(c, TRI_CUDNN_LSE, F32, s->q_heads, s->q_rows, 1, s->lse, false);

    struct tri_cudnn_overrides score_sizes = {
        .rows = c->q_length, .columns = c->k_length, .zero_padding = s->padded};
    cudnnBackendDescriptor_t x = tri_cudnn_matmul(g, q, k, tri_cudnn_score(c, F32), score_sizes);
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, F32, x,
                            tri_cudnn_value(g, TRI_CUDNN_SCALE, F32), NULL,
                            tri_cudnn_score(c, F32));
    x = tri_cudnn_hide_padding(c, x);
    x = tri_cudnn_hide_band(c, x);

    cudnnBackendDescriptor_t max =
        tri_cudnn_reduce(g, CUDNN_REDUCE_TENSOR_MAX, x, tri_cudnn_row(c));
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_SUB, F32, x, max, NULL, tri_cudnn_score(c, F32));
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_EXP, F32, x, NULL, NULL, tri_cudnn_score(c, F32));
    cudnnBackendDescriptor_t sum =
        tri_cudnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, x, tri_cudnn_row(c));
    cudnnBackendDescriptor_t log =
        tri_cudnn_pointwise(g, CUDNN_POINTWISE_LOG, F32, sum, NULL, NULL, tri_cudnn_row(c));
    tri_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, F32, max, log, NULL, lse);
    x = tri_cudnn_pointwise(g, CUDNN_POINTWISE_DIV, F32, x, sum, NULL, tri_cudnn_score(c, BF16));

    struct tri_cudnn_overrides output_sizes = {.rows = c->q_length, .depth = c->k_length};
    tri_cudnn_matmul(g, x, v, o, output_sizes);
}
