/* Attention as a composite graph of cuDNN: which ops in which order (forward, backward, mask).
 *
 * The order of the operations is that of NVIDIA's cudnn-frontend: the engines recognise it. Their
 * unified attention node has no causal mask before 9.21 and no backward. */
#ifndef TRI_BACKEND_CUDA_ATTN_CUDNN_SDPA_H
#define TRI_BACKEND_CUDA_ATTN_CUDNN_SDPA_H

#include "backend/cuda/attn_cudnn_graph.h"

/* Identifiers of what the caller provides at run time. */
enum tri_cudnn_id {
    TRI_CUDNN_Q = 1,
    TRI_CUDNN_K,
    TRI_CUDNN_V,
    TRI_CUDNN_O,
    TRI_CUDNN_LSE,
    TRI_CUDNN_DOUT,
    TRI_CUDNN_DQ,
    TRI_CUDNN_DK,
    TRI_CUDNN_DV,
    TRI_CUDNN_DQ_SUM, /* float32 (B,Hq,Sq,D), contents undefined */
    TRI_CUDNN_DELTA,  /* float32 (B,Hq,Sq), contents undefined: row sums of dO O */
    TRI_CUDNN_Q_LENGTH,
    TRI_CUDNN_K_LENGTH, /* int32 (B) */
    TRI_CUDNN_OFFSETS,  /* int64 (B+1), in elements; one array for each tensor: OFFSETS + its id */
    TRI_CUDNN_SCALE = TRI_CUDNN_OFFSETS + 16,
    TRI_CUDNN_ONE,
    TRI_CUDNN_HIDDEN_PADDING, /* -infinity, one for each use */
    TRI_CUDNN_HIDDEN_FUTURE,
    TRI_CUDNN_HIDDEN_PAST,
    TRI_CUDNN_ALIGN_K, /* int32: rows of keys and of queries, for bottom-right masks */
    TRI_CUDNN_ALIGN_Q,
    TRI_CUDNN_WINDOW, /* float32, or int32 when aligned by lengths */
};

/* Elements from token to token and from head to head. */
struct tri_cudnn_strides {
    int64_t token, head;
};

/* Everything a plan depends on: compared as bytes, so that unused fields must be 0. */
struct tri_cudnn_sdpa {
    int64_t batch, q_heads, k_heads, q_rows, k_rows, head_size;
    struct tri_cudnn_strides q, k, v, o, lse, dout, dq, dkv;
    int32_t backward;
    int32_t deterministic; /* backward without atomic sums; workspace B Hq Sq Sk 2 bytes */
    int32_t causal;        /* query row i sees key rows <= i + shift */
    int32_t bottom_right;  /* shift is (keys - queries), otherwise 0 */
    int32_t window;        /* and only key rows > i + shift - window */
    int32_t padded;        /* true lengths of each batch entry come in int32 arrays */
    int32_t ragged;        /* and entries start at the offsets of int64 arrays */
    int32_t dkv_float;     /* dk and dv are float32, otherwise bfloat16 */
};

/* What both directions and the mask share while they are built. */
struct tri_cudnn_scores {
    struct tri_cudnn_graph *g;
    const struct tri_cudnn_sdpa *s;
    cudnnBackendDescriptor_t q_length, k_length; /* NULL unless padded */
    /* Where batch entries start, for each outer tensor; NULL unless ragged. */
    cudnnBackendDescriptor_t offsets[TRI_CUDNN_DV + 1];
};

/* Append all operations to `g`. Needs no card. */
void tri_cudnn_sdpa_build(struct tri_cudnn_graph *g, const struct tri_cudnn_sdpa *s);

/* The parts of it. */
void tri_cudnn_sdpa_forward(const struct tri_cudnn_scores *c);
void tri_cudnn_sdpa_backward(const struct tri_cudnn_scores *c);
/* Scores with -infinity where a batch entry is padded / where the mask hides. */
cudnnBackendDescriptor_t tri_cudnn_hide_padding(const struct tri_cudnn_scores *c,
                                                cudnnBackendDescriptor_t x);
cudnnBackendDescriptor_t tri_cudnn_hide_band(const struct tri_cudnn_scores *c,
                                             cudnnBackendDescriptor_t x);
/* An outer tensor (B, heads, rows, columns) with its ragged offsets; `transposed` swaps the last
 * two dimensions. */
cudnnBackendDescriptor_t tri_cudnn_sdpa_tensor(const struct tri_cudnn_scores *c,
                                               enum tri_cudnn_id id, cudnnDataType_t dtype,
                                               int64_t heads, int64_t rows, int64_t columns,
                                               struct tri_cudnn_strides strides, bool transposed);
/* A score matrix for every query head, inside the graph. */
cudnnBackendDescriptor_t tri_cudnn_score(const struct tri_cudnn_scores *c, cudnnDataType_t dtype);
/* One number for every query row, inside the graph. */
cudnnBackendDescriptor_t tri_cudnn_row(const struct tri_cudnn_scores *c);

#endif
