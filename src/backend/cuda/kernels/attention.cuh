/* What the attention kernels share: who sees whom, tiles in shared memory, small products.
 *
 * A block has 256 threads as 16 x 16. Tiles hold float32 rows of the head size, padded so that rows
 * start four banks apart. A thread owns R consecutive rows of a product and every sixteenth column.
 */
#ifndef TRI_BACKEND_CUDA_KERNELS_ATTENTION_CUH
#define TRI_BACKEND_CUDA_KERNELS_ATTENTION_CUH

#include "backend/cuda/kernels/common.cuh"

namespace
{

constexpr int attn_threads = 256;

/* (tokens, heads, dim) with dim contiguous. */
template <typename T> struct heads {
    T *data;
    int64_t token, head;
    __device__ __forceinline__ T *at(int64_t t, int64_t h) const
    {
        return data + t * token + h * head;
    }
};

template <typename T> heads<T> heads_of(struct tri_view v)
{
    return {(T *)v.data, v.stride[0], v.stride[1]};
}

struct attn_shape {
    int64_t num_queries, num_keys;
    int dim, group; /* head size; query heads of a key head */
    bool aligned;   /* all rows are whole 16-byte vectors */
};

/* The document of global token i: the last one that begins at or before it. */
__device__ inline int64_t document_of(const tri_kernel_attn &op, int64_t i)
{
    int64_t low = 0, high = op.num_docs - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (op.doc_begin[middle] <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Query i sees the keys [first_key(i), i]; key j is seen by the queries [j, last_query(j)]. Both
 * are monotonic, so a tile's range follows from its first and last row. */
__device__ inline int64_t first_key(const tri_kernel_attn &op, int64_t i)
{
    int64_t first = op.doc_begin[document_of(op, i)];
    return op.window > 0 && first < i - op.window + 1 ? i - op.window + 1 : first;
}

__device__ inline int64_t last_query(const tri_kernel_attn &op, int64_t j)
{
    int64_t last = op.doc_begin[document_of(op, j) + 1] - 1;
    return op.window > 0 && last > j + op.window - 1 ? j + op.window - 1 : last;
}

/* Row stride of a tile in floats: an odd number of 16-byte vectors. */
__host__ __device__ constexpr int tile_stride(int dim)
{
    int padded = (dim + 3) / 4 * 4;
    return padded / 4 % 2 == 0 ? padded + 4 : padded;
}

/* Rows [0, ROWS) of `from`, zeros past `present` and past dim. */
template <typename T, int ROWS>
__device__ __forceinline__ void load_tile(float *to, const T *from, int64_t token_stride,
                                          int64_t present, const attn_shape &s)
{
    int stride = tile_stride(s.dim);
    if (s.aligned) {
        constexpr int n = vector_bytes / sizeof(T);
        int vectors = s.dim / n;
        for (int i = threadIdx.x; i < ROWS * vectors; i += attn_threads) {
            int r = i / vectors, c = (i - r * vectors) * n;
            float x[n] = {};
            if (r < present)
                load<T, n>(x, from + r * token_stride + c);
#pragma unroll
            for (int k = 0; k < n; k += 4)
                *reinterpret_cast<float4 *>(to + r * stride + c + k) =
                    make_float4(x[k], x[k + 1], x[k + 2], x[k + 3]);
        }
    } else {
        int padded = (s.dim + 3) / 4 * 4;
        for (int i = threadIdx.x; i < ROWS * padded; i += attn_threads) {
            int r = i / padded, c = i - r * padded;
            bool in = r < present && c < s.dim;
            to[r * stride + c] = in ? to_float(from[r * token_stride + c]) : 0.0f;
        }
    }
}

/* out[i][j] = a[row i] . b[column j] over the head size. */
template <int R, int C>
__device__ __forceinline__ void dot_rows(float (&out)[R][C], const float *a, const float *b,
                                         int dim)
{
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, stride = tile_stride(dim);
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int j = 0; j < C; j++)
            out[i][j] = 0.0f;
    for (int d = 0; d < dim; d += 4) {
        float4 av[R], bv[C];
#pragma unroll
        for (int i = 0; i < R; i++)
            av[i] = *reinterpret_cast<const float4 *>(a + (ty * R + i) * stride + d);
#pragma unroll
        for (int j = 0; j < C; j++)
            bv[j] = *reinterpret_cast<const float4 *>(b + (tx + 16 * j) * stride + d);
#pragma unroll
        for (int i = 0; i < R; i++)
#pragma unroll
            for (int j = 0; j < C; j++) {
                out[i][j] += av[i].x * bv[j].x;
                out[i][j] += av[i].y * bv[j].y;
                out[i][j] += av[i].z * bv[j].z;
                out[i][j] += av[i].w * bv[j].w;
            }
    }
}

/* sum[i][v] += weights[row i][n] * b[n] for n in [0, ROWS): four columns of the head size each, at
 * (tx + 16 v) * 4. `weights` has ROWS + 4 floats a row. */
template <int R, int V, int ROWS>
__device__ __forceinline__ void add_weighted(float (&sum)[R][V][4], const float *weights,
                                             const float *b, int dim)
{
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, stride = tile_stride(dim);
    for (int n = 0; n < ROWS; n += 4) {
        float w[R][4];
#pragma unroll
        for (int i = 0; i < R; i++)
            load<float, 4>(w[i], weights + (ty * R + i) * (ROWS + 4) + n);
#pragma unroll
        for (int v = 0; v < V; v++) {
            int c = (tx + 16 * v) * 4;
            if (c >= dim)
                continue;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                float4 x = *reinterpret_cast<const float4 *>(b + (n + k) * stride + c);
#pragma unroll
                for (int i = 0; i < R; i++) {
                    sum[i][v][0] += w[i][k] * x.x;
                    sum[i][v][1] += w[i][k] * x.y;
                    sum[i][v][2] += w[i][k] * x.z;
                    sum[i][v][3] += w[i][k] * x.w;
                }
            }
        }
    }
}

/* to[0..dim) = or += the thread's part of a row of sums. */
template <typename T, int V>
__device__ __forceinline__ void write_row(T *to, const float (&sum)[V][4], float factor,
                                          bool accumulate, int dim)
{
    int tx = threadIdx.x % 16;
#pragma unroll
    for (int v = 0; v < V; v++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int c = (tx + 16 * v) * 4 + k;
            if (c < dim)
                to[c] = from_float<T>((accumulate ? to_float(to[c]) : 0.0f) + sum[v][k] * factor);
        }
}

/* Whether rows of a (tokens, heads, dim) view are whole vectors. */
inline bool heads_aligned(struct tri_view v)
{
    return vectors_fit(v, element_bytes(v.dtype));
}

} // namespace

#endif
