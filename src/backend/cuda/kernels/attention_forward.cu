/* FlashAttention-2 forward (Dao 2023) without tensor cores: the oracle of the fast path, and what
 * runs where that is missing or refuses. Any head size up to 256. */
#include "backend/cuda/kernels/attention.cuh"

namespace
{

constexpr float log2e = 1.44269504088896341f;
constexpr float ln2 = 0.69314718055994531f;

__device__ __forceinline__ float row_max(float x)
{
    for (int step = 8; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* One block: BM queries of one head, all keys that they see in tiles of BM. Shared memory: a tile
 * of queries, a tile of keys and then values, and the weights [BM][BM + 4]. */
template <typename T, int BM, int V>
__global__ void __launch_bounds__(attn_threads)
    attn_forward(tri_kernel_attn op, attn_shape s, heads<T> o, float *lse, int64_t lse_stride,
                 heads<T> q, heads<T> k, heads<T> v)
{
    constexpr int R = BM / 16, C = BM / 16;
    extern __shared__ float4 shared4[];
    int stride = tile_stride(s.dim);
    float *q_tile = reinterpret_cast<float *>(shared4), *kv_tile = q_tile + BM * stride;
    float *weights = kv_tile + BM * stride;
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    int64_t head = blockIdx.y, kv_head = head / s.group;
    /* The last tiles see the most keys: start them first. */
    int64_t q0 = (int64_t)(gridDim.x - 1 - blockIdx.x) * BM;
    int64_t present = s.num_queries - q0 < BM ? s.num_queries - q0 : BM;
    load_tile<T, BM>(q_tile, q.at(q0, head), q.token, present, s);

    int64_t query[R], first[R]; /* global tokens; rows past the end see nothing */
    float max[R], sum[R], acc[R][V][4] = {};
#pragma unroll
    for (int i = 0; i < R; i++) {
        query[i] = op.q_begin + q0 + ty * R + i;
        bool in = ty * R + i < present;
        first[i] = in ? first_key(op, query[i]) : INT64_MAX;
        max[i] = -INFINITY;
        sum[i] = 0.0f;
    }
    int64_t begin = first_key(op, op.q_begin + q0) - op.k_begin;
    int64_t end = op.q_begin + q0 + present - op.k_begin;
    begin = begin > 0 ? begin / BM * BM : 0;
    end = end < s.num_keys ? end : s.num_keys;
    float factor = op.scale * log2e;

    for (int64_t k0 = begin; k0 < end; k0 += BM) {
        int64_t keys = s.num_keys - k0 < BM ? s.num_keys - k0 : BM;
        __syncthreads();
        load_tile<T, BM>(kv_tile, k.at(k0, kv_head), k.token, keys, s);
        __syncthreads();
        float score[R][C];
        dot_rows<R, C>(score, q_tile, kv_tile, s.dim);
        __syncthreads();
        load_tile<T, BM>(kv_tile, v.at(k0, kv_head), v.token, keys, s);
#pragma unroll
        for (int i = 0; i < R; i++) {
            float top = max[i];
#pragma unroll
            for (int j = 0; j < C; j++) {
                int64_t key = op.k_begin + k0 + tx + 16 * j;
                bool visible = key >= first[i] && key <= query[i] && tx + 16 * j < keys;
                score[i][j] = visible ? score[i][j] * factor : -INFINITY;
                top = fmaxf(top, score[i][j]);
            }
            top = row_max(top);
            float base = top == -INFINITY ? 0.0f : top; /* nothing seen yet: all weights are 0 */
            float shrink = exp2f(max[i] - base), add = 0.0f;
#pragma unroll
            for (int j = 0; j < C; j++) {
                float w = exp2f(score[i][j] - base);
                add += w;
                weights[(ty * R + i) * (BM + 4) + tx + 16 * j] = w;
            }
            max[i] = top;
            sum[i] = sum[i] * shrink + group_sum(add, 16);
#pragma unroll
            for (int c = 0; c < V; c++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    acc[i][c][e] *= shrink;
        }
        __syncthreads();
        add_weighted<R, V, BM>(acc, weights, kv_tile, s.dim);
    }
#pragma unroll
    for (int i = 0; i < R; i++) {
        int64_t row = q0 + ty * R + i;
        if (ty * R + i >= present)
            continue;
        write_row<T, V>(o.at(row, head), acc[i], sum[i] > 0.0f ? 1.0f / sum[i] : 0.0f, false,
                        s.dim);
        if (tx == 0)
            lse[row * lse_stride + head] = sum[i] > 0.0f ? max[i] * ln2 + logf(sum[i]) : -INFINITY;
    }
}

template <typename T, int BM, int V>
cudaError_t launch(struct tri_launch l, const tri_kernel_attn &op, const attn_shape &s,
                   struct tri_view o, struct tri_view lse, struct tri_view q, struct tri_view k,
                   struct tri_view v)
{
    size_t shared = (size_t)(2 * BM * tile_stride(s.dim) + BM * (BM + 4)) * sizeof(float);
    cudaError_t code = cudaFuncSetAttribute(
        attn_forward<T, BM, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (code != cudaSuccess)
        return code;
    dim3 grid((unsigned)ceil_div(s.num_queries, BM), (unsigned)q.dim[1]);
    attn_forward<T, BM, V><<<grid, attn_threads, shared, l.stream>>>(
        op, s, heads_of<T>(o), (float *)lse.data, lse.stride[0], heads_of<T>(q), heads_of<T>(k),
        heads_of<T>(v));
    return cudaGetLastError();
}

template <typename T>
cudaError_t choose(struct tri_launch l, const tri_kernel_attn &op, const attn_shape &s,
                   struct tri_view o, struct tri_view lse, struct tri_view q, struct tri_view k,
                   struct tri_view v)
{
    /* Tiles that leave shared memory for one block on every card from compute capability 8.0
     * (99 KiB on 8.6, 8.9 and 12.0). */
    if (s.dim <= 64)
        return launch<T, 64, 1>(l, op, s, o, lse, q, k, v);
    if (s.dim <= 128)
        return launch<T, 64, 2>(l, op, s, o, lse, q, k, v);
    return launch<T, 32, 4>(l, op, s, o, lse, q, k, v);
}

} // namespace

cudaError_t tri_kernel_attn_forward(struct tri_launch l, struct tri_kernel_attn op,
                                    struct tri_view o, struct tri_view lse, struct tri_view q,
                                    struct tri_view k, struct tri_view v)
{
    attn_shape s = {q.dim[0], k.dim[0], (int)q.dim[2], 1, false};
    if (!is_act(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype || o.dtype != q.dtype ||
        lse.dtype != TRI_F32 || q.dim[2] > 256 || q.dim[1] > 65535)
        return cudaErrorNotSupported;
    if (q.dim[0] == 0 || q.dim[1] == 0)
        return cudaSuccess;
    s.group = (int)(q.dim[1] / k.dim[1]);
    s.aligned = heads_aligned(q) && heads_aligned(k) && heads_aligned(v);
    return q.dtype == TRI_F32 ? choose<float>(l, op, s, o, lse, q, k, v)
                              : choose<bf16>(l, op, s, o, lse, q, k, v);
}
