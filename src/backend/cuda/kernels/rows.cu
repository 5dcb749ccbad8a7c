/* Copies of strided rows beside other kernels: near the bandwidth of the card from a part of its
 * multiprocessors, so that what runs at the same time, NCCL's kernels, finds room on the others. */
#include "backend/cuda/kernels/common.cuh"

namespace
{

constexpr int num_threads = 512, unroll = 4;

/* A block takes `unroll` sets of blockDim.y rows at once, its threads the vectors of a row. */
__global__ void __launch_bounds__(num_threads)
    copy_rows(char *to, size_t to_stride, const char *from, size_t from_stride, int64_t rows,
              int64_t vectors)
{
    int64_t step = (int64_t)gridDim.x * blockDim.y;
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < rows; r += unroll * step)
        for (int64_t v = threadIdx.x; v < vectors; v += blockDim.x) {
            uint4 in[unroll];
#pragma unroll
            for (int u = 0; u < unroll; u++)
                if (r + u * step < rows)
                    in[u] = *reinterpret_cast<const uint4 *>(
                        from + (size_t)(r + u * step) * from_stride + (size_t)v * vector_bytes);
#pragma unroll
            for (int u = 0; u < unroll; u++)
                if (r + u * step < rows) {
                    unsigned words[4] = {in[u].x, in[u].y, in[u].z, in[u].w};
                    store_words<4>(
                        to + (size_t)(r + u * step) * to_stride + (size_t)v * vector_bytes, words);
                }
        }
}

} // namespace

cudaError_t tri_kernel_copy_rows(struct tri_launch l, void *to, size_t to_stride, const void *from,
                                 size_t from_stride, int64_t rows, size_t row_bytes)
{
    if (((uintptr_t)to | (uintptr_t)from | to_stride | from_stride | row_bytes) % vector_bytes != 0)
        return cudaErrorNotSupported;
    if (rows == 0 || row_bytes == 0)
        return cudaSuccess;
    int64_t vectors = (int64_t)(row_bytes / vector_bytes);
    unsigned x = 32;
    while (x < num_threads && x < vectors)
        x *= 2;
    dim3 block(x, num_threads / x);
    unsigned blocks = grid_for(ceil_div(rows, (int64_t)unroll * block.y), l, 1);
    copy_rows<<<blocks, block, 0, l.stream>>>((char *)to, to_stride, (const char *)from,
                                              from_stride, rows, vectors);
    return cudaGetLastError();
}
