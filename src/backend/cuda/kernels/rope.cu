/* Rotary position embeddings (Su et al. 2021): the table of angles, and the rotation. */
#include "backend/cuda/kernels/common.cuh"

namespace
{

struct frequencies {
    double v[TRI_KERNEL_MAX_FREQUENCIES];
};

/* table(T,R): cos in the first half, sin in the second. Angles are reduced in float64: a float32
 * angle at position 16M would be wrong by whole radians. */
__global__ void __launch_bounds__(256)
    angles(float *table, int64_t stride, const int64_t *pos, int64_t tokens, int half,
           const __grid_constant__ frequencies freq, double scale)
{
    int64_t count = tokens * half;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t t = i / half;
        int j = (int)(i - t * half);
        double s, c;
        sincos((double)pos[t] * freq.v[j], &s, &c);
        table[t * stride + j] = (float)(c * scale);
        table[t * stride + half + j] = (float)(s * scale);
    }
}

/* blockDim = (vectors of a half, heads at once, tokens at once). A thread keeps its cos and sin
 * while it goes through the heads of its token, N pairs (j, j + R/2) of `unroll` heads at a time:
 * that many loads are in flight. */
template <typename T, int N>
__global__ void __launch_bounds__(256)
    rotate(T *y, int64_t y_token, int64_t y_head, const T *x, int64_t x_token, int64_t x_head,
           const float *table, int64_t table_stride, int64_t tokens, int heads, int dim, int half,
           float sign)
{
    constexpr int unroll = 2;
    for (int64_t t = (int64_t)blockIdx.x * blockDim.z + threadIdx.z; t < tokens;
         t += (int64_t)gridDim.x * blockDim.z) {
        const float *row = table + t * table_stride;
        for (int j = threadIdx.x * N; j < half; j += blockDim.x * N) {
            for (int first = threadIdx.y; first < heads; first += unroll * blockDim.y) {
                pack<T, N> a[unroll], b[unroll];
#pragma unroll
                for (int u = 0; u < unroll; u++) {
                    int h = first + u * blockDim.y;
                    const T *from = x + t * x_token + h * x_head + j;
                    if (h < heads) {
                        a[u] = *reinterpret_cast<const pack<T, N> *>(from);
                        b[u] = *reinterpret_cast<const pack<T, N> *>(from + half);
                    }
                }
                float c[N], s[N];
                load<float, N>(c, row + j);
                load<float, N>(s, row + half + j);
#pragma unroll
                for (int u = 0; u < unroll; u++) {
                    int h = first + u * blockDim.y;
                    T *to = y + t * y_token + h * y_head + j;
                    float ra[N], rb[N];
#pragma unroll
                    for (int k = 0; k < N; k++) {
                        float av = to_float(a[u].v[k]), bv = to_float(b[u].v[k]), sv = sign * s[k];
                        ra[k] = av * c[k] - bv * sv;
                        rb[k] = bv * c[k] + av * sv;
                    }
                    if (h < heads) {
                        store<T, N>(to, ra);
                        store<T, N>(to + half, rb);
                    }
                }
            }
        }
        if (y != x)
            for (int h = threadIdx.y; h < heads; h += blockDim.y)
                for (int d = 2 * half + threadIdx.x; d < dim; d += blockDim.x)
                    y[t * y_token + h * y_head + d] = x[t * x_token + h * x_head + d];
    }
}

template <typename T>
cudaError_t run(struct tri_launch l, bool inverse, struct tri_view y, struct tri_view x,
                struct tri_view table)
{
    constexpr int n = vector_bytes / sizeof(T);
    int heads = (int)x.dim[1], dim = (int)x.dim[2], half = (int)(table.dim[1] / 2);
    bool aligned = vectors_fit(y, sizeof(T)) && vectors_fit(x, sizeof(T)) && half % n == 0 &&
                   half % 4 == 0 && (uintptr_t)table.data % 32 == 0 && table.stride[0] % 8 == 0;
    unsigned bx = (unsigned)(aligned ? half / n : half), by, bz;
    bx = bx > 256 ? 256 : bx < 1 ? 1 : bx;
    by = (unsigned)ceil_div(heads, 2); /* two heads a thread */
    by = by < 256 / bx ? by : 256 / bx;
    bz = 256 / (bx * by);
    bz = bz > 64 ? 64 : bz;
    dim3 block(bx, by, bz);
    unsigned blocks = grid_for(ceil_div(x.dim[0], bz), l, 256);
    float sign = inverse ? -1.0f : 1.0f;
    if (aligned)
        rotate<T, n><<<blocks, block, 0, l.stream>>>(
            (T *)y.data, y.stride[0], y.stride[1], (const T *)x.data, x.stride[0], x.stride[1],
            (const float *)table.data, table.stride[0], x.dim[0], heads, dim, half, sign);
    else
        rotate<T, 1><<<blocks, block, 0, l.stream>>>(
            (T *)y.data, y.stride[0], y.stride[1], (const T *)x.data, x.stride[0], x.stride[1],
            (const float *)table.data, table.stride[0], x.dim[0], heads, dim, half, sign);
    return cudaGetLastError();
}

} // namespace

cudaError_t tri_kernel_rope_table(struct tri_launch l, struct tri_view table, const int64_t *pos,
                                  const double *inv_freq, double scale)
{
    int half = (int)(table.dim[1] / 2);
    if (table.dtype != TRI_F32 || half > TRI_KERNEL_MAX_FREQUENCIES)
        return cudaErrorNotSupported;
    if (table.dim[0] == 0 || half == 0)
        return cudaSuccess;
    frequencies freq = {};
    for (int j = 0; j < half; j++)
        freq.v[j] = inv_freq[j];
    unsigned blocks = grid_for(ceil_div(table.dim[0] * half, 256), l, 16);
    angles<<<blocks, 256, 0, l.stream>>>((float *)table.data, table.stride[0], pos, table.dim[0],
                                         half, freq, scale);
    return cudaGetLastError();
}

cudaError_t tri_kernel_rope(struct tri_launch l, bool inverse, struct tri_view y, struct tri_view x,
                            struct tri_view table)
{
    if (!is_act(x.dtype) || y.dtype != x.dtype || table.dtype != TRI_F32)
        return cudaErrorNotSupported;
    if (x.dim[0] == 0 || x.dim[1] == 0)
        return cudaSuccess;
    return x.dtype == TRI_F32 ? run<float>(l, inverse, y, x, table)
                              : run<bf16>(l, inverse, y, x, table);
}
