/* FlashAttention-2 backward without tensor cores, without atomics: one kernel gathers dK and dV of
 * a tile of keys over all queries, another dQ of a tile of queries over all keys. The scores are
 * computed twice for it, and equal inputs give equal bits.
 *
 *     P = exp(scale Q K^T - lse)      dV += P^T dO      dP = dO V^T
 *     dS = P (dP - delta) scale       dQ += dS K        dK += dS^T Q,    delta = rowsum(dO O) */
#include "backend/cuda/kernels/attention.cuh"

namespace
{

/* A warp a row: delta[t * num_heads + h]. */
template <typename T>
__global__ void __launch_bounds__(256)
    row_deltas(float *delta, heads<const T> dout, heads<const T> o, int64_t tokens, int num_heads,
               int dim)
{
    int lane = threadIdx.x % 32;
    int64_t rows = tokens * num_heads;
    for (int64_t r = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; r < rows;
         r += (int64_t)gridDim.x * blockDim.x / 32) {
        int64_t t = r / num_heads, h = r - t * num_heads;
        float sum = 0;
        for (int d = lane; d < dim; d += 32)
            sum += to_float(dout.at(t, h)[d]) * to_float(o.at(t, h)[d]);
        sum = group_sum(sum, 32);
        if (lane == 0)
            delta[r] = sum;
    }
}

template <typename T> struct backward_call {
    tri_kernel_attn op;
    attn_shape s;
    int num_heads; /* of queries */
    heads<T> dq, dout, q, k, v;
    heads<float> dk, dv;
    const float *lse;
    int64_t lse_stride;
    const float *delta;
    bool accumulate_dq;
};

/* P and dS / scale of one pair from its scores; 0 where the key is not seen. */
__device__ __forceinline__ void weigh(float &p, float &ds, bool visible, float score, float dp,
                                      float scale, float lse, float delta)
{
    p = visible ? __expf(score * scale - lse) : 0.0f;
    ds = p * (dp - delta);
}

/* One block: BM queries of one head. Shared: Q, dO, K, V tiles and dS [BM][BM + 4]. */
template <typename T, int BM, int V>
__global__ void __launch_bounds__(attn_threads) gather_dq(backward_call<T> a)
{
    constexpr int R = BM / 16, C = BM / 16;
    const attn_shape &s = a.s;
    extern __shared__ float4 shared4[];
    int size = BM * tile_stride(s.dim), tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float *q_tile = reinterpret_cast<float *>(shared4), *do_tile = q_tile + size;
    float *k_tile = do_tile + size, *v_tile = k_tile + size, *ds_tile = v_tile + size;
    int64_t head = blockIdx.y, kv_head = head / s.group;
    int64_t q0 = (int64_t)(gridDim.x - 1 - blockIdx.x) * BM;
    int64_t present = s.num_queries - q0 < BM ? s.num_queries - q0 : BM;
    load_tile<T, BM>(q_tile, a.q.at(q0, head), a.q.token, present, s);
    load_tile<T, BM>(do_tile, a.dout.at(q0, head), a.dout.token, present, s);
    int64_t query[R], first[R];
    float lse[R], delta[R], acc[R][V][4] = {};
#pragma unroll
    for (int i = 0; i < R; i++) {
        bool in = ty * R + i < present;
        int64_t row = q0 + ty * R + i;
        query[i] = a.op.q_begin + row;
        first[i] = in ? first_key(a.op, query[i]) : INT64_MAX;
        lse[i] = in ? a.lse[row * a.lse_stride + head] : 0.0f;
        delta[i] = in ? a.delta[row * a.num_heads + head] : 0.0f;
    }
    int64_t begin = first_key(a.op, a.op.q_begin + q0) - a.op.k_begin;
    int64_t end = a.op.q_begin + q0 + present - a.op.k_begin;
    begin = begin > 0 ? begin / BM * BM : 0;
    end = end < s.num_keys ? end : s.num_keys;
    for (int64_t k0 = begin; k0 < end; k0 += BM) {
        int64_t keys = s.num_keys - k0 < BM ? s.num_keys - k0 : BM;
        __syncthreads();
        load_tile<T, BM>(k_tile, a.k.at(k0, kv_head), a.k.token, keys, s);
        load_tile<T, BM>(v_tile, a.v.at(k0, kv_head), a.v.token, keys, s);
        __syncthreads();
        float score[R][C], dp[R][C];
        dot_rows<R, C>(score, q_tile, k_tile, s.dim);
        dot_rows<R, C>(dp, do_tile, v_tile, s.dim);
#pragma unroll
        for (int i = 0; i < R; i++)
#pragma unroll
            for (int j = 0; j < C; j++) {
                int64_t key = a.op.k_begin + k0 + tx + 16 * j;
                bool visible = key >= first[i] && key <= query[i] && tx + 16 * j < keys;
                float p, ds;
                weigh(p, ds, visible, score[i][j], dp[i][j], a.op.scale, lse[i], delta[i]);
                ds_tile[(ty * R + i) * (BM + 4) + tx + 16 * j] = ds;
            }
        __syncthreads();
        add_weighted<R, V, BM>(acc, ds_tile, k_tile, s.dim);
    }
#pragma unroll
    for (int i = 0; i < R; i++)
        if (ty * R + i < present)
            write_row<T, V>(a.dq.at(q0 + ty * R + i, head), acc[i], a.op.scale, a.accumulate_dq,
                            s.dim);
}

/* One block: BM keys of one key head, all heads of its group one after the other. Shared: K, V, Q,
 * dO tiles, and P^T, then dS^T, [BM][BM + 4]. Rows are keys, columns queries. */
template <typename T, int BM, int V>
__global__ void __launch_bounds__(attn_threads) gather_dkv(backward_call<T> a)
{
    constexpr int R = BM / 16, C = BM / 16;
    const attn_shape &s = a.s;
    extern __shared__ float4 shared4[];
    int size = BM * tile_stride(s.dim), tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float *k_tile = reinterpret_cast<float *>(shared4), *v_tile = k_tile + size;
    float *q_tile = v_tile + size, *do_tile = q_tile + size, *p_tile = do_tile + size;
    int64_t kv_head = blockIdx.y, k0 = (int64_t)blockIdx.x * BM;
    int64_t keys = s.num_keys - k0 < BM ? s.num_keys - k0 : BM;
    load_tile<T, BM>(k_tile, a.k.at(k0, kv_head), a.k.token, keys, s);
    load_tile<T, BM>(v_tile, a.v.at(k0, kv_head), a.v.token, keys, s);
    int64_t key[R], last[R]; /* rows past the end are seen by nobody */
    float dk[R][V][4] = {}, dv[R][V][4] = {};
#pragma unroll
    for (int i = 0; i < R; i++) {
        key[i] = a.op.k_begin + k0 + ty * R + i;
        last[i] = ty * R + i < keys ? last_query(a.op, key[i]) : -1;
    }
    int64_t begin = a.op.k_begin + k0 - a.op.q_begin;
    int64_t end = last_query(a.op, a.op.k_begin + k0 + keys - 1) + 1 - a.op.q_begin;
    begin = begin > 0 ? begin / BM * BM : 0;
    end = end < s.num_queries ? end : s.num_queries;
    for (int64_t head = kv_head * s.group; head < (kv_head + 1) * s.group; head++) {
        for (int64_t q0 = begin; q0 < end; q0 += BM) {
            int64_t present = s.num_queries - q0 < BM ? s.num_queries - q0 : BM;
            __syncthreads();
            load_tile<T, BM>(q_tile, a.q.at(q0, head), a.q.token, present, s);
            load_tile<T, BM>(do_tile, a.dout.at(q0, head), a.dout.token, present, s);
            float lse[C], delta[C];
#pragma unroll
            for (int j = 0; j < C; j++) {
                bool in = tx + 16 * j < present;
                int64_t row = q0 + tx + 16 * j;
                lse[j] = in ? a.lse[row * a.lse_stride + head] : 0.0f;
                delta[j] = in ? a.delta[row * a.num_heads + head] : 0.0f;
            }
            __syncthreads();
            float score[R][C], dp[R][C], ds[R][C];
            dot_rows<R, C>(score, k_tile, q_tile, s.dim);
            dot_rows<R, C>(dp, v_tile, do_tile, s.dim);
#pragma unroll
            for (int i = 0; i < R; i++)
#pragma unroll
                for (int j = 0; j < C; j++) {
                    int64_t query = a.op.q_begin + q0 + tx + 16 * j;
                    bool visible = query >= key[i] && query <= last[i] && tx + 16 * j < present;
                    float p;
                    weigh(p, ds[i][j], visible, score[i][j], dp[i][j], a.op.scale, lse[j],
                          delta[j]);
                    p_tile[(ty * R + i) * (BM + 4) + tx + 16 * j] = p;
                }
            __syncthreads();
            add_weighted<R, V, BM>(dv, p_tile, do_tile, s.dim);
            __syncthreads();
#pragma unroll
            for (int i = 0; i < R; i++)
#pragma unroll
                for (int j = 0; j < C; j++)
                    p_tile[(ty * R + i) * (BM + 4) + tx + 16 * j] = ds[i][j];
            __syncthreads();
            add_weighted<R, V, BM>(dk, p_tile, q_tile, s.dim);
        }
    }
#pragma unroll
    for (int i = 0; i < R; i++)
        if (ty * R + i < keys) {
            write_row<float, V>(a.dk.at(k0 + ty * R + i, kv_head), dk[i], a.op.scale, true, s.dim);
            write_row<float, V>(a.dv.at(k0 + ty * R + i, kv_head), dv[i], 1.0f, true, s.dim);
        }
}

template <typename T, int BM, int V>
cudaError_t launch(struct tri_launch l, const backward_call<T> &a, int64_t num_kv_heads)
{
    size_t shared = (size_t)(4 * BM * tile_stride(a.s.dim) + BM * (BM + 4)) * sizeof(float);
    cudaError_t code = cudaFuncSetAttribute(
        gather_dq<T, BM, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute(gather_dkv<T, BM, V>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (code != cudaSuccess)
        return code;
    if (a.s.num_queries > 0) {
        dim3 grid((unsigned)ceil_div(a.s.num_queries, BM), (unsigned)a.num_heads);
        gather_dq<T, BM, V><<<grid, attn_threads, shared, l.stream>>>(a);
    }
    if (a.s.num_keys > 0) {
        dim3 grid((unsigned)ceil_div(a.s.num_keys, BM), (unsigned)num_kv_heads);
        gather_dkv<T, BM, V><<<grid, attn_threads, shared, l.stream>>>(a);
    }
    return cudaGetLastError();
}

template <typename T>
cudaError_t run(struct tri_launch l, const tri_kernel_attn &op, const attn_shape &s,
                bool accumulate_dq, struct tri_view dq, struct tri_view dk, struct tri_view dv,
                struct tri_view dout, struct tri_view q, struct tri_view k, struct tri_view v,
                struct tri_view o, struct tri_view lse, float *delta)
{
    backward_call<T> a = {op,
                          s,
                          (int)q.dim[1],
                          heads_of<T>(dq),
                          heads_of<T>(dout),
                          heads_of<T>(q),
                          heads_of<T>(k),
                          heads_of<T>(v),
                          heads_of<float>(dk),
                          heads_of<float>(dv),
                          (const float *)lse.data,
                          lse.stride[0],
                          delta,
                          accumulate_dq};
    unsigned blocks = grid_for(ceil_div(s.num_queries * a.num_heads, 8), l, 32);
    row_deltas<T><<<blocks, 256, 0, l.stream>>>(
        delta, heads_of<const T>(dout), heads_of<const T>(o), s.num_queries, a.num_heads, s.dim);
    cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess)
        return code;
    /* Four tiles and dS in at most 99 KiB. */
    if (s.dim <= 64)
        return launch<T, 64, 1>(l, a, k.dim[1]);
    if (s.dim <= 128)
        return launch<T, 32, 2>(l, a, k.dim[1]);
    return launch<T, 16, 4>(l, a, k.dim[1]);
}

} // namespace

cudaError_t tri_kernel_attn_backward(struct tri_launch l, struct tri_kernel_attn op,
                                     bool accumulate_dq, struct tri_view dq, struct tri_view dk,
                                     struct tri_view dv, struct tri_view dout, struct tri_view q,
                                     struct tri_view k, struct tri_view v, struct tri_view o,
                                     struct tri_view lse, float *delta)
{
    attn_shape s = {q.dim[0], k.dim[0], (int)q.dim[2], 1, false};
    if (!is_act(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype || o.dtype != q.dtype ||
        dout.dtype != q.dtype || dq.dtype != q.dtype || lse.dtype != TRI_F32 ||
        dk.dtype != TRI_F32 || dv.dtype != TRI_F32 || q.dim[2] > 256 || q.dim[1] > 65535)
        return cudaErrorNotSupported;
    if (q.dim[0] == 0 || q.dim[1] == 0)
        return cudaSuccess;
    s.group = (int)(q.dim[1] / k.dim[1]);
    s.aligned = heads_aligned(q) && heads_aligned(k) && heads_aligned(v) && heads_aligned(dout);
    if (q.dtype == TRI_F32)
        return run<float>(l, op, s, accumulate_dq, dq, dk, dv, dout, q, k, v, o, lse, delta);
    return run<bf16>(l, op, s, accumulate_dq, dq, dk, dv, dout, q, k, v, o, lse, delta);
}
