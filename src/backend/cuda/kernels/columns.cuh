/* The second half of column sums: rows of partial sums, one a block of the first half, in order. */
#ifndef TRI_BACKEND_CUDA_KERNELS_COLUMNS_CUH
#define TRI_BACKEND_CUDA_KERNELS_COLUMNS_CUH

#include "backend/cuda/kernels/common.cuh"

namespace
{

/* out[c] += sum over r of partials[r * cols + c]; a block takes 32 columns, its 8 warps every
 * eighth row. */
__global__ void __launch_bounds__(256)
    finish_columns(float *out, const float *partials, int rows, int64_t cols)
{
    __shared__ float room[8][33];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t c = (int64_t)blockIdx.x * 32 + lane;
    float sum = 0;
    if (c < cols)
#pragma unroll 8 /* loads in flight; the order of the sum stays */
        for (int r = warp; r < rows; r += 8)
            sum += partials[r * cols + c];
    room[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && c < cols) {
        for (int w = 1; w < 8; w++)
            sum += room[w][lane];
        out[c] += sum;
    }
}

inline cudaError_t launch_finish_columns(const struct tri_launch &l, float *out,
                                         const float *partials, int rows, int64_t cols)
{
    finish_columns<<<(unsigned)ceil_div(cols, 32), 256, 0, l.stream>>>(out, partials, rows, cols);
    return cudaGetLastError();
}

} // namespace

#endif
