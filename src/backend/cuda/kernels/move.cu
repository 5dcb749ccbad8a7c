/* copy, add, zero: any shape and strides, any floating dtypes. Bound by bandwidth. */
#include "backend/cuda/kernels/common.cuh"

namespace
{

/* (d0, d1, d2) with d2 contiguous; views of fewer dimensions have leading ones. */
struct grid3 {
    int64_t d0, d1, d2;
    int64_t dst0, dst1, src0, src1;
};

/* One rounding from any type to any other: float64 goes to 16 bits directly, 16 bits widen exactly.
 */
template <typename D, typename S> __device__ __forceinline__ D convert(S x)
{
    return (D)x;
}
template <> __device__ __forceinline__ bf16 convert<bf16, double>(double x)
{
    return __double2bfloat16(x);
}
template <> __device__ __forceinline__ __half convert<__half, double>(double x)
{
    return __double2half(x);
}
template <> __device__ __forceinline__ bf16 convert<bf16, float>(float x)
{
    return __float2bfloat16_rn(x);
}
template <> __device__ __forceinline__ __half convert<__half, float>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ __forceinline__ bf16 convert<bf16, __half>(__half x)
{
    return __float2bfloat16_rn(__half2float(x));
}
template <> __device__ __forceinline__ __half convert<__half, bf16>(bf16 x)
{
    return __float2half_rn(__bfloat162float(x));
}
template <> __device__ __forceinline__ double convert<double, bf16>(bf16 x)
{
    return (double)__bfloat162float(x);
}
template <> __device__ __forceinline__ double convert<double, __half>(__half x)
{
    return (double)__half2float(x);
}

/* dst + src in the wider of float and double. */
template <typename D, typename S> __device__ __forceinline__ D sum_of(D a, S b)
{
    if constexpr (sizeof(D) == 8 || sizeof(S) == 8)
        return convert<D, double>(convert<double, D>(a) + convert<double, S>(b));
    else
        return convert<D, float>((float)a + (float)b);
}

template <typename D, typename S, int N, bool ADD> struct element {
    static __device__ __forceinline__ void move(D *dst, const S *src)
    {
        pack<S, N> in = *reinterpret_cast<const pack<S, N> *>(src);
        pack<D, N> out;
        if constexpr (ADD)
            out = *reinterpret_cast<const pack<D, N> *>(dst);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if constexpr (ADD)
                out.v[i] = sum_of<D, S>(out.v[i], in.v[i]);
            else
                out.v[i] = convert<D, S>(in.v[i]);
        }
        *reinterpret_cast<pack<D, N> *>(dst) = out;
    }
};

/* Contiguous on both sides: one long row. Each thread has `unroll` vectors in flight. */
template <typename D, typename S, int N, bool ADD>
__global__ void __launch_bounds__(256) move_flat(D *dst, const S *src, int64_t count)
{
    constexpr int unroll = 4;
    int64_t vectors = count / N;
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + (unroll - 1) * step < vectors; i += unroll * step) {
        pack<S, N> in[unroll];
        pack<D, N> out[unroll];
#pragma unroll
        for (int u = 0; u < unroll; u++) {
            in[u] = *reinterpret_cast<const pack<S, N> *>(src + (i + u * step) * N);
            if constexpr (ADD)
                out[u] = *reinterpret_cast<const pack<D, N> *>(dst + (i + u * step) * N);
        }
#pragma unroll
        for (int u = 0; u < unroll; u++) {
#pragma unroll
            for (int j = 0; j < N; j++) {
                if constexpr (ADD)
                    out[u].v[j] = sum_of<D, S>(out[u].v[j], in[u].v[j]);
                else
                    out[u].v[j] = convert<D, S>(in[u].v[j]);
            }
            *reinterpret_cast<pack<D, N> *>(dst + (i + u * step) * N) = out[u];
        }
    }
    for (; i < vectors; i += step)
        element<D, S, N, ADD>::move(dst + i * N, src + i * N);
    for (int64_t j = vectors * N + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; j < count;
         j += step)
        element<D, S, 1, ADD>::move(dst + j, src + j);
}

/* Strided rows: a block takes whole rows, its threads the vectors of a row. */
template <typename D, typename S, int N, bool ADD>
__global__ void __launch_bounds__(256) move_rows(D *dst, const S *src, struct grid3 g)
{
    int64_t rows = g.d0 * g.d1;
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < rows;
         r += (int64_t)gridDim.x * blockDim.y) {
        int64_t i0 = r / g.d1, i1 = r - i0 * g.d1;
        D *to = dst + i0 * g.dst0 + i1 * g.dst1;
        const S *from = src + i0 * g.src0 + i1 * g.src1;
        for (int64_t i = (int64_t)threadIdx.x * N; i < g.d2; i += (int64_t)blockDim.x * N)
            element<D, S, N, ADD>::move(to + i, from + i);
    }
}

/* Neighbouring dimensions that lie end to end on both sides become one: contiguous views are one
 * long row, and slices of whole heads have rows of many heads. */
struct grid3 grid_of(struct tri_view dst, struct tri_view src)
{
    struct grid3 g = {1, 1, dst.dim[dst.num_dims - 1], 0, 0, 0, 0};
    if (dst.num_dims == 3) {
        g.d0 = dst.dim[0], g.dst0 = dst.stride[0], g.src0 = src.stride[0];
        g.d1 = dst.dim[1], g.dst1 = dst.stride[1], g.src1 = src.stride[1];
    } else if (dst.num_dims == 2) {
        g.d1 = dst.dim[0], g.dst1 = dst.stride[0], g.src1 = src.stride[0];
    }
    if (g.d0 == 1 || g.d1 == 1 || (g.dst0 == g.d1 * g.dst1 && g.src0 == g.d1 * g.src1)) {
        if (g.d1 == 1)
            g.dst1 = g.dst0, g.src1 = g.src0;
        g.d1 *= g.d0;
        g.d0 = 1;
    }
    if (g.d1 == 1 || (g.dst1 == g.d2 && g.src1 == g.d2)) {
        g.d2 *= g.d1;
        g.d1 = g.d0, g.dst1 = g.dst0, g.src1 = g.src0;
        g.d0 = 1;
    }
    return g;
}

/* Whether rows of one side, `s0` and `s1` elements apart, are whole vectors on vector borders. */
bool rows_aligned(const void *data, size_t bytes, int64_t s0, int64_t s1, const struct grid3 &g,
                  int n)
{
    uint64_t bits = (uint64_t)g.d2 | (g.d0 > 1 ? (uint64_t)s0 : 0) | (g.d1 > 1 ? (uint64_t)s1 : 0);
    return bits % (unsigned)n == 0 && (uintptr_t)data % ((size_t)n * bytes) == 0;
}

/* Threads of a block for rows of `vectors`: whole warps along the row. */
dim3 block_for(int64_t vectors)
{
    unsigned x = 32;
    while (x < 256 && x < vectors)
        x *= 2;
    return dim3(x, 256 / x);
}

template <typename T, int N>
__global__ void __launch_bounds__(256) zero_rows(T *dst, struct grid3 g)
{
    int64_t rows = g.d0 * g.d1;
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < rows;
         r += (int64_t)gridDim.x * blockDim.y) {
        int64_t i0 = r / g.d1, i1 = r - i0 * g.d1;
        T *to = dst + i0 * g.dst0 + i1 * g.dst1;
        for (int64_t i = (int64_t)threadIdx.x * N; i < g.d2; i += (int64_t)blockDim.x * N)
            *reinterpret_cast<pack<T, N> *>(to + i) = pack<T, N>{};
    }
}

template <typename T> cudaError_t zero(struct tri_launch l, struct tri_view dst)
{
    constexpr int n = vector_bytes / sizeof(T);
    struct grid3 g = grid_of(dst, dst);
    if (g.d0 * g.d1 * g.d2 == 0)
        return cudaSuccess;
    T *to = (T *)dst.data;
    if (g.d0 * g.d1 == 1)
        return cudaMemsetAsync(to, 0, (size_t)g.d2 * sizeof(T), l.stream);
    bool aligned = rows_aligned(to, sizeof(T), g.dst0, g.dst1, g, n);
    dim3 block = block_for(ceil_div(g.d2, aligned ? n : 1));
    unsigned blocks = grid_for(ceil_div(g.d0 * g.d1, block.y), l, 32);
    if (aligned)
        zero_rows<T, n><<<blocks, block, 0, l.stream>>>(to, g);
    else
        zero_rows<T, 1><<<blocks, block, 0, l.stream>>>(to, g);
    return cudaGetLastError();
}

template <typename D, typename S, bool ADD>
cudaError_t move(struct tri_launch l, struct tri_view dst, struct tri_view src)
{
    /* 16 bytes of the wider type: the narrower one moves 8 or less, still whole sectors a warp. */
    constexpr int n = vector_bytes / (sizeof(D) > sizeof(S) ? sizeof(D) : sizeof(S));
    struct grid3 g = grid_of(dst, src);
    if (g.d0 * g.d1 * g.d2 == 0)
        return cudaSuccess;
    D *to = (D *)dst.data;
    const S *from = (const S *)src.data;
    if (g.d0 * g.d1 == 1) {
        int64_t count = g.d2;
        bool aligned = ((uintptr_t)to % (n * sizeof(D)) | (uintptr_t)from % (n * sizeof(S))) == 0;
        unsigned blocks = grid_for(ceil_div(count, 256 * (aligned ? n : 1)), l, 16);
        if (aligned)
            move_flat<D, S, n, ADD><<<blocks, 256, 0, l.stream>>>(to, from, count);
        else
            move_flat<D, S, 1, ADD><<<blocks, 256, 0, l.stream>>>(to, from, count);
        return cudaGetLastError();
    }
    bool aligned = rows_aligned(to, sizeof(D), g.dst0, g.dst1, g, n) &&
                   rows_aligned(from, sizeof(S), g.src0, g.src1, g, n);
    dim3 block = block_for(ceil_div(g.d2, aligned ? n : 1));
    unsigned blocks = grid_for(ceil_div(g.d0 * g.d1, block.y), l, 32);
    if (aligned)
        move_rows<D, S, n, ADD><<<blocks, block, 0, l.stream>>>(to, from, g);
    else
        move_rows<D, S, 1, ADD><<<blocks, block, 0, l.stream>>>(to, from, g);
    return cudaGetLastError();
}

template <typename D, bool ADD>
cudaError_t from_any(struct tri_launch l, struct tri_view dst, struct tri_view src)
{
    switch (src.dtype) {
    case TRI_F32:
        return move<D, float, ADD>(l, dst, src);
    case TRI_BF16:
        return move<D, bf16, ADD>(l, dst, src);
    case TRI_F16:
        return move<D, __half, ADD>(l, dst, src);
    case TRI_F64:
        return move<D, double, ADD>(l, dst, src);
    default:
        return cudaErrorNotSupported;
    }
}

template <bool ADD>
cudaError_t floats(struct tri_launch l, struct tri_view dst, struct tri_view src)
{
    switch (dst.dtype) {
    case TRI_F32:
        return from_any<float, ADD>(l, dst, src);
    case TRI_BF16:
        return from_any<bf16, ADD>(l, dst, src);
    case TRI_F16:
        return from_any<__half, ADD>(l, dst, src);
    case TRI_F64:
        return from_any<double, ADD>(l, dst, src);
    default:
        return cudaErrorNotSupported;
    }
}

/* Equal dtypes: bits, so that NaN payloads survive. */
cudaError_t bits(struct tri_launch l, struct tri_view dst, struct tri_view src)
{
    switch (dst.dtype) {
    case TRI_U8:
        return move<uint8_t, uint8_t, false>(l, dst, src);
    case TRI_BF16:
    case TRI_F16:
        return move<uint16_t, uint16_t, false>(l, dst, src);
    case TRI_F32:
    case TRI_I32:
        return move<uint32_t, uint32_t, false>(l, dst, src);
    default:
        return move<uint64_t, uint64_t, false>(l, dst, src);
    }
}

} // namespace

cudaError_t tri_kernel_copy(struct tri_launch l, bool add, struct tri_view dst, struct tri_view src)
{
    if (add)
        return floats<true>(l, dst, src);
    return dst.dtype == src.dtype ? bits(l, dst, src) : floats<false>(l, dst, src);
}

cudaError_t tri_kernel_zero(struct tri_launch l, struct tri_view dst)
{
    switch (dst.dtype) {
    case TRI_U8:
        return zero<uint8_t>(l, dst);
    case TRI_BF16:
    case TRI_F16:
        return zero<uint16_t>(l, dst);
    case TRI_F32:
    case TRI_I32:
        return zero<uint32_t>(l, dst);
    default:
        return zero<uint64_t>(l, dst);
    }
}
