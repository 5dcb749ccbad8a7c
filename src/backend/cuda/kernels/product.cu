/* A plain matrix product: the oracle of the cuBLASLt path and the fallback without it. Any shape,
 * stride and alignment; float32 multiply-add. And column sums, for the gradients of biases. */
#include "backend/cuda/kernels/columns.cuh"

namespace
{

constexpr int tile = 64; /* of rows and columns; a thread has 4 x 4 of it */
constexpr int depth_step = 16;

/* Element (i, j) is p[i * s0 + j * s1]: a transpose swaps the strides. */
template <typename T> struct operand {
    const T *p;
    int64_t s0, s1;
};

template <typename T, typename C>
__global__ void __launch_bounds__(256)
    product(C *c, int64_t c_stride, operand<T> a, operand<T> b, const T *bias, int64_t rows,
            int64_t cols, int64_t depth, bool accumulate)
{
    __shared__ float as[depth_step][tile + 4], bs[depth_step][tile + 4];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    int64_t col0 = (int64_t)blockIdx.y * tile;
    for (int64_t row0 = (int64_t)blockIdx.x * tile; row0 < rows;
         row0 += (int64_t)gridDim.x * tile) {
        float sum[4][4] = {};
        for (int64_t k0 = 0; k0 < depth; k0 += depth_step) {
            for (int i = threadIdx.x; i < tile * depth_step; i += 256) {
                /* Neighbouring threads take neighbouring addresses of either layout. */
                int ka = a.s1 == 1 ? i % depth_step : i / tile,
                    ra = a.s1 == 1 ? i / depth_step : i % tile;
                int kb = b.s1 == 1 ? i / tile : i % depth_step,
                    cb = b.s1 == 1 ? i % tile : i / depth_step;
                bool in_a = row0 + ra < rows && k0 + ka < depth;
                bool in_b = col0 + cb < cols && k0 + kb < depth;
                as[ka][ra] = in_a ? to_float(a.p[(row0 + ra) * a.s0 + (k0 + ka) * a.s1]) : 0.0f;
                bs[kb][cb] = in_b ? to_float(b.p[(k0 + kb) * b.s0 + (col0 + cb) * b.s1]) : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < depth_step; k++) {
                float av[4], bv[4];
                load<float, 4>(av, &as[k][ty * 4]);
                load<float, 4>(bv, &bs[k][tx * 4]);
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        sum[i][j] += av[i] * bv[j];
            }
            __syncthreads();
        }
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                int64_t r = row0 + ty * 4 + i, n = col0 + tx * 4 + j;
                if (r < rows && n < cols) {
                    C *to = c + r * c_stride + n;
                    float value = sum[i][j] + (bias != nullptr ? to_float(bias[n]) : 0.0f);
                    *to = from_float<C>(accumulate ? to_float(*to) + value : value);
                }
            }
    }
}

template <typename T, typename C>
cudaError_t run(struct tri_launch l, bool accumulate, struct tri_view c, struct tri_view a,
                bool trans_a, struct tri_view b, bool trans_b, struct tri_view bias)
{
    operand<T> oa = {(const T *)a.data, trans_a ? 1 : a.stride[0], trans_a ? a.stride[0] : 1};
    operand<T> ob = {(const T *)b.data, trans_b ? 1 : b.stride[0], trans_b ? b.stride[0] : 1};
    int64_t rows = c.dim[0], cols = c.dim[1], depth = trans_a ? a.dim[0] : a.dim[1];
    if (ceil_div(cols, tile) > 65535)
        return cudaErrorNotSupported;
    int64_t x = ceil_div(rows, tile);
    dim3 grid((unsigned)(x < (1 << 30) ? x : 1 << 30), (unsigned)ceil_div(cols, tile));
    product<T, C><<<grid, 256, 0, l.stream>>>((C *)c.data, c.stride[0], oa, ob,
                                              (const T *)bias.data, rows, cols, depth, accumulate);
    return cudaGetLastError();
}

/* partials[block][cols]: block (x, y) sums rows y, y + gridDim.y, ... of 256 * N columns. */
template <typename T, int N>
__global__ void __launch_bounds__(256)
    sum_columns(float *partials, const T *x, int64_t stride, int64_t rows, int64_t cols)
{
    int64_t c = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (c >= cols)
        return;
    float sum[N] = {};
    int64_t r = blockIdx.y;
    for (; r + 3 * (int64_t)gridDim.y < rows; r += 4 * (int64_t)gridDim.y) {
        float v[4][N];
#pragma unroll
        for (int u = 0; u < 4; u++)
            load<T, N>(v[u], x + (r + u * (int64_t)gridDim.y) * stride + c);
#pragma unroll
        for (int u = 0; u < 4; u++)
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] += v[u][k];
    }
    for (; r < rows; r += gridDim.y) {
        float v[N];
        load<T, N>(v, x + r * stride + c);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] += v[k];
    }
    store<float, N>(partials + blockIdx.y * cols + c, sum);
}

template <typename T>
cudaError_t column_sums(struct tri_launch l, struct tri_view out, struct tri_view x)
{
    constexpr int n = vector_bytes / sizeof(T);
    int64_t rows = x.dim[0], cols = x.dim[1];
    bool aligned = vectors_fit(x, sizeof(T)) && cols % n == 0;
    unsigned threads = 256;
    while (threads > 32 && (int64_t)threads / 2 * (aligned ? n : 1) >= cols)
        threads /= 2;
    int64_t across = ceil_div(cols, threads * (aligned ? n : 1));
    /* Enough blocks for every multiprocessor, as many as the scratch holds rows of partial sums. */
    int64_t down = ceil_div((int64_t)l.num_sms * (2048 / threads), across);
    int64_t room = (int64_t)(l.scratch_bytes / sizeof(float)) / cols;
    down = down < room ? down : room;
    down = down < rows ? down : rows;
    down = down < 4096 ? down : 4096;
    if (down < 1)
        return cudaErrorNotSupported;
    dim3 grid((unsigned)across, (unsigned)down);
    float *partials = (float *)l.scratch;
    if (aligned)
        sum_columns<T, n>
            <<<grid, threads, 0, l.stream>>>(partials, (const T *)x.data, x.stride[0], rows, cols);
    else
        sum_columns<T, 1>
            <<<grid, threads, 0, l.stream>>>(partials, (const T *)x.data, x.stride[0], rows, cols);
    cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess)
        return code;
    return launch_finish_columns(l, (float *)out.data, partials, (int)down, cols);
}

} // namespace

cudaError_t tri_kernel_product(struct tri_launch l, bool accumulate, struct tri_view c,
                               struct tri_view a, bool trans_a, struct tri_view b, bool trans_b,
                               struct tri_view bias)
{
    if (c.dim[0] == 0 || c.dim[1] == 0)
        return cudaSuccess;
    if (a.dtype != b.dtype || (bias.data != nullptr && bias.dtype != a.dtype))
        return cudaErrorNotSupported;
    if (a.dtype == TRI_F32 && c.dtype == TRI_F32)
        return run<float, float>(l, accumulate, c, a, trans_a, b, trans_b, bias);
    if (a.dtype == TRI_BF16 && c.dtype == TRI_F32)
        return run<bf16, float>(l, accumulate, c, a, trans_a, b, trans_b, bias);
    if (a.dtype == TRI_BF16 && c.dtype == TRI_BF16)
        return run<bf16, bf16>(l, accumulate, c, a, trans_a, b, trans_b, bias);
    return cudaErrorNotSupported;
}

cudaError_t tri_kernel_column_sums(struct tri_launch l, struct tri_view out, struct tri_view x)
{
    if (!is_act(x.dtype) || out.dtype != TRI_F32)
        return cudaErrorNotSupported;
    if (x.dim[0] == 0 || x.dim[1] == 0)
        return cudaSuccess;
    return x.dtype == TRI_F32 ? column_sums<float>(l, out, x) : column_sums<bf16>(l, out, x);
}
