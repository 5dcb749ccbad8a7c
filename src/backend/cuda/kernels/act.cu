/* Activations of the MLP, with and without a gate, forward and backward. Bound by bandwidth. */
#include "backend/backend.h"
#include "backend/cuda/kernels/common.cuh"

namespace
{

/* value = act(x) and slope = act'(x) of each kind, in float32. */
template <int ACT> __device__ __forceinline__ void evaluate(float x, float &value, float &slope)
{
    if constexpr (ACT == TRI_ACT_SILU) {
        float s = 1.0f / (1.0f + expf(-x));
        value = x * s;
        slope = s * (1.0f + x * (1.0f - s));
    } else if constexpr (ACT == TRI_ACT_GELU) {
        float cdf = 0.5f * (1.0f + erff(x * 0.70710678118654752f));
        value = x * cdf;
        slope = cdf + x * 0.39894228040143268f * expf(-0.5f * x * x);
    } else if constexpr (ACT == TRI_ACT_GELU_TANH) {
        const float k = 0.79788456080286536f, c = 0.044715f;
        float t = tanhf(k * (x + c * x * x * x));
        value = 0.5f * x * (1.0f + t);
        slope = 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * k * (1.0f + 3.0f * c * x * x);
    } else if constexpr (ACT == TRI_ACT_QUICK_GELU) {
        float s = 1.0f / (1.0f + expf(-1.702f * x));
        value = x * s;
        slope = s * (1.0f + 1.702f * x * (1.0f - s));
    } else {
        value = x > 0.0f ? x : 0.0f;
        slope = x > 0.0f ? 1.0f : 0.0f;
    }
}

/* (rows, cols); contiguous tensors are one row. */
struct matrix {
    int64_t rows, cols;
    int64_t y, gate, up, dgate, dup; /* row strides */
};

/* Blocks go over rows in y and over pieces of a row in x, two vectors a thread in flight. */
template <typename T, int N, int ACT>
__global__ void __launch_bounds__(256) act_forward(T *y, const T *gate, const T *up, matrix m)
{
    for (int64_t r = blockIdx.y; r < m.rows; r += gridDim.y) {
        for (int64_t c = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; c < m.cols;
             c += (int64_t)gridDim.x * blockDim.x * N) {
            float g[N], u[N], out[N];
            load<T, N>(g, gate + r * m.gate + c);
            if (up != nullptr)
                load<T, N>(u, up + r * m.up + c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float value, slope;
                evaluate<ACT>(g[k], value, slope);
                out[k] = up != nullptr ? value * u[k] : value;
            }
            store<T, N>(y + r * m.y + c, out);
        }
    }
}

template <typename T, int N, int ACT>
__global__ void __launch_bounds__(256)
    act_backward(T *dgate, T *dup, const T *dy, const T *gate, const T *up, matrix m)
{
    for (int64_t r = blockIdx.y; r < m.rows; r += gridDim.y) {
        for (int64_t c = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; c < m.cols;
             c += (int64_t)gridDim.x * blockDim.x * N) {
            float d[N], g[N], u[N], dg[N], du[N];
            load<T, N>(d, dy + r * m.y + c);
            load<T, N>(g, gate + r * m.gate + c);
            if (up != nullptr)
                load<T, N>(u, up + r * m.up + c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float value, slope;
                evaluate<ACT>(g[k], value, slope);
                dg[k] = up != nullptr ? d[k] * u[k] * slope : d[k] * slope;
                du[k] = d[k] * value;
            }
            store<T, N>(dgate + r * m.dgate + c, dg);
            if (up != nullptr)
                store<T, N>(dup + r * m.dup + c, du);
        }
    }
}

bool contiguous(struct tri_view v)
{
    return v.data == nullptr || v.num_dims == 1 || v.dim[0] == 1 || v.stride[0] == v.dim[1];
}

int64_t row_stride(struct tri_view v)
{
    return v.data != nullptr && v.num_dims > 1 ? v.stride[0] : 0;
}

template <typename T, int N, int ACT>
cudaError_t launch(struct tri_launch l, bool backward, struct tri_view y, struct tri_view gate,
                   struct tri_view up, struct tri_view dgate, struct tri_view dup)
{
    matrix m = {gate.num_dims > 1 ? gate.dim[0] : 1,
                gate.dim[gate.num_dims - 1],
                row_stride(y),
                row_stride(gate),
                row_stride(up),
                row_stride(dgate),
                row_stride(dup)};
    if (contiguous(y) && contiguous(gate) && contiguous(up) && contiguous(dgate) &&
        contiguous(dup)) {
        m.cols *= m.rows;
        m.rows = 1;
    }
    if (m.rows * m.cols == 0)
        return cudaSuccess;
    int64_t x = ceil_div(m.cols, 256 * N), most = (int64_t)l.num_sms * 32;
    dim3 grid((unsigned)(x < most ? x : most), (unsigned)(m.rows < 32768 ? m.rows : 32768));
    if (backward)
        act_backward<T, N, ACT><<<grid, 256, 0, l.stream>>>((T *)dgate.data, (T *)dup.data,
                                                            (const T *)y.data, (const T *)gate.data,
                                                            (const T *)up.data, m);
    else
        act_forward<T, N, ACT>
            <<<grid, 256, 0, l.stream>>>((T *)y.data, (const T *)gate.data, (const T *)up.data, m);
    return cudaGetLastError();
}

template <typename T, int N>
cudaError_t choose(struct tri_launch l, int act, bool backward, struct tri_view y,
                   struct tri_view gate, struct tri_view up, struct tri_view dgate,
                   struct tri_view dup)
{
    switch (act) {
    case TRI_ACT_SILU:
        return launch<T, N, TRI_ACT_SILU>(l, backward, y, gate, up, dgate, dup);
    case TRI_ACT_GELU:
        return launch<T, N, TRI_ACT_GELU>(l, backward, y, gate, up, dgate, dup);
    case TRI_ACT_GELU_TANH:
        return launch<T, N, TRI_ACT_GELU_TANH>(l, backward, y, gate, up, dgate, dup);
    case TRI_ACT_QUICK_GELU:
        return launch<T, N, TRI_ACT_QUICK_GELU>(l, backward, y, gate, up, dgate, dup);
    case TRI_ACT_RELU:
        return launch<T, N, TRI_ACT_RELU>(l, backward, y, gate, up, dgate, dup);
    default:
        return cudaErrorNotSupported;
    }
}

template <typename T>
cudaError_t run(struct tri_launch l, int act, bool backward, struct tri_view y,
                struct tri_view gate, struct tri_view up, struct tri_view dgate,
                struct tri_view dup)
{
    constexpr int n = vector_bytes / sizeof(T);
    bool aligned = vectors_fit(y, sizeof(T)) && vectors_fit(gate, sizeof(T)) &&
                   (up.data == nullptr || vectors_fit(up, sizeof(T))) &&
                   (dgate.data == nullptr || vectors_fit(dgate, sizeof(T))) &&
                   (dup.data == nullptr || vectors_fit(dup, sizeof(T)));
    return aligned ? choose<T, n>(l, act, backward, y, gate, up, dgate, dup)
                   : choose<T, 1>(l, act, backward, y, gate, up, dgate, dup);
}

} // namespace

cudaError_t tri_kernel_act_forward(struct tri_launch l, int act, struct tri_view y,
                                   struct tri_view gate, struct tri_view up)
{
    struct tri_view none = {};
    if (!is_act(y.dtype) || gate.dtype != y.dtype || (up.data != nullptr && up.dtype != y.dtype))
        return cudaErrorNotSupported;
    return y.dtype == TRI_F32 ? run<float>(l, act, false, y, gate, up, none, none)
                              : run<bf16>(l, act, false, y, gate, up, none, none);
}

cudaError_t tri_kernel_act_backward(struct tri_launch l, int act, struct tri_view dgate,
                                    struct tri_view dup, struct tri_view dy, struct tri_view gate,
                                    struct tri_view up)
{
    if (!is_act(dy.dtype) || gate.dtype != dy.dtype || dgate.dtype != dy.dtype ||
        (up.data != nullptr && (up.dtype != dy.dtype || dup.dtype != dy.dtype)))
        return cudaErrorNotSupported;
    if (up.data == nullptr)
        dup = up;
    return dy.dtype == TRI_F32 ? run<float>(l, act, true, dy, gate, up, dgate, dup)
                               : run<bf16>(l, act, true, dy, gate, up, dgate, dup);
}
