/* RMSNorm and LayerNorm over the last dimension, forward and backward.
 *
 * A group of `width` threads owns a row: 8 to 32 lanes of a warp for short rows (the norms of query
 * and key heads), a block for long ones. Each thread keeps VPT vectors of N elements of the row in
 * registers, so that x is read once. VPT 0 is for rows that do not fit: it reads them again. */
#include "backend/cuda/kernels/columns.cuh"

namespace
{

/* Rows of a (rows,N) or (T,H,N) tensor. */
struct rows {
    int64_t inner; /* rows of one outer index */
    int64_t outer_stride, inner_stride;
    __device__ __forceinline__ int64_t at(int64_t r) const
    {
        if (inner == 1)
            return r * outer_stride;
        int64_t i = r / inner;
        return i * outer_stride + (r - i * inner) * inner_stride;
    }
};

/* A thread's part of its row: vectors at columns first(), first() + step(), ... */
template <int N> struct columns {
    int width, lane;
    __device__ __forceinline__ int64_t at(int i) const
    {
        return ((int64_t)i * width + lane) * N;
    }
};

/* A row's sums: its mean and 1 / standard deviation (RMSNorm: mean 0). */
struct statistics {
    float mean, rstd;
};

__device__ __forceinline__ float row_sum(float x, int width, float *room)
{
    return width <= 32 ? group_sum(x, width) : block_sum(x, room);
}

/* Calls f(vector number, column) for each of the thread's vectors inside the row. */
template <int N, int VPT, typename F>
__device__ __forceinline__ void each(const columns<N> &mine, int64_t cols, F f)
{
    if constexpr (VPT > 0) {
#pragma unroll
        for (int i = 0; i < VPT; i++)
            if (mine.at(i) < cols)
                f(i, mine.at(i));
    } else {
        for (int i = 0; mine.at(i) < cols; i++)
            f(0, mine.at(i));
    }
}

/* Values kept in registers as they are in memory, or read again. */
template <typename T, int N, int VPT> struct kept {
    pack<T, N> v[VPT > 0 ? VPT : 1];
    __device__ __forceinline__ void read(int i, const T *row, int64_t c)
    {
        v[i] = *reinterpret_cast<const pack<T, N> *>(row + c);
    }
    __device__ __forceinline__ void get(float (&out)[N], int i, const T *row, int64_t c)
    {
        if constexpr (VPT == 0)
            read(0, row, c);
#pragma unroll
        for (int k = 0; k < N; k++)
            out[k] = to_float(v[i].v[k]);
    }
};

template <typename T, int N, int VPT, bool LAYER>
__device__ __forceinline__ statistics measure(kept<T, N, VPT> &x, const T *row, bool present,
                                              const columns<N> &mine, int64_t cols, float eps,
                                              float *room)
{
    statistics s = {0.0f, 0.0f};
    float sum = 0;
    if (present)
        each<N, VPT>(mine, cols, [&](int i, int64_t c) {
            float xs[N];
            x.read(i, row, c);
            x.get(xs, i, row, c);
#pragma unroll
            for (int k = 0; k < N; k++)
                sum += LAYER ? xs[k] : xs[k] * xs[k];
        });
    sum = row_sum(sum, mine.width, room);
    if constexpr (LAYER) {
        s.mean = sum / (float)cols;
        float squares = 0;
        if (present)
            each<N, VPT>(mine, cols, [&](int i, int64_t c) {
                float xs[N];
                x.get(xs, i, row, c);
#pragma unroll
                for (int k = 0; k < N; k++)
                    squares += (xs[k] - s.mean) * (xs[k] - s.mean);
            });
        sum = row_sum(squares, mine.width, room);
    }
    s.rstd = 1.0f / sqrtf(sum / (float)cols + eps);
    return s;
}

template <typename T, int N, int VPT, bool LAYER>
__global__ void __launch_bounds__(VPT == 0 ? 256 : 1024)
    norm_forward(T *y, rows y_rows, const T *x, rows x_rows, const T *w, const T *b,
                 int64_t num_rows, int64_t cols, int width, float eps)
{
    __shared__ float room[32];
    columns<N> mine = {width, (int)threadIdx.x % width};
    int groups = blockDim.x / width, group = threadIdx.x / width;
    for (int64_t first = (int64_t)blockIdx.x * groups; first < num_rows;
         first += (int64_t)gridDim.x * groups) {
        int64_t r = first + group;
        bool present = r < num_rows;
        const T *from = x + x_rows.at(present ? r : 0);
        T *to = y + y_rows.at(present ? r : 0);
        kept<T, N, VPT> xs;
        statistics s = measure<T, N, VPT, LAYER>(xs, from, present, mine, cols, eps, room);
        if (!present)
            continue;
        each<N, VPT>(mine, cols, [&](int i, int64_t c) {
            float xv[N], ws[N], out[N];
            xs.get(xv, i, from, c);
            load<T, N>(ws, w + c);
#pragma unroll
            for (int k = 0; k < N; k++)
                out[k] = (xv[k] - s.mean) * s.rstd * ws[k];
            if (LAYER && b != nullptr) {
                float bs[N];
                load<T, N>(bs, b + c);
#pragma unroll
                for (int k = 0; k < N; k++)
                    out[k] += bs[k];
            }
            store<T, N>(to + c, out);
        });
    }
}

/* xhat = (x - mean) rstd, g = dy w:
 *     dx = rstd (g - mean(g) - xhat mean(g xhat))     RMSNorm has no mean(g) term
 *     dw += dy xhat, db += dy
 * dw and db are gathered over the rows of a block, then written to partials[block][cols]. */
template <typename T, int N, int VPT, bool LAYER>
__global__ void __launch_bounds__(VPT < 2 ? 256 : 512)
    norm_backward(T *dx, rows dx_rows, bool accumulate, const T *dy, rows dy_rows, const T *x,
                  rows x_rows, const T *w, float *dw_partials, float *db_partials, int64_t num_rows,
                  int64_t cols, int width, float eps)
{
    extern __shared__ float gathered[]; /* [groups][cols], short rows only */
    __shared__ float room[32];
    columns<N> mine = {width, (int)threadIdx.x % width};
    int groups = blockDim.x / width, group = threadIdx.x / width;
    float *dw_mine = dw_partials + (int64_t)blockIdx.x * cols;
    float *db_mine = db_partials == nullptr ? nullptr : db_partials + (int64_t)blockIdx.x * cols;
    float dw[VPT > 0 ? VPT : 1][N] = {}, db[VPT > 0 && LAYER ? VPT : 1][N] = {};
    if constexpr (VPT == 0) {
        for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) {
            dw_mine[c] = 0;
            if (LAYER && db_mine != nullptr)
                db_mine[c] = 0;
        }
        __syncthreads();
    }
    for (int64_t first = (int64_t)blockIdx.x * groups; first < num_rows;
         first += (int64_t)gridDim.x * groups) {
        int64_t r = first + group;
        bool present = r < num_rows;
        const T *x_row = x + x_rows.at(present ? r : 0), *dy_row = dy + dy_rows.at(present ? r : 0);
        T *dx_row = dx + dx_rows.at(present ? r : 0);
        kept<T, N, VPT> xs, dys;
        if (VPT > 0 && present) /* in flight together with x */
            each<N, VPT>(mine, cols, [&](int i, int64_t c) { dys.read(i, dy_row, c); });
        statistics s = measure<T, N, VPT, LAYER>(xs, x_row, present, mine, cols, eps, room);
        float sum_g = 0, sum_gx = 0;
        if (present)
            each<N, VPT>(mine, cols, [&](int i, int64_t c) {
                float xv[N], dyv[N], ws[N];
                xs.get(xv, i, x_row, c);
                dys.get(dyv, i, dy_row, c);
                load<T, N>(ws, w + c);
#pragma unroll
                for (int k = 0; k < N; k++) {
                    float xhat = (xv[k] - s.mean) * s.rstd;
                    sum_g += dyv[k] * ws[k];
                    sum_gx += dyv[k] * ws[k] * xhat;
                    if (VPT > 0) {
                        dw[i][k] += dyv[k] * xhat;
                        if (LAYER)
                            db[i][k] += dyv[k];
                    } else {
                        dw_mine[c + k] += dyv[k] * xhat;
                        if (LAYER && db_mine != nullptr)
                            db_mine[c + k] += dyv[k];
                    }
                }
            });
        float mean_gx = row_sum(sum_gx, width, room) / (float)cols;
        float mean_g = LAYER ? row_sum(sum_g, width, room) / (float)cols : 0.0f;
        if (!present)
            continue;
        each<N, VPT>(mine, cols, [&](int i, int64_t c) {
            float xv[N], dyv[N], ws[N], out[N];
            xs.get(xv, i, x_row, c);
            dys.get(dyv, i, dy_row, c);
            load<T, N>(ws, w + c);
            if (accumulate)
                load<T, N>(out, dx_row + c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float xhat = (xv[k] - s.mean) * s.rstd;
                float d = s.rstd * (dyv[k] * ws[k] - mean_g - xhat * mean_gx);
                out[k] = accumulate ? out[k] + d : d;
            }
            store<T, N>(dx_row + c, out);
        });
    }
    if constexpr (VPT > 0) {
        /* Sum the groups of the block in order; one group needs no room. */
        for (int pass = 0; pass < (LAYER && db_mine != nullptr ? 2 : 1); pass++) {
            float *to = pass == 0 ? dw_mine : db_mine;
            each<N, VPT>(mine, cols, [&](int i, int64_t c) {
#pragma unroll
                for (int k = 0; k < N; k++) {
                    float value = pass == 0 ? dw[i][k] : db[LAYER ? i : 0][k];
                    if (groups == 1)
                        to[c + k] = value;
                    else
                        gathered[group * cols + c + k] = value;
                }
            });
            if (groups > 1) {
                __syncthreads();
                for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) {
                    float sum = 0;
                    for (int g = 0; g < groups; g++)
                        sum += gathered[g * cols + c];
                    to[c] = sum;
                }
                __syncthreads();
            }
        }
    }
}

rows rows_of(struct tri_view v)
{
    if (v.num_dims == 3)
        return {v.dim[1], v.stride[0], v.stride[1]};
    if (v.num_dims == 2)
        return {1, v.stride[0], 0};
    return {1, 0, 0};
}

int64_t count_rows(struct tri_view v)
{
    return v.num_dims == 3 ? v.dim[0] * v.dim[1] : v.num_dims == 2 ? v.dim[0] : 1;
}

/* Threads of a row with `vpt` vectors each: a power of two from 8, 0 when over `most`. */
int width_for(int64_t vectors, int vpt, int most)
{
    int width = 8;
    while (width <= most && (int64_t)width * vpt < vectors)
        width *= 2;
    return width <= most ? width : 0;
}

struct forward_call {
    struct tri_launch l;
    struct tri_view y, x, w, b;
    float eps;
    int64_t num_rows, cols;
};

template <typename T, int N, int VPT, bool LAYER>
cudaError_t launch_forward(const forward_call &c, int width)
{
    int threads = width < 256 && VPT > 0 ? (width > 32 ? width : 256) : width;
    unsigned blocks = grid_for(ceil_div(c.num_rows, threads / width), c.l, 4096 / threads);
    norm_forward<T, N, VPT, LAYER><<<blocks, threads, 0, c.l.stream>>>(
        (T *)c.y.data, rows_of(c.y), (const T *)c.x.data, rows_of(c.x), (const T *)c.w.data,
        (const T *)c.b.data, c.num_rows, c.cols, width, c.eps);
    return cudaGetLastError();
}

template <typename T, int N, bool LAYER> cudaError_t choose_forward(const forward_call &c)
{
    int64_t vectors = ceil_div(c.cols, N);
    if (vectors <= 256)
        return launch_forward<T, N, 1, LAYER>(c, width_for(vectors, 1, 256));
    if (vectors <= 1024)
        return launch_forward<T, N, 2, LAYER>(c, width_for(vectors, 2, 512));
    if (vectors <= 4096)
        return launch_forward<T, N, 4, LAYER>(c, width_for(vectors, 4, 1024));
    return launch_forward<T, N, 0, LAYER>(c, 256);
}

template <typename T> cudaError_t forward(const forward_call &c, bool layer)
{
    constexpr int n = vector_bytes / sizeof(T);
    bool aligned = vectors_fit(c.y, sizeof(T)) && vectors_fit(c.x, sizeof(T)) &&
                   vectors_fit(c.w, sizeof(T)) &&
                   (c.b.data == nullptr || vectors_fit(c.b, sizeof(T)));
    if (aligned)
        return layer ? choose_forward<T, n, true>(c) : choose_forward<T, n, false>(c);
    return layer ? choose_forward<T, 1, true>(c) : choose_forward<T, 1, false>(c);
}

struct backward_call {
    struct tri_launch l;
    struct tri_view dx, dw, db, dy, x, w;
    bool accumulate;
    float eps;
    int64_t num_rows, cols;
};

template <typename T, int N, int VPT, bool LAYER>
cudaError_t launch_backward(const backward_call &c, int width)
{
    int threads = width > 32 ? width : 256, groups = threads / width;
    bool bias = LAYER && c.db.data != nullptr;
    int64_t room = (int64_t)c.l.scratch_bytes / ((bias ? 8 : 4) * c.cols);
    if (room < 1)
        return cudaErrorNotSupported;
    int64_t blocks =
        grid_for(ceil_div(c.num_rows, groups), c.l, threads > 512 ? 1 : 1024 / threads);
    if (blocks > room)
        blocks = room;
    float *dw = (float *)c.l.scratch, *db = bias ? dw + blocks * c.cols : nullptr;
    size_t shared = groups > 1 ? (size_t)groups * (size_t)c.cols * sizeof(float) : 0;
    norm_backward<T, N, VPT, LAYER><<<(unsigned)blocks, threads, shared, c.l.stream>>>(
        (T *)c.dx.data, rows_of(c.dx), c.accumulate, (const T *)c.dy.data, rows_of(c.dy),
        (const T *)c.x.data, rows_of(c.x), (const T *)c.w.data, dw, db, c.num_rows, c.cols, width,
        c.eps);
    cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess)
        code = launch_finish_columns(c.l, (float *)c.dw.data, dw, (int)blocks, c.cols);
    if (code == cudaSuccess && bias)
        code = launch_finish_columns(c.l, (float *)c.db.data, db, (int)blocks, c.cols);
    return code;
}

template <typename T, int N, bool LAYER> cudaError_t choose_backward(const backward_call &c)
{
    int64_t vectors = ceil_div(c.cols, N);
    if (vectors <= 256)
        return launch_backward<T, N, 1, LAYER>(c, width_for(vectors, 1, 256));
    if (vectors <= 1024)
        return launch_backward<T, N, 2, LAYER>(c, width_for(vectors, 2, 512));
    if (vectors <= 2048)
        return launch_backward<T, N, 4, LAYER>(c, width_for(vectors, 4, 512));
    return launch_backward<T, N, 0, LAYER>(c, 256);
}

template <typename T> cudaError_t backward(const backward_call &c, bool layer)
{
    constexpr int n = vector_bytes / sizeof(T);
    bool aligned = vectors_fit(c.dx, sizeof(T)) && vectors_fit(c.dy, sizeof(T)) &&
                   vectors_fit(c.x, sizeof(T)) && vectors_fit(c.w, sizeof(T));
    if (aligned)
        return layer ? choose_backward<T, n, true>(c) : choose_backward<T, n, false>(c);
    return layer ? choose_backward<T, 1, true>(c) : choose_backward<T, 1, false>(c);
}

} // namespace

cudaError_t tri_kernel_norm_forward(struct tri_launch l, bool layer, double eps, struct tri_view y,
                                    struct tri_view x, struct tri_view w, struct tri_view b)
{
    forward_call c = {l, y, x, w, b, (float)eps, count_rows(x), x.dim[x.num_dims - 1]};
    if (!is_act(x.dtype) || y.dtype != x.dtype || w.dtype != x.dtype ||
        (b.data != nullptr && b.dtype != x.dtype))
        return cudaErrorNotSupported;
    if (c.num_rows == 0)
        return cudaSuccess;
    return x.dtype == TRI_F32 ? forward<float>(c, layer) : forward<bf16>(c, layer);
}

cudaError_t tri_kernel_norm_backward(struct tri_launch l, bool layer, double eps, bool accumulate,
                                     struct tri_view dx, struct tri_view dw, struct tri_view db,
                                     struct tri_view dy, struct tri_view x, struct tri_view w)
{
    backward_call c = {
        l, dx, dw, db, dy, x, w, accumulate, (float)eps, count_rows(x), x.dim[x.num_dims - 1]};
    if (!is_act(x.dtype) || dx.dtype != x.dtype || dy.dtype != x.dtype || w.dtype != x.dtype ||
        dw.dtype != TRI_F32 || (db.data != nullptr && db.dtype != TRI_F32))
        return cudaErrorNotSupported;
    if (c.num_rows == 0)
        return cudaSuccess;
    return x.dtype == TRI_F32 ? backward<float>(c, layer) : backward<bf16>(c, layer);
}
