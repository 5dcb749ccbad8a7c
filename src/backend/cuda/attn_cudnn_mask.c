/* The mask of attention as cuDNN operations, and what its graphs share. */
#include "backend/cuda/attn_cudnn_sdpa.h"

#define F32  CUDNN_DATA_FLOAT
#define I32  CUDNN_DATA_INT32
#define BOOL CUDNN_DATA_BOOLEAN

cudnnBackendDescriptor_t tri_cudnn_score(const struct tri_cudnn_scores *c, cudnnDataType_t dtype)
{
    return tri_cudnn_inner(c->g, dtype, c->s->batch, c->s->q_heads, c->s->q_rows, c->s->k_rows);
}

cudnnBackendDescriptor_t tri_cudnn_row(const struct tri_cudnn_scores *c)
{
    return tri_cudnn_inner(c->g, F32, c->s->batch, c->s->q_heads, c->s->q_rows, 1);
}

cudnnBackendDescriptor_t tri_cudnn_sdpa_tensor(const struct tri_cudnn_scores *c,
                                               enum tri_cudnn_id id, cudnnDataType_t dtype,
                                               int64_t heads, int64_t rows, int64_t columns,
                                               struct tri_cudnn_strides strides, bool transposed)
{
    struct tri_cudnn_tensor t = {
        .id = id,
        .dtype = dtype,
        .dim = {c->s->batch, heads, rows, columns},
        .stride = {rows * strides.token, strides.head, strides.token, 1},
        .alignment = dtype == F32 && columns == 1 ? 4 : 16, /* one head of lse may start anywhere */
        .offsets = c->offsets[id]};
    if (transposed) {
        t.dim[2] = columns;
        t.dim[3] = rows;
        t.stride[2] = 1;
        t.stride[3] = strides.token;
    }
    return tri_cudnn_tensor(c->g, &t);
}

cudnnBackendDescriptor_t tri_cudnn_hide_padding(const struct tri_cudnn_scores *c,
                                                cudnnBackendDescriptor_t x)
{
    if (!c->s->padded)
        return x;
    struct tri_cudnn_graph *g = c->g;
    cudnnBackendDescriptor_t row = tri_cudnn_index(g, I32, 2, x, tri_cudnn_score(c, I32));
    cudnnBackendDescriptor_t column = tri_cudnn_index(g, I32, 3, x, tri_cudnn_score(c, I32));
    cudnnBackendDescriptor_t row_in = tri_cudnn_pointwise(
        g, CUDNN_POINTWISE_CMP_LT, BOOL, row, c->q_length, NULL, tri_cudnn_score(c, BOOL));
    cudnnBackendDescriptor_t column_in = tri_cudnn_pointwise(
        g, CUDNN_POINTWISE_CMP_LT, BOOL, column, c->k_length, NULL, tri_cudnn_score(c, BOOL));
    cudnnBackendDescriptor_t in = tri_cudnn_pointwise(g, CUDNN_POINTWISE_LOGICAL_AND, BOOL, row_in,
                                                      column_in, NULL, tri_cudnn_score(c, BOOL));
    return tri_cudnn_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, F32, x,
                               tri_cudnn_value(g, TRI_CUDNN_HIDDEN_PADDING, F32), in,
                               tri_cudnn_score(c, F32));
}

/* Keep key rows <= i + shift. */
static cudnnBackendDescriptor_t hide_future(const struct tri_cudnn_scores *c,
                                            cudnnBackendDescriptor_t x)
{
    struct tri_cudnn_graph *g = c->g;
    cudnnBackendDescriptor_t row = tri_cudnn_index(g, F32, 2, x, tri_cudnn_score(c, I32));
    cudnnBackendDescriptor_t column = tri_cudnn_index(g, F32, 3, x, tri_cudnn_score(c, I32));
    if (c->s->bottom_right) {
        cudnnBackendDescriptor_t keys =
            c->s->padded ? c->k_length : tri_cudnn_value(g, TRI_CUDNN_ALIGN_K, I32);
        row = tri_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, I32, row, keys, NULL,
                                  tri_cudnn_score(c, I32));
        cudnnBackendDescriptor_t queries =
            c->s->padded ? c->q_length : tri_cudnn_value(g, TRI_CUDNN_ALIGN_Q, I32);
        row = tri_cudnn_pointwise(g, CUDNN_POINTWISE_SUB, I32, row, queries, NULL,
                                  tri_cudnn_score(c, I32));
    }
    cudnnBackendDescriptor_t keep = tri_cudnn_pointwise(g, CUDNN_POINTWISE_CMP_GE, BOOL, row,
                                                        column, NULL, tri_cudnn_score(c, BOOL));
    return tri_cudnn_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, F32, x,
                               tri_cudnn_value(g, TRI_CUDNN_HIDDEN_FUTURE, F32), keep,
                               tri_cudnn_score(c, F32));
}

/* Keep key rows with row + window > i + shift. With fixed lengths the caller takes the shift off
 * the window. */
static cudnnBackendDescriptor_t hide_past(const struct tri_cudnn_scores *c,
                                          cudnnBackendDescriptor_t x)
{
    struct tri_cudnn_graph *g = c->g;
    bool by_lengths = c->s->bottom_right && c->s->padded;
    cudnnDataType_t dtype = by_lengths ? I32 : F32;
    cudnnBackendDescriptor_t row = tri_cudnn_index(g, F32, 2, x, tri_cudnn_score(c, I32));
    cudnnBackendDescriptor_t column = tri_cudnn_index(g, F32, 3, x, tri_cudnn_score(c, I32));
    column = tri_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, dtype, column,
                                 tri_cudnn_value(g, TRI_CUDNN_WINDOW, dtype), NULL,
                                 tri_cudnn_score(c, dtype));
    if (by_lengths) {
        column = tri_cudnn_pointwise(g, CUDNN_POINTWISE_SUB, I32, column, c->k_length, NULL,
                                     tri_cudnn_score(c, I32));
        column = tri_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, I32, column, c->q_length, NULL,
                                     tri_cudnn_score(c, I32));
    }
    cudnnBackendDescriptor_t keep = tri_cudnn_pointwise(g, CUDNN_POINTWISE_CMP_GT, BOOL, column,
                                                        row, NULL, tri_cudnn_score(c, BOOL));
    return tri_cudnn_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, F32, x,
                               tri_cudnn_value(g, TRI_CUDNN_HIDDEN_PAST, F32), keep,
                               tri_cudnn_score(c, F32));
}

cudnnBackendDescriptor_t tri_cudnn_hide_band(const struct tri_cudnn_scores *c,
                                             cudnnBackendDescriptor_t x)
{
    if (c->s->causal)
        x = hide_future(c, x);
    return c->s->window ? hide_past(c, x) : x;
}

void tri_cudnn_sdpa_build(struct tri_cudnn_graph *g, const struct tri_cudnn_sdpa *s)
{
    struct tri_cudnn_scores c = {.g = g, .s = s};
    int64_t last = s->backward ? TRI_CUDNN_DV : TRI_CUDNN_LSE;
    if (s->padded) {
        struct tri_cudnn_tensor length = {.id = TRI_CUDNN_Q_LENGTH,
                                          .dtype = I32,
                                          .dim = {s->batch, 1, 1, 1},
                                          .stride = {1, 1, 1, 1}};
        c.q_length = tri_cudnn_tensor(g, &length);
        length.id = TRI_CUDNN_K_LENGTH;
        c.k_length = tri_cudnn_tensor(g, &length);
    }
    for (int64_t id = TRI_CUDNN_Q; id <= last && s->ragged; id++) {
        struct tri_cudnn_tensor offsets = {.id = TRI_CUDNN_OFFSETS + id,
                                           .dtype = CUDNN_DATA_INT64,
                                           .dim = {s->batch + 1, 1, 1, 1},
                                           .stride = {1, 1, 1, 1}};
        c.offsets[id] = tri_cudnn_tensor(g, &offsets);
    }
    if (s->backward)
        tri_cudnn_sdpa_backward(&c);
    else
        tri_cudnn_sdpa_forward(&c);
}
