/* Opening and closing a card. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/cuda/context.h"
#include "backend/cuda/probe.h"
#include "base/log.h"

enum tri_status tri_cuda_check(cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return TRI_OK;
    (void)cudaGetLastError(); /* errors that are not sticky must not reach the next check */
    if (code == cudaErrorNotSupported)
        return tri_fail(TRI_UNSUPPORTED, "CUDA backend: cannot %s for these types or sizes", what);
    return tri_fail(code == cudaErrorMemoryAllocation ? TRI_NOMEM : TRI_DEVICE,
                    "CUDA could not %s: %s (%s)", what, cudaGetErrorString(code),
                    cudaGetErrorName(code));
}

struct tri_launch tri_cuda_launch(const struct tri_stream *s)
{
    return (struct tri_launch){.stream = s->stream,
                               .num_sms = s->cuda->info.num_multiprocessors,
                               .scratch = s->scratch,
                               .scratch_bytes = s->scratch_bytes};
}

static void stream_close(struct tri_stream *s)
{
    tri_documents_close(&s->documents);
    (void)cudaFree(s->scratch);
    (void)cudaFreeHost(s->scalars);
    if (s->passed != NULL)
        (void)cudaEventDestroy(s->passed);
    if (s->stream != NULL && !s->adopted)
        (void)cudaStreamDestroy(s->stream);
}

static enum tri_status stream_open(struct tri_cuda *cuda, bool computes, struct tri_stream *s)
{
    s->cuda = cuda;
    TRI_TRY(tri_cuda_check(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking),
                           "create a stream"));
    TRI_TRY(tri_cuda_check(cudaEventCreateWithFlags(&s->passed, cudaEventDisableTiming),
                           "create an event"));
    TRI_TRY(
        tri_cuda_check(cudaMallocHost((void **)&s->scalars, TRI_CUDA_MAX_SCALARS * sizeof(double)),
                       "allocate page-locked memory"));
    if (!computes)
        return TRI_OK;
    TRI_TRY(
        tri_cuda_check(cudaMalloc(&s->scratch, TRI_CUDA_SCRATCH_BYTES), "allocate scratch memory"));
    s->scratch_bytes = TRI_CUDA_SCRATCH_BYTES;
    return tri_documents_open(&s->documents);
}

static enum tri_status open_products(struct tri_cuda *cuda)
{
    if (cuda->config.products == TRI_CUDA_PRODUCTS_OWN)
        return TRI_OK;
    enum tri_status st = tri_gemm_open(cuda->config.tf32, &cuda->info.cublaslt, &cuda->gemm);
    if (st != TRI_UNSUPPORTED || cuda->config.products == TRI_CUDA_PRODUCTS_CUBLASLT)
        return st;
    tri_warn("matrix products run on our plain kernel, many times slower: %s", tri_error_text());
    tri_error_clear();
    return TRI_OK;
}

static enum tri_status open_attention(struct tri_cuda *cuda)
{
    if (cuda->config.attention == TRI_CUDA_ATTENTION_OWN)
        return TRI_OK;
#ifdef TRI_HAVE_CUDNN
    enum tri_status st = tri_cudnn_attn_open(cuda, &cuda->cudnn);
#else
    enum tri_status st =
        tri_fail(TRI_UNSUPPORTED,
                 "this program was built without cuDNN's headers: install them and rebuild");
#endif
    if (st != TRI_UNSUPPORTED || cuda->config.attention == TRI_CUDA_ATTENTION_CUDNN)
        return st;
    tri_warn("attention runs on our own kernel, many times slower: %s", tri_error_text());
    tri_error_clear();
    return TRI_OK;
}

static void fill_ops(struct tri_ops *ops)
{
    tri_cuda_move_ops(ops);
    tri_cuda_layer_ops(ops);
    tri_cuda_linear_ops(ops);
    tri_cuda_attn_ops(ops);
    tri_cuda_update_ops(ops);
}

void tri_cuda_close(struct tri_backend *backend)
{
    if (backend == NULL)
        return;
    struct tri_cuda *cuda = backend->ctx;
    (void)cudaDeviceSynchronize();
    if (cuda->cudnn.close != NULL)
        cuda->cudnn.close(cuda->cudnn.ctx);
    tri_gemm_close(cuda->gemm);
    stream_close(&cuda->to_host);
    stream_close(&cuda->to_device);
    stream_close(&cuda->compute);
    free(cuda);
}

enum tri_status tri_cuda_open(const struct tri_cuda_config *config, struct tri_backend **out)
{
    struct tri_cuda *cuda = calloc(1, sizeof *cuda);
    enum tri_status st;
    if (cuda == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the CUDA backend");
    if (config != NULL)
        cuda->config = *config;
    else
        cuda->config.device = tri_cuda_card();
    int device = cuda->config.device;
    tri_cuda_probe_card(device, &cuda->info);
    if (!cuda->info.available) {
        st = tri_fail(TRI_UNSUPPORTED, "%s", cuda->info.problem);
        free(cuda);
        return st;
    }
    struct tri_backend *backend = &cuda->backend;
    backend->name = "cuda";
    backend->kernels = cuda->kernels;
    backend->memory = &cuda->memory;
    backend->stream = &cuda->compute;
    backend->ctx = cuda;
    fill_ops(&backend->ops);

    TRI_TRY_GOTO(st, tri_cuda_check(cudaSetDevice(device), "use the card"), close_all);
    TRI_TRY_GOTO(st, tri_cuda_check(cudaFree(NULL), "start on the card"), close_all);
    TRI_TRY_GOTO(st, tri_cuda_driver_open(&cuda->driver), close_all);
    TRI_TRY_GOTO(st,
                 tri_device_memory_init(&cuda->device_memory, &cuda->driver, device, &cuda->memory),
                 close_all);
    TRI_TRY_GOTO(st, stream_open(cuda, true, &cuda->compute), close_all);
    TRI_TRY_GOTO(st, stream_open(cuda, false, &cuda->to_device), close_all);
    TRI_TRY_GOTO(st, stream_open(cuda, false, &cuda->to_host), close_all);
    TRI_TRY_GOTO(st, open_products(cuda), close_all);
    TRI_TRY_GOTO(st, open_attention(cuda), close_all);
    snprintf(cuda->kernels, sizeof cuda->kernels, "sm_%d, products: %s%s, attention: %s%s",
             cuda->info.capability, cuda->gemm != NULL ? "cuBLASLt " : "own",
             cuda->gemm != NULL ? cuda->info.cublaslt.version : "",
             cuda->cudnn.forward != NULL ? "cuDNN " : "own",
             cuda->cudnn.forward != NULL ? cuda->info.cudnn.version : "");
    *out = backend;
    return TRI_OK;

close_all:
    tri_cuda_close(backend);
    return st;
}

struct tri_stream *tri_cuda_stream(struct tri_backend *backend, enum tri_cuda_stream which)
{
    struct tri_cuda *cuda = backend->ctx;
    return which == TRI_CUDA_COMPUTE     ? &cuda->compute
           : which == TRI_CUDA_TO_DEVICE ? &cuda->to_device
                                         : &cuda->to_host;
}

enum tri_status tri_cuda_stream_adopt(struct tri_stream *s, void *cuda_stream)
{
    TRI_TRY(tri_cuda_check(cudaStreamSynchronize(s->stream), "wait for a stream"));
    if (!s->adopted)
        TRI_TRY(tri_cuda_check(cudaStreamDestroy(s->stream), "destroy a stream"));
    s->stream = cuda_stream;
    s->adopted = true;
    return TRI_OK;
}

enum tri_status tri_cuda_stream_wait(struct tri_stream *waiter, struct tri_stream *other)
{
    TRI_TRY(tri_cuda_check(cudaEventRecord(other->passed, other->stream), "record an event"));
    return tri_cuda_check(cudaStreamWaitEvent(waiter->stream, other->passed, 0),
                          "wait for a stream");
}
