/* Embedding rows: gather forward; backward sums the rows of equal ids in the order of the tokens.
 *
 * The backward sorts (id, token) pairs stably by a radix sort of our own, so that each table row is
 * written by one block and the bits never depend on timing. Sorting moves 8 bytes a token and pass,
 * the sums a whole row of dy: only the sums matter. */
#include "backend/cuda/kernels/common.cuh"

namespace
{

constexpr int radix_bits = 8;
constexpr int radix = 1 << radix_bits;
constexpr int sort_threads = 256;
constexpr int sort_warps = sort_threads / 32;
constexpr int sort_steps = 8;              /* keys of a thread */
constexpr int warp_keys = 32 * sort_steps; /* consecutive keys of a warp */
constexpr int block_keys = sort_warps * warp_keys;
constexpr int64_t sort_most = 1 << 20; /* tokens of one sort: bounds the scratch */

template <typename T, int N>
__global__ void __launch_bounds__(256)
    gather(T *y, int64_t y_stride, const int32_t *ids, const T *table, int64_t table_stride,
           int64_t rows, int64_t cols)
{
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < rows;
         r += (int64_t)gridDim.x * blockDim.y) {
        const T *from = table + ids[r] * table_stride;
        T *to = y + r * y_stride;
        for (int64_t i = (int64_t)threadIdx.x * N; i < cols; i += (int64_t)blockDim.x * N)
            *reinterpret_cast<pack<T, N> *>(to + i) =
                *reinterpret_cast<const pack<T, N> *>(from + i);
    }
}

/* counts[digit][block] of this pass. */
__global__ void __launch_bounds__(sort_threads)
    count_digits(const int32_t *keys, int64_t n, int shift, uint32_t *counts)
{
    __shared__ uint32_t local[radix];
    for (int i = threadIdx.x; i < radix; i += sort_threads)
        local[i] = 0;
    __syncthreads();
    int64_t begin = (int64_t)blockIdx.x * block_keys;
    for (int i = threadIdx.x; i < block_keys && begin + i < n; i += sort_threads)
        atomicAdd(&local[(uint32_t)keys[begin + i] >> shift & (radix - 1)], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < radix; i += sort_threads)
        counts[(int64_t)i * gridDim.x + blockIdx.x] = local[i];
}

/* Exclusive prefix sums in place, one block. */
__global__ void __launch_bounds__(1024) scan(uint32_t *x, int64_t n)
{
    __shared__ uint32_t warp_sums[32];
    __shared__ uint32_t carry;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        carry = 0;
    for (int64_t begin = 0; begin < n; begin += 1024) {
        int64_t i = begin + threadIdx.x;
        uint32_t value = i < n ? x[i] : 0, sum = value;
        for (int step = 1; step < 32; step *= 2) {
            uint32_t other = __shfl_up_sync(0xffffffffu, sum, step);
            if (lane >= step)
                sum += other;
        }
        if (lane == 31)
            warp_sums[warp] = sum;
        __syncthreads();
        if (warp == 0) {
            uint32_t s = warp_sums[lane], t = s;
            for (int step = 1; step < 32; step *= 2) {
                uint32_t other = __shfl_up_sync(0xffffffffu, t, step);
                if (lane >= step)
                    t += other;
            }
            warp_sums[lane] = t - s;
        }
        __syncthreads();
        uint32_t before = carry + warp_sums[warp] + sum - value;
        if (i < n)
            x[i] = before;
        __syncthreads();
        if (threadIdx.x == 1023)
            carry = before + value;
        __syncthreads();
    }
}

/* Move (key, value) pairs to their places; equal digits keep their order: warps own consecutive
 * keys, and inside a step lanes rank themselves among their equals. `values_in` NULL: 0, 1, 2... */
__global__ void __launch_bounds__(sort_threads)
    scatter(const int32_t *keys_in, const int32_t *values_in, int64_t n, int shift,
            const uint32_t *places, int32_t *keys_out, int32_t *values_out)
{
    __shared__ uint32_t next[sort_warps][radix];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t begin = (int64_t)blockIdx.x * block_keys + warp * warp_keys;
    for (int i = lane; i < radix; i += 32)
        next[warp][i] = 0;
    __syncwarp();
    for (int step = 0; step < sort_steps; step++) {
        int64_t i = begin + step * 32 + lane;
        if (i < n)
            atomicAdd(&next[warp][(uint32_t)keys_in[i] >> shift & (radix - 1)], 1u);
    }
    __syncthreads();
    for (int digit = threadIdx.x; digit < radix; digit += sort_threads) {
        uint32_t place = places[(int64_t)digit * gridDim.x + blockIdx.x];
        for (int w = 0; w < sort_warps; w++) {
            uint32_t count = next[w][digit];
            next[w][digit] = place;
            place += count;
        }
    }
    __syncthreads();
    for (int step = 0; step < sort_steps; step++) {
        int64_t i = begin + step * 32 + lane;
        unsigned present = __ballot_sync(0xffffffffu, i < n);
        if (i < n) {
            int32_t key = keys_in[i];
            uint32_t digit = (uint32_t)key >> shift & (radix - 1);
            unsigned equals = __match_any_sync(present, digit);
            unsigned before = equals & ((1u << lane) - 1);
            uint32_t place = next[warp][digit] + (uint32_t)__popc(before);
            __syncwarp(present);
            if (before == 0)
                next[warp][digit] += (uint32_t)__popc(equals);
            keys_out[place] = key;
            values_out[place] = values_in == nullptr ? (int32_t)i : values_in[i];
        }
        __syncwarp();
    }
}

/* Each block that finds the first of a run of equal ids sums the run's rows into the table. */
template <typename T, int N>
__global__ void __launch_bounds__(256)
    sum_runs(float *dtable, int64_t table_stride, const int32_t *keys, const int32_t *tokens,
             int64_t n, const T *dy, int64_t dy_stride, int64_t cols)
{
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        int32_t key = keys[i];
        if (i > 0 && keys[i - 1] == key)
            continue;
        for (int64_t c = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * N; c < cols;
             c += (int64_t)gridDim.y * blockDim.x * N) {
            float total[N] = {};
            int64_t j = i;
            /* Four rows in flight; added one after the other, so the order is the tokens'. */
            for (; j + 4 <= n && keys[j + 3] == key; j += 4) {
                float row[4][N];
#pragma unroll
                for (int u = 0; u < 4; u++)
                    load<T, N>(row[u], dy + tokens[j + u] * dy_stride + c);
#pragma unroll
                for (int u = 0; u < 4; u++)
#pragma unroll
                    for (int k = 0; k < N; k++)
                        total[k] += row[u][k];
            }
            for (; j < n && keys[j] == key; j++) {
                float row[N];
                load<T, N>(row, dy + tokens[j] * dy_stride + c);
#pragma unroll
                for (int k = 0; k < N; k++)
                    total[k] += row[k];
            }
            float *to = dtable + key * table_stride + c;
            float old[N];
            load<float, N>(old, to);
#pragma unroll
            for (int k = 0; k < N; k++)
                old[k] += total[k];
            store<float, N>(to, old);
        }
    }
}

template <typename T>
cudaError_t forward(struct tri_launch l, struct tri_view y, const int32_t *ids,
                    struct tri_view table)
{
    constexpr int n = vector_bytes / sizeof(T);
    bool aligned = vectors_fit(y, sizeof(T)) && vectors_fit(table, sizeof(T));
    int64_t rows = y.dim[0], cols = y.dim[1], vectors = ceil_div(cols, aligned ? n : 1);
    unsigned x = 32;
    while (x < 256 && x < vectors)
        x *= 2;
    dim3 block(x, 256 / x);
    unsigned blocks = grid_for(ceil_div(rows, block.y), l, 32);
    T *to = (T *)y.data;
    const T *from = (const T *)table.data;
    if (aligned)
        gather<T, n><<<blocks, block, 0, l.stream>>>(to, y.stride[0], ids, from, table.stride[0],
                                                     rows, cols);
    else
        gather<T, 1><<<blocks, block, 0, l.stream>>>(to, y.stride[0], ids, from, table.stride[0],
                                                     rows, cols);
    return cudaGetLastError();
}

template <typename T>
cudaError_t backward(struct tri_launch l, struct tri_view dtable, const int32_t *ids,
                     struct tri_view dy)
{
    constexpr int n = vector_bytes / sizeof(T);
    bool aligned = vectors_fit(dy, sizeof(T)) && vectors_fit(dtable, 4);
    int64_t cols = dy.dim[1];
    int passes = 1;
    while (passes < 4 && dtable.dim[0] - 1 >> radix_bits * passes > 0)
        passes++;
    int32_t *keys[2] = {(int32_t *)l.scratch, (int32_t *)l.scratch + sort_most};
    int32_t *tokens[2] = {keys[1] + sort_most, keys[1] + 2 * sort_most};
    uint32_t *counts = (uint32_t *)(tokens[1] + sort_most);
    if (l.scratch_bytes < (size_t)(4 * sort_most + radix * (sort_most / block_keys)) * 4)
        return cudaErrorInvalidValue;
    for (int64_t begin = 0; begin < dy.dim[0]; begin += sort_most) {
        int64_t count = dy.dim[0] - begin < sort_most ? dy.dim[0] - begin : sort_most;
        unsigned blocks = (unsigned)ceil_div(count, block_keys);
        const int32_t *key = ids + begin, *token = nullptr;
        for (int pass = 0; pass < passes; pass++) {
            int32_t *key_out = keys[pass % 2], *token_out = tokens[pass % 2];
            int shift = pass * radix_bits;
            count_digits<<<blocks, sort_threads, 0, l.stream>>>(key, count, shift, counts);
            scan<<<1, 1024, 0, l.stream>>>(counts, (int64_t)radix * blocks);
            scatter<<<blocks, sort_threads, 0, l.stream>>>(key, token, count, shift, counts,
                                                           key_out, token_out);
            key = key_out;
            token = token_out;
        }
        const T *from = (const T *)dy.data + begin * dy.stride[0];
        unsigned threads = 32;
        int64_t vectors = ceil_div(cols, aligned ? n : 1);
        while (threads < 256 && threads < vectors)
            threads *= 2;
        dim3 grid((unsigned)count, (unsigned)ceil_div(vectors, threads) > 64
                                       ? 64
                                       : (unsigned)ceil_div(vectors, threads));
        if (aligned)
            sum_runs<T, n><<<grid, threads, 0, l.stream>>>((float *)dtable.data, dtable.stride[0],
                                                           key, token, count, from, dy.stride[0],
                                                           cols);
        else
            sum_runs<T, 1><<<grid, threads, 0, l.stream>>>((float *)dtable.data, dtable.stride[0],
                                                           key, token, count, from, dy.stride[0],
                                                           cols);
        cudaError_t code = cudaGetLastError();
        if (code != cudaSuccess)
            return code;
    }
    return cudaSuccess;
}

} // namespace

cudaError_t tri_kernel_embed_forward(struct tri_launch l, struct tri_view y, const int32_t *ids,
                                     struct tri_view table)
{
    if (y.dim[0] == 0)
        return cudaSuccess;
    if (y.dtype == TRI_F32 && table.dtype == TRI_F32)
        return forward<float>(l, y, ids, table);
    if (y.dtype == TRI_BF16 && table.dtype == TRI_BF16)
        return forward<bf16>(l, y, ids, table);
    return cudaErrorNotSupported;
}

cudaError_t tri_kernel_embed_backward(struct tri_launch l, struct tri_view dtable,
                                      const int32_t *ids, struct tri_view dy)
{
    if (dtable.dtype != TRI_F32)
        return cudaErrorNotSupported;
    if (dy.dim[0] == 0)
        return cudaSuccess;
    if (dy.dtype == TRI_F32)
        return backward<float>(l, dtable, ids, dy);
    if (dy.dtype == TRI_BF16)
        return backward<bf16>(l, dtable, ids, dy);
    return cudaErrorNotSupported;
}
