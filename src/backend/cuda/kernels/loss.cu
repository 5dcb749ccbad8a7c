/* Cross-entropy on a tile of logits: loss, and the gradient in place of the logits.
 *
 * A block takes a row: first maximum and sum of exponentials together, then the gradient, which
 * needs the logits again. About half of a row waits in shared memory for that, the rest is found in
 * L2. Each thread has slots of its own there; as soon as one is used, the same piece of the block's
 * next row is fetched into it. So the loads of that row run while the gradient of this one is
 * written, and the rest of its loads while its exponentials are computed. */
#include "backend/cuda/kernels/common.cuh"

namespace
{

constexpr int loss_threads = 1024;
constexpr float log2e = 1.44269504088896341f;

/* 2^x by the hardware's instruction alone; results under 2^-126 are 0. */
__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* exp(x - max). The difference first: near the maximum it is exact, however large both are. */
__device__ __forceinline__ float exp_below(float x, float max)
{
    return exp2_fast((x - max) * log2e);
}

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
    if (s.max > -INFINITY) {
        float sum[2] = {};
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k % 2] += exp_below(x[k], s.max);
        s.sum += sum[0] + sum[1];
    }
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

/* What the threads of a block share about the rows that it goes through. */
template <typename T, int N> struct row_reader {
    pack<T, N> *slots; /* thread t's piece i at [i * loss_threads + t] */
    int kept;          /* pieces of a thread that have slots */
    int64_t vocab;

    __device__ __forceinline__ int64_t column(int piece) const
    {
        return ((int64_t)piece * loss_threads + threadIdx.x) * N;
    }
    __device__ __forceinline__ pack<T, N> *slot(int piece) const
    {
        return slots + piece * loss_threads + threadIdx.x;
    }
    /* Fetch one piece of a row into its slot; `row` NULL: there is no next row. */
    __device__ __forceinline__ void fetch(const T *row, int piece) const
    {
        if constexpr (N > 1)
            if (row != nullptr && column(piece) < vocab)
                copy_async(slot(piece), row + column(piece));
    }
};

template <typename T, int N>
__device__ __forceinline__ void add_pack(softmax &s, const pack<T, N> &in)
{
    float x[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        x[k] = to_float(in.v[k]);
    s = add(s, x);
}

/* The gradient of one piece. */
template <typename T, int N>
__device__ __forceinline__ void write_gradient(T *row, int64_t c, const pack<T, N> &in, softmax s,
                                               float factor, float scale, int32_t label)
{
    float x[N];
    int64_t offset = label - c;
    int at = offset >= 0 && offset < N ? (int)offset : -1;
#pragma unroll
    for (int k = 0; k < N; k++) {
        x[k] = exp_below(to_float(in.v[k]), s.max) * factor;
        x[k] -= k == at ? scale : 0.0f;
    }
    store<T, N>(row + c, x);
}

/* partials[block] = sum of the losses of the block's rows, in order. */
template <typename T, int N>
__global__ void __launch_bounds__(loss_threads)
    cross_entropy(T *logits, int64_t stride, const int32_t *labels, int64_t rows, int64_t vocab,
                  int kept, bool backward, float scale, double *partials)
{
    constexpr int unroll = 4; /* direct loads in flight */
    extern __shared__ float4 shared4[];
    __shared__ softmax room[32];
    row_reader<T, N> reader = {reinterpret_cast<pack<T, N> *>(shared4), kept, vocab};
    int pieces = (int)((vocab + loss_threads * N - 1) / (loss_threads * N));
    int rounds = (pieces - kept + unroll - 1) / unroll; /* of direct loads */
    int share = rounds > 0 ? (kept + rounds - 1) / rounds : kept;
    double loss = 0;

    /* The block's next row with a label at or after r; NULL when there is none. */
    auto next_trained = [&](int64_t r) -> const T * {
        while (r < rows && labels[r] < 0)
            r += gridDim.x;
        return r < rows ? logits + r * stride : nullptr;
    };
    const T *first = next_trained(blockIdx.x);
    for (int piece = 0; piece < kept; piece++)
        reader.fetch(first, piece);
    close_async_group();

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
        const T *next = next_trained(r + gridDim.x);
        float picked = to_float(row[label]);
        softmax s = {-INFINITY, 0.0f};
        int done = 0;
        wait_async_groups<0>();
        for (int round = 0; round < rounds || done < kept; round++) {
            pack<T, N> in[unroll];
#pragma unroll
            for (int u = 0; u < unroll; u++) {
                int64_t c = reader.column(kept + round * unroll + u);
                if (c < vocab)
                    in[u] = *reinterpret_cast<const pack<T, N> *>(row + c);
            }
            for (int end = done + share; done < end && done < kept; done++) {
                if (reader.column(done) < vocab)
                    add_pack(s, *reader.slot(done));
                if (!backward)
                    reader.fetch(next, done);
            }
#pragma unroll
            for (int u = 0; u < unroll; u++)
                if (reader.column(kept + round * unroll + u) < vocab)
                    add_pack(s, in[u]);
        }
        s = block_join(s,
                       room); /* its barriers also keep the label's logit from being overwritten */
        loss += (double)s.max + log((double)s.sum) - (double)picked;
        float factor = scale / s.sum;
        for (int piece = 0; backward && piece < kept; piece++) {
            if (reader.column(piece) < vocab)
                write_gradient(row, reader.column(piece), *reader.slot(piece), s, factor, scale,
                               label);
            reader.fetch(next, piece);
        }
        close_async_group();
        for (int piece = kept; backward && piece < pieces; piece += unroll) {
            pack<T, N> in[unroll];
#pragma unroll
            for (int u = 0; u < unroll; u++)
                if (reader.column(piece + u) < vocab)
                    in[u] = *reinterpret_cast<const pack<T, N> *>(row + reader.column(piece + u));
#pragma unroll
            for (int u = 0; u < unroll; u++)
                if (reader.column(piece + u) < vocab)
                    write_gradient(row, reader.column(piece + u), in[u], s, factor, scale, label);
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

template <typename T, int N>
cudaError_t launch(struct tri_launch l, bool backward, float scale, double *partials,
                   struct tri_view logits, const int32_t *labels, unsigned blocks)
{
    constexpr size_t piece_bytes = loss_threads * sizeof(pack<T, N>);
    int64_t rows = logits.dim[0], vocab = logits.dim[1];
    size_t shared = 0;
    if (N > 1) {
        int device = 0, most = 0;
        cudaError_t code = cudaGetDevice(&device);
        if (code == cudaSuccess)
            code = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        if (code != cudaSuccess)
            return code;
        /* 9 of 16 pieces: with more, memory would wait for the exponentials of a row. */
        int64_t wish = ceil_div(ceil_div(vocab, loss_threads * N) * 9, 16);
        int64_t fit = ((int64_t)most - 2048) / (int64_t)piece_bytes;
        shared = (size_t)(wish < fit ? wish : fit) * piece_bytes;
        code = cudaFuncSetAttribute(cross_entropy<T, N>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
        if (code != cudaSuccess)
            return code;
    }
    cross_entropy<T, N><<<blocks, loss_threads, shared, l.stream>>>(
        (T *)logits.data, logits.stride[0], labels, rows, vocab, (int)(shared / piece_bytes),
        backward, scale, partials);
    return cudaGetLastError();
}

template <typename T>
cudaError_t run(struct tri_launch l, bool backward, double scale, double *loss_sum,
                struct tri_view logits, const int32_t *labels)
{
    constexpr int n = vector_bytes / sizeof(T);
    double *partials = (double *)l.scratch;
    unsigned blocks = grid_for(logits.dim[0], l, 1);
    cudaError_t code =
        vectors_fit(logits, sizeof(T))
            ? launch<T, n>(l, backward, (float)scale, partials, logits, labels, blocks)
            : launch<T, 1>(l, backward, (float)scale, partials, logits, labels, blocks);
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
