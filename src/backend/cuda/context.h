/* What the files of this folder share: the open card, its streams, and error checks. */
#ifndef TRI_BACKEND_CUDA_CONTEXT_H
#define TRI_BACKEND_CUDA_CONTEXT_H

#include <cuda_runtime_api.h>

#include "backend/backend.h"
#include "backend/cuda/attn.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/documents.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/memory.h"

enum {
    TRI_CUDA_SCRATCH_BYTES = 64 << 20, /* of the compute stream; Hopper's products want 32 MiB */
    TRI_CUDA_MAX_SCALARS = 4096,       /* of one read_scalars */
};

/* A queue. Everything in it belongs to its order: the next op may reuse `scratch` at once. */
struct tri_stream {
    struct tri_cuda *cuda;
    cudaStream_t stream;
    bool adopted;       /* the stream is the caller's */
    cudaEvent_t passed; /* recorded by tri_cuda_stream_wait */
    void *scratch;      /* device memory for the inside of one op; NULL on the copy streams */
    size_t scratch_bytes;
    double *scalars; /* page-locked host memory, TRI_CUDA_MAX_SCALARS */
    struct tri_documents documents;
};

struct tri_cuda {
    struct tri_backend backend;
    struct tri_cuda_config config;
    struct tri_cuda_info info;
    struct tri_cuda_driver driver;
    struct tri_device_memory device_memory;
    struct tri_memory memory;
    struct tri_gemm *gemm; /* cuBLASLt, or NULL: the plain kernel */
    struct tri_attn_engine cudnn;
    bool told_fallback; /* that our own attention stands in for it */
    char kernels[128];
    struct tri_stream compute;
    struct tri_stream to_device;
    struct tri_stream to_host;
};

/* TRI_OK, or the failure of a runtime call or kernel launch. `what` completes "CUDA could not ...".
 * Out of memory becomes TRI_NOMEM, everything else TRI_DEVICE. */
enum tri_status tri_cuda_check(cudaError_t code, const char *what);

/* What kernels need to know of a queue. */
struct tri_launch tri_cuda_launch(const struct tri_stream *s);

/* Fill the table; each in the file of its ops. */
void tri_cuda_move_ops(struct tri_ops *ops);
void tri_cuda_layer_ops(struct tri_ops *ops);
void tri_cuda_linear_ops(struct tri_ops *ops);
void tri_cuda_attn_ops(struct tri_ops *ops);
void tri_cuda_update_ops(struct tri_ops *ops);

#endif
