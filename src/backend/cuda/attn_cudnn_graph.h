/* A graph of cuDNN operations under construction, with one place for errors.
 *
 * Calls after the first failure do nothing; tri_cudnn_graph_finish reports it. Nothing here needs
 * a card or a handle, so graphs are built and tested on any machine that has the library. */
#ifndef TRI_BACKEND_CUDA_ATTN_CUDNN_GRAPH_H
#define TRI_BACKEND_CUDA_ATTN_CUDNN_GRAPH_H

#include "backend/cuda/attn_cudnn_api.h"

enum { TRI_CUDNN_MAX_DESCRIPTORS = 320, TRI_CUDNN_MAX_OPS = 64 };

struct tri_cudnn_graph {
    const struct tri_cudnn_api *api;
    cudnnBackendDescriptor_t descriptors[TRI_CUDNN_MAX_DESCRIPTORS]; /* all, to be destroyed */
    int num_descriptors;
    cudnnBackendDescriptor_t ops[TRI_CUDNN_MAX_OPS];
    int num_ops;
    int64_t next_virtual; /* identifiers of tensors that exist inside the graph only */
    cudnnStatus_t status;
    const char *where; /* which call failed first */
};

/* A tensor (batch, heads, rows, columns) that the caller provides at run time. */
struct tri_cudnn_tensor {
    int64_t id;
    cudnnDataType_t dtype;
    int64_t dim[4];
    int64_t stride[4];
    int64_t alignment;                /* bytes; 0: 16 */
    bool by_value;                    /* a number in host memory */
    cudnnBackendDescriptor_t offsets; /* ragged: where each batch entry starts, or NULL */
};

void tri_cudnn_graph_begin(struct tri_cudnn_graph *g, const struct tri_cudnn_api *api);

cudnnBackendDescriptor_t tri_cudnn_tensor(struct tri_cudnn_graph *g,
                                          const struct tri_cudnn_tensor *tensor);
/* One number in host memory at run time. */
cudnnBackendDescriptor_t tri_cudnn_value(struct tri_cudnn_graph *g, int64_t id,
                                         cudnnDataType_t dtype);
/* A tensor inside the graph: contiguous, or with the strides given (ragged with `offsets`). */
cudnnBackendDescriptor_t tri_cudnn_inner(struct tri_cudnn_graph *g, cudnnDataType_t dtype,
                                         int64_t b, int64_t h, int64_t rows, int64_t columns);
cudnnBackendDescriptor_t tri_cudnn_inner_strided(struct tri_cudnn_graph *g, cudnnDataType_t dtype,
                                                 const int64_t dim[4], const int64_t stride[4],
                                                 cudnnBackendDescriptor_t offsets);

/* y = mode(x, b) or mode(x, b, t); b and t may be NULL. Returns y. */
cudnnBackendDescriptor_t tri_cudnn_pointwise(struct tri_cudnn_graph *g, cudnnPointwiseMode_t mode,
                                             cudnnDataType_t precision, cudnnBackendDescriptor_t x,
                                             cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t,
                                             cudnnBackendDescriptor_t y);
/* y = the index of each element of x along `axis`. */
cudnnBackendDescriptor_t tri_cudnn_index(struct tri_cudnn_graph *g, cudnnDataType_t precision,
                                         int64_t axis, cudnnBackendDescriptor_t x,
                                         cudnnBackendDescriptor_t y);
/* c = a b in float32; the overrides give the true sizes of padded batch entries, or are NULL. */
struct tri_cudnn_overrides {
    cudnnBackendDescriptor_t rows, columns, depth;
    bool zero_padding; /* what lies past the true sizes counts as 0 */
};
cudnnBackendDescriptor_t tri_cudnn_matmul(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t a,
                                          cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c,
                                          struct tri_cudnn_overrides overrides);
cudnnBackendDescriptor_t tri_cudnn_reduce(struct tri_cudnn_graph *g, cudnnReduceTensorOp_t op,
                                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y);
cudnnBackendDescriptor_t tri_cudnn_reshape(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t x,
                                           cudnnBackendDescriptor_t y);

/* A descriptor that lives as long as the graph. */
cudnnBackendDescriptor_t tri_cudnn_descriptor(struct tri_cudnn_graph *g,
                                              cudnnBackendDescriptorType_t type);
void tri_cudnn_set(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t d,
                   cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   int64_t count, const void *values, const char *what);
void tri_cudnn_finalize(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t d, const char *what);

/* The finished operation graph. `handle` NULL checks its form without a card. */
enum tri_status tri_cudnn_graph_finish(struct tri_cudnn_graph *g, cudnnHandle_t handle,
                                       cudnnBackendDescriptor_t *out);
void tri_cudnn_graph_free(struct tri_cudnn_graph *g);

#endif
