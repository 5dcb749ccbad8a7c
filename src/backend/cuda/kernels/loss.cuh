/* Softmax over a row of logits in pieces of 16 bytes: what both cross-entropy kernels share. */
#ifndef TRI_BACKEND_CUDA_KERNELS_LOSS_CUH
#define TRI_BACKEND_CUDA_KERNELS_LOSS_CUH

#include "backend/cuda/kernels/common.cuh"

namespace
{

constexpr float log2e = 1.44269504088896341f;
/* 1 / log2e as rounded above, so that x log2e ln2 is x again. */
constexpr double ln2 = 1.0 / (double)log2e;

/* 2^x by the hardware's instruction alone; results under 2^-126 are 0. */
__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Maximum of x log2(e), and the sum of 2^(x log2(e) - max): one multiply-add and one instruction of
 * the special-function unit an element. */
struct softmax {
    float max, sum;
};

__device__ __forceinline__ softmax join(softmax a, softmax b)
{
    float max = fmaxf(a.max, b.max);
    if (max == -INFINITY)
        return {max, 0.0f};
    return {max, a.sum * exp2_fast(a.max - max) + b.sum * exp2_fast(b.max - max)};
}

/* Over the `width` first lanes' values of a warp, the same on every lane of them. */
__device__ __forceinline__ softmax lanes_join(softmax s, int width)
{
    for (int step = width / 2; step > 0; step /= 2)
        s = join(s, {__shfl_xor_sync(0xffffffffu, s.max, step),
                     __shfl_xor_sync(0xffffffffu, s.sum, step)});
    return s;
}

/* The greatest of a piece; two at a time in bfloat16. */
template <typename T, int N> __device__ __forceinline__ float greatest(const pack<T, N> &in)
{
    if constexpr (sizeof(T) == 2 && N % 2 == 0) {
        const __nv_bfloat162 *pairs = reinterpret_cast<const __nv_bfloat162 *>(&in);
        __nv_bfloat162 max = pairs[0];
#pragma unroll
        for (int k = 1; k < N / 2; k++)
            max = __hmax2(max, pairs[k]);
        return fmaxf(__low2float(max), __high2float(max));
    } else {
        float max = to_float(in.v[0]);
#pragma unroll
        for (int k = 1; k < N; k++)
            max = fmaxf(max, to_float(in.v[k]));
        return max;
    }
}

template <typename T, int N>
__device__ __forceinline__ void add_piece(softmax &s, const pack<T, N> &in)
{
    float max = greatest<T, N>(in) * log2e;
    if (max > s.max) { /* seldom, once a few pieces were seen */
        s.sum *= exp2_fast(s.max - max);
        s.max = max;
    }
    if (s.max == -INFINITY)
        return;
    float x[N], sum[2] = {};
    unpack<T, N>(x, in);
#pragma unroll
    for (int k = 0; k < N; k++)
        sum[k % 2] += exp2_fast(fmaf(x[k], log2e, -s.max));
    s.sum += sum[0] + sum[1];
}

/* The gradient of one piece, (softmax - onehot) scale, where factor is scale / sum.
 * Returns the label's logit where the piece holds it, otherwise 0. */
template <typename T, int N>
__device__ __forceinline__ float write_gradient(T *row, int c, const pack<T, N> &in, float max,
                                                float factor, float scale, int32_t label)
{
    float x[N], picked = 0.0f;
    unpack<T, N>(x, in);
#pragma unroll
    for (int k = 0; k < N; k++)
        x[k] = exp2_fast(fmaf(x[k], log2e, -max)) * factor;
    if ((unsigned)(label - c) < (unsigned)N) {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (c + k == label) {
                picked = to_float(in.v[k]);
                x[k] -= scale;
            }
    }
    store<T, N>(row + c, x);
    return picked;
}

template <typename T, int N> __device__ __forceinline__ void write_zeros(T *row, int c)
{
    const float zeros[N] = {};
    store<T, N>(row + c, zeros);
}

/* A block's next row with a label at or after r; `rows` when there is none. */
__device__ __forceinline__ int64_t next_trained(const int32_t *labels, int64_t r, int64_t step,
                                                int64_t rows)
{
    while (r < rows && labels[r] < 0)
        r += step;
    return r < rows ? r : rows;
}

} // namespace

#endif
