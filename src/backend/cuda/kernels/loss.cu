/* Cross-entropy on a tile of logits: loss, and the gradient in place of the logits.
 *
 * A block of 1024 threads takes a row. The first pass reads it (maximum and sum of exponentials
 * together), the second, which writes the gradient, finds most of it in L2: with one row a
 * multiprocessor the rows in work are smaller than L2 for vocabularies up to about 150 thousand. */
#include "backend/cuda/kernels/common.cuh"

namespace
{

constexpr int loss_threads = 1024;
constexpr int unroll = 2; /* vectors in flight */

/* Running maximum and sum of exp(x - maximum). */
struct softmax {
    float max, sum;
};

__device__ __forceinline__ softmax join(softmax a, softmax b)
{
    float max = fmaxf(a.max, b.max);
    if (max == -INFINITY)
        return {max, 0.0f};
    return {max, a.sum * __expf(a.max - max) + b.sum * __expf(b.max - max)};
}

template <int N> __device__ __forceinline__ softmax add(softmax s, const float (&x)[N])
{
    float max = x[0];
#pragma unroll
    for (int k = 1; k < N; k++)
        max = fmaxf(max, x[k]);
    if (max > s.max) {
        s.sum *= __expf(s.max - max);
        s.max = max;
    }
    if (s.max > -INFINITY)
#pragma unroll
        for (int k = 0; k < N; k++)
            s.sum += __expf(x[k] - s.max);
    return s;
}

__device__ __forceinline__ softmax block_join(softmax s, softmax *room)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int step = 16; step > 0; step /= 2)
        s = join(s, {__shfl_xor_sync(0xffffffffu, s.max, step),
                     __shfl_xor_sync(0xffffffffu, s.sum, step)});
    __syncthreads();
    if (lane == 0)
        room[warp] = s;
    __syncthreads();
    s = room[lane];
    for (int step = 16; step > 0; step /= 2)
        s = join(s, {__shfl_xor_sync(0xffffffffu, s.max, step),
                     __shfl_xor_sync(0xffffffffu, s.sum, step)});
    return s;
}

/* partials[block] = sum of the losses of the block's rows, in order. */
template <typename T, int N>
__global__ void __launch_bounds__(loss_threads)
    cross_entropy(T *logits, int64_t stride, const int32_t *labels, int64_t rows, int64_t vocab,
                  bool backward, float scale, double *partials)
{
    __shared__ softmax room[32];
    double loss = 0;
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        T *row = logits + r * stride;
        int32_t label = labels[r];
        if (label < 0) {
            if (backward) {
                const float zeros[N] = {};
                for (int64_t c = (int64_t)threadIdx.x * N; c < vocab; c += loss_threads * N)
                    store<T, N>(row + c, zeros);
            }
            continue;
        }
        float picked = to_float(row[label]);
        softmax s = {-INFINITY, 0.0f};
        int64_t c = (int64_t)threadIdx.x * N;
        for (; c + (unroll - 1) * loss_threads * N < vocab; c += unroll * loss_threads * N) {
            float x[unroll][N];
#pragma unroll
            for (int u = 0; u < unroll; u++)
                load<T, N>(x[u], row + c + u * loss_threads * N);
#pragma unroll
            for (int u = 0; u < unroll; u++)
                s = add(s, x[u]);
        }
        for (; c < vocab; c += loss_threads * N) {
            float x[N];
            load<T, N>(x, row + c);
            s = add(s, x);
        }
        s = block_join(s,
                       room); /* its barriers also keep the label's logit from being overwritten */
        loss += (double)s.max + log((double)s.sum) - (double)picked;
        if (!backward)
            continue;
        float factor = scale / s.sum;
        for (c = (int64_t)threadIdx.x * N; c < vocab; c += loss_threads * N) {
            float x[N];
            load<T, N>(x, row + c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                x[k] = __expf(x[k] - s.max) * factor;
                if (c + k == label)
                    x[k] -= scale;
            }
            store<T, N>(row + c, x);
        }
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = loss;
}

/* One thread adds the few partial sums in order. */
__global__ void add_partials(double *sum, const double *partials, int count)
{
    double total = 0;
    for (int i = 0; i < count; i++)
        total += partials[i];
    *sum += total;
}

template <typename T>
cudaError_t run(struct tri_launch l, bool backward, double scale, double *loss_sum,
                struct tri_view logits, const int32_t *labels)
{
    constexpr int n = vector_bytes / sizeof(T);
    double *partials = (double *)l.scratch;
    int64_t rows = logits.dim[0], vocab = logits.dim[1];
    unsigned blocks = grid_for(rows, l, 1);
    if (vectors_fit(logits, sizeof(T)))
        cross_entropy<T, n>
            <<<blocks, loss_threads, 0, l.stream>>>((T *)logits.data, logits.stride[0], labels,
                                                    rows, vocab, backward, (float)scale, partials);
    else
        cross_entropy<T, 1>
            <<<blocks, loss_threads, 0, l.stream>>>((T *)logits.data, logits.stride[0], labels,
                                                    rows, vocab, backward, (float)scale, partials);
    cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess)
        return code;
    add_partials<<<1, 1, 0, l.stream>>>(loss_sum, partials, (int)blocks);
    return cudaGetLastError();
}

} // namespace

cudaError_t tri_kernel_cross_entropy(struct tri_launch l, bool backward, double scale,
                                     double *loss_sum, struct tri_view logits,
                                     const int32_t *labels)
{
    if (!is_act(logits.dtype))
        return cudaErrorNotSupported;
    if (logits.dim[0] == 0)
        return cudaSuccess;
    return logits.dtype == TRI_F32 ? run<float>(l, backward, scale, loss_sum, logits, labels)
                                   : run<bf16>(l, backward, scale, loss_sum, logits, labels);
}
