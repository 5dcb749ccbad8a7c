/* AdamW and the global norm. Bound by bandwidth. */
#include "backend/cuda/kernels/common.cuh"

namespace
{

/* Loshchilov & Hutter 2019, with decoupled decay:
 *     m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
 *     p -= lr (decay p + (m correction1) / (sqrt(v) correction2 + eps)) */
template <typename W, int N>
__global__ void __launch_bounds__(256)
    adamw(float *p, float *m, float *v, W *w, const float *g, int64_t count, tri_adamw_step op)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * N;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i + N <= count;
         i += step) {
        float ps[N], ms[N], vs[N], gs[N];
        load<float, N>(ps, p + i);
        load<float, N>(ms, m + i);
        load<float, N>(vs, v + i);
        load<float, N>(gs, g + i);
#pragma unroll
        for (int k = 0; k < N; k++) {
            float grad = gs[k] * op.grad_scale;
            ms[k] = op.beta1 * ms[k] + op.rest1 * grad;
            vs[k] = op.beta2 * vs[k] + op.rest2 * grad * grad;
            float update = ms[k] * op.correction1 / (sqrtf(vs[k]) * op.correction2 + op.eps);
            ps[k] -= op.lr * (op.decay * ps[k] + update);
        }
        store<float, N>(p + i, ps);
        store<float, N>(m + i, ms);
        store<float, N>(v + i, vs);
        if (w != nullptr)
            store<W, N>(w + i, ps);
    }
}

template <typename W>
cudaError_t update(struct tri_launch l, const tri_adamw_step &op, struct tri_view p,
                   struct tri_view m, struct tri_view v, struct tri_view w, struct tri_view g)
{
    int64_t count = p.dim[0] * (p.num_dims > 1 ? p.dim[1] : 1) * (p.num_dims > 2 ? p.dim[2] : 1);
    float *ps = (float *)p.data, *ms = (float *)m.data, *vs = (float *)v.data;
    const float *gs = (const float *)g.data;
    W *ws = (W *)w.data;
    bool aligned = (((uintptr_t)ps | (uintptr_t)ms | (uintptr_t)vs | (uintptr_t)gs) % 16 |
                    (uintptr_t)ws % (4 * sizeof(W))) == 0;
    int64_t whole = aligned ? count / 4 * 4 : 0, rest = count - whole;
    if (whole > 0)
        adamw<W, 4><<<grid_for(ceil_div(whole, 1024), l, 32), 256, 0, l.stream>>>(ps, ms, vs, ws,
                                                                                  gs, whole, op);
    if (rest > 0)
        adamw<W, 1><<<grid_for(ceil_div(rest, 256), l, 32), 256, 0, l.stream>>>(
            ps + whole, ms + whole, vs + whole, ws == nullptr ? nullptr : ws + whole, gs + whole,
            rest, op);
    return cudaGetLastError();
}

/* The order of the sum depends on the count alone: never on the card or on timing. */
constexpr int square_blocks = 1024;

template <typename T, int N>
__global__ void __launch_bounds__(512) squares(const T *x, int64_t count, double *partials)
{
    __shared__ double room[32];
    constexpr int unroll = 4;
    double sum = 0;
    int64_t step = (int64_t)gridDim.x * blockDim.x * N;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (; i + (unroll - 1) * step + N <= count; i += unroll * step) {
        float v[unroll][N];
#pragma unroll
        for (int u = 0; u < unroll; u++)
            load<T, N>(v[u], x + i + u * step);
#pragma unroll
        for (int u = 0; u < unroll; u++)
#pragma unroll
            for (int k = 0; k < N; k++)
                sum += (double)v[u][k] * (double)v[u][k];
    }
    for (; i + N <= count; i += step) {
        float v[N];
        load<T, N>(v, x + i);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += (double)v[k] * (double)v[k];
    }
    /* The last count % N elements. */
    int64_t tail = count / N * N + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (tail < count)
        sum += (double)to_float(x[tail]) * (double)to_float(x[tail]);
    sum = block_sum(sum, room);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(square_blocks) add_squares(double *sum, const double *partials)
{
    __shared__ double room[32];
    double total = block_sum(partials[threadIdx.x], room);
    if (threadIdx.x == 0)
        *sum += total;
}

template <typename T> cudaError_t sum_squares(struct tri_launch l, double *sum, struct tri_view x)
{
    constexpr int n = vector_bytes / sizeof(T);
    int64_t count = x.dim[0] * (x.num_dims > 1 ? x.dim[1] : 1) * (x.num_dims > 2 ? x.dim[2] : 1);
    double *partials = (double *)l.scratch;
    if (count == 0)
        return cudaSuccess;
    if ((uintptr_t)x.data % vector_bytes == 0)
        squares<T, n><<<square_blocks, 512, 0, l.stream>>>((const T *)x.data, count, partials);
    else
        squares<T, 1><<<square_blocks, 512, 0, l.stream>>>((const T *)x.data, count, partials);
    add_squares<<<1, square_blocks, 0, l.stream>>>(sum, partials);
    return cudaGetLastError();
}

} // namespace

cudaError_t tri_kernel_adamw(struct tri_launch l, struct tri_adamw_step op, struct tri_view p,
                             struct tri_view m, struct tri_view v, struct tri_view w,
                             struct tri_view g)
{
    if (p.dtype != TRI_F32 || m.dtype != TRI_F32 || v.dtype != TRI_F32 || g.dtype != TRI_F32)
        return cudaErrorNotSupported;
    if (w.data == nullptr || w.dtype == TRI_F32)
        return update<float>(l, op, p, m, v, w, g);
    return w.dtype == TRI_BF16 ? update<bf16>(l, op, p, m, v, w, g) : cudaErrorNotSupported;
}

cudaError_t tri_kernel_sum_squares(struct tri_launch l, double *sum, struct tri_view x)
{
    if (x.dtype == TRI_F32)
        return sum_squares<float>(l, sum, x);
    return x.dtype == TRI_BF16 ? sum_squares<bf16>(l, sum, x) : cudaErrorNotSupported;
}
