/* Moving and filling. */
#include <string.h>

#include "backend/cuda/context.h"
#include "base/minmax.h"

static enum tri_status need_same_shape(const char *what, struct tri_view dst, struct tri_view src)
{
    if (!tri_view_same_shape(dst, src))
        return tri_fail(TRI_INTERNAL, "%s: shapes differ", what);
    return TRI_OK;
}

static enum tri_status cuda_copy(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    TRI_TRY(need_same_shape("copy", dst, src));
    return tri_cuda_check(tri_kernel_copy(tri_cuda_launch(s), false, dst, src), "copy");
}

static enum tri_status cuda_add(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    TRI_TRY(need_same_shape("add", dst, src));
    return tri_cuda_check(tri_kernel_copy(tri_cuda_launch(s), true, dst, src), "add");
}

static enum tri_status cuda_zero(struct tri_stream *s, struct tri_view dst)
{
    return tri_cuda_check(tri_kernel_zero(tri_cuda_launch(s), dst), "fill with zeros");
}

static enum tri_status cuda_upload(struct tri_stream *s, struct tri_view dst, const void *host)
{
    if (!tri_view_contiguous(dst))
        return tri_fail(TRI_INTERNAL, "upload to a view that is not contiguous");
    return tri_cuda_check(
        cudaMemcpyAsync(dst.data, host, tri_view_bytes(dst), cudaMemcpyHostToDevice, s->stream),
        "upload");
}

static enum tri_status cuda_sync(struct tri_stream *s)
{
    return tri_cuda_check(cudaStreamSynchronize(s->stream), "finish what was queued");
}

static enum tri_status cuda_download(struct tri_stream *s, void *host, struct tri_view src)
{
    if (!tri_view_contiguous(src))
        return tri_fail(TRI_INTERNAL, "download of a view that is not contiguous");
    TRI_TRY(tri_cuda_check(
        cudaMemcpyAsync(host, src.data, tri_view_bytes(src), cudaMemcpyDeviceToHost, s->stream),
        "download"));
    return cuda_sync(s);
}

static enum tri_status cuda_read_scalars(struct tri_stream *s, double *host, const double *src,
                                         int64_t n)
{
    /* Through page-locked memory: one short transfer without a staging copy. */
    for (int64_t i = 0; i < n; i += TRI_CUDA_MAX_SCALARS) {
        int64_t count = tri_min(n - i, TRI_CUDA_MAX_SCALARS);
        size_t bytes = (size_t)count * sizeof(double);
        TRI_TRY(tri_cuda_check(
            cudaMemcpyAsync(s->scalars, src + i, bytes, cudaMemcpyDeviceToHost, s->stream),
            "read scalars"));
        TRI_TRY(cuda_sync(s));
        memcpy(host + i, s->scalars, bytes);
    }
    return TRI_OK;
}

void tri_cuda_move_ops(struct tri_ops *ops)
{
    ops->copy = cuda_copy;
    ops->zero = cuda_zero;
    ops->add = cuda_add;
    ops->upload = cuda_upload;
    ops->download = cuda_download;
    ops->read_scalars = cuda_read_scalars;
    ops->sync = cuda_sync;
}
