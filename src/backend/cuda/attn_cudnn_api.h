/* cuDNN's backend API, opened at run time: the functions that attention needs. */
#ifndef TRI_BACKEND_CUDA_ATTN_CUDNN_API_H
#define TRI_BACKEND_CUDA_ATTN_CUDNN_API_H

#include <cudnn_graph.h>

#include "backend/cuda/cuda.h"

struct tri_cudnn_api {
    size_t version; /* 91900 for 9.19.0 */
    size_t (*get_version)(void);
    cudnnStatus_t (*create)(cudnnHandle_t *handle);
    cudnnStatus_t (*destroy)(cudnnHandle_t handle);
    cudnnStatus_t (*set_stream)(cudnnHandle_t handle, cudaStream_t stream);
    const char *(*error_string)(cudnnStatus_t status);
    void (*last_error)(char *text, size_t bytes);
    cudnnStatus_t (*create_descriptor)(cudnnBackendDescriptorType_t type,
                                       cudnnBackendDescriptor_t *out);
    cudnnStatus_t (*destroy_descriptor)(cudnnBackendDescriptor_t descriptor);
    cudnnStatus_t (*finalize)(cudnnBackendDescriptor_t descriptor);
    cudnnStatus_t (*set)(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *values);
    cudnnStatus_t (*get)(cudnnBackendDescriptor_t const descriptor,
                         cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         int64_t room, int64_t *count, void *values);
    cudnnStatus_t (*execute)(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                             cudnnBackendDescriptor_t variant_pack);
};

/* Needs no card. TRI_UNSUPPORTED when the library is missing, lacks a function or is older than
 * 9.10.2; `found` says what was found either way. */
enum tri_status tri_cudnn_api_open(struct tri_cuda_library *found, struct tri_cudnn_api *out);

/* TRI_OK, or TRI_DEVICE with the library's own words. `what` completes "cuDNN could not ...". */
enum tri_status tri_cudnn_check(const struct tri_cudnn_api *api, cudnnStatus_t code,
                                const char *what);

#endif
