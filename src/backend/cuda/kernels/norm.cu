/* RMSNorm and LayerNorm over the last dimension, forward and backward.
 *
 * A group of `width` threads owns a row: 8 to 32 lanes of a warp for short rows (the norms of query
 * and key heads), a block for long ones. Each thread keeps VPT vectors of N elements of the row in
 * registers, so that x is read once, while the next rows are on their way to shared memory: without
 * them the memory would idle during every reduction. VPT 0 is for rows that do not fit. */
#include "backend/cuda/kernels/columns.cuh"

namespace
{

/* Which row of a (rows,N) or (T,H,N) tensor a group is at; of (rows,N) the second index stays 0.
 * Going on takes no division: short rows would spend their time on it. */
struct place {
    int64_t row, outer, inner; /* row = outer * per_outer + inner */

    __device__ __forceinline__ place(int64_t r, int64_t per_outer)
        : row(r), outer(r / per_outer), inner(r - outer * per_outer)
    {
    }
    __device__ __forceinline__ void advance(const place &step, int64_t per_outer)
    {
        row += step.row;
        outer += step.outer;
        inner += step.inner;
        if (inner >= per_outer) {
            inner -= per_outer;
            outer++;
        }
    }
};

/* Strides of a tensor's rows. */
struct rows {
    int64_t outer_stride, inner_stride;
    __device__ __forceinline__ int64_t at(const place &p) const
    {
        return p.outer * outer_stride + p.inner * inner_stride;
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

/* Sums of two values over the threads of a row, with one barrier: `room` has two halves that take
 * turns, so a half is written again only when everybody has read it. */
__device__ __forceinline__ float2 row_sums(float2 x, int width, float2 (*room)[32], int &turn)
{
    int lanes = width < 32 ? width : 32;
    x.x = group_sum(x.x, lanes);
    x.y = group_sum(x.y, lanes);
    if (width <= 32)
        return x;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = width / 32;
    if (lane == 0)
        room[turn][warp] = x;
    __syncthreads();
    x = lane < warps ? room[turn][lane] : make_float2(0.0f, 0.0f);
    turn ^= 1;
    return make_float2(group_sum(x.x, 32), group_sum(x.y, 32));
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

/* The thread's values of the present row of a tensor. With STAGES, they and those of the next rows
 * lie in shared memory, where each thread has slots of its own: loads stay in flight through the
 * reductions of the present row. Without, they are in registers, or (VPT 0) are read from the row
 * whenever they are asked for. */
template <typename T, int N, int VPT, int STAGES> struct values {
    pack<T, N> *slots; /* of the tensor; slot i of stage s at [s * stage_stride + i * blockDim.x] */
    int stage_stride;
    pack<T, N> v[VPT > 0 && STAGES == 0 ? VPT : 1];

    /* Send for a row. */
    __device__ __forceinline__ void start(int stage, const T *row, bool present,
                                          const columns<N> &mine, int64_t cols)
    {
        if constexpr (STAGES > 0)
            if (present)
                each<N, VPT>(mine, cols, [&](int i, int64_t c) {
                    copy_async(slots + (stage * stage_stride + i * (int)blockDim.x), row + c);
                });
    }
    /* Make a row the present one. */
    __device__ __forceinline__ void open(const T *row, bool present, const columns<N> &mine,
                                         int64_t cols)
    {
        if constexpr (VPT > 0 && STAGES == 0)
            if (present)
                each<N, VPT>(mine, cols, [&](int i, int64_t c) {
                    v[i] = *reinterpret_cast<const pack<T, N> *>(row + c);
                });
    }
    __device__ __forceinline__ void get(float (&out)[N], int i, int stage, const T *row, int64_t c)
    {
        pack<T, N> in;
        if constexpr (STAGES > 0)
            in = slots[stage * stage_stride + i * (int)blockDim.x];
        else if constexpr (VPT > 0)
            in = v[i];
        else
            in = *reinterpret_cast<const pack<T, N> *>(row + c);
#pragma unroll
        for (int k = 0; k < N; k++)
            out[k] = to_float(in.v[k]);
    }
};

/* Most threads of a block, and blocks wished for on a multiprocessor, for the count of registers.
 */
constexpr int most_threads(int vpt, int stages)
{
    return vpt < 2 || stages > 2 ? 256 : 512;
}
constexpr int least_blocks(int stages, bool many_sums)
{
    return stages < 3 ? 1 : many_sums ? 2 : 3; /* without spilling */
}

template <typename T, int N, int VPT, int STAGES, bool LAYER>
__global__ void __launch_bounds__(most_threads(VPT, STAGES), least_blocks(STAGES, false))
    norm_forward(T *y, rows y_rows, const T *x, rows x_rows, const T *w, const T *b,
                 int64_t num_rows, int64_t per_outer, int64_t cols, int width, float eps)
{
    extern __shared__ float4 shared4[];
    __shared__ float2 room[2][32];
    columns<N> mine = {width, (int)threadIdx.x % width};
    int groups = blockDim.x / width, group = threadIdx.x / width, turn = 0, stage = 0;
    values<T, N, VPT, STAGES> xs;
    values<T, N, VPT, 0> ws, bs;
    xs.slots = reinterpret_cast<pack<T, N> *>(shared4) + threadIdx.x;
    xs.stage_stride = VPT * (int)blockDim.x;
    ws.open(w, true, mine, cols);
    bs.open(b, LAYER && b != nullptr, mine, cols);

    const place step((int64_t)gridDim.x * groups, per_outer);
    place here((int64_t)blockIdx.x * groups + group, per_outer), ahead = here;
    auto start = [&](int at) {
        bool there = ahead.row < num_rows;
        xs.start(at, x + (there ? x_rows.at(ahead) : 0), there, mine, cols);
        close_async_group();
        ahead.advance(step, per_outer);
    };
    for (int i = 0; i < STAGES; i++)
        start(i);
    /* All groups of a block go round equally often: they meet at barriers and in shuffles. */
    for (int64_t first = (int64_t)blockIdx.x * groups; first < num_rows;
         first += step.row, here.advance(step, per_outer)) {
        bool present = here.row < num_rows;
        const T *x_row = x + (present ? x_rows.at(here) : 0);
        T *y_row = y + (present ? y_rows.at(here) : 0);
        if constexpr (STAGES > 0)
            wait_async_groups<STAGES - 1>();
        xs.open(x_row, present, mine, cols);
        float2 sums = make_float2(0.0f, 0.0f);
        if (present)
            each<N, VPT>(mine, cols, [&](int i, int64_t c) {
                float xv[N];
                xs.get(xv, i, stage, x_row, c);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sums.x += LAYER ? xv[k] : xv[k] * xv[k];
            });
        sums = row_sums(sums, width, room, turn);
        float mean = LAYER ? sums.x / (float)cols : 0.0f, squares = sums.x;
        if (LAYER) {
            sums = make_float2(0.0f, 0.0f);
            if (present)
                each<N, VPT>(mine, cols, [&](int i, int64_t c) {
                    float xv[N];
                    xs.get(xv, i, stage, x_row, c);
#pragma unroll
                    for (int k = 0; k < N; k++)
                        sums.x += (xv[k] - mean) * (xv[k] - mean);
                });
            squares = row_sums(sums, width, room, turn).x;
        }
        float rstd = 1.0f / sqrtf(squares / (float)cols + eps);
        each<N, VPT>(mine, present ? cols : 0, [&](int i, int64_t c) {
            float xv[N], wv[N], bv[N], out[N];
            xs.get(xv, i, stage, x_row, c);
            ws.get(wv, i, 0, w, c);
#pragma unroll
            for (int k = 0; k < N; k++)
                out[k] = (xv[k] - mean) * rstd * wv[k];
            if (LAYER && b != nullptr) {
                bs.get(bv, i, 0, b, c);
#pragma unroll
                for (int k = 0; k < N; k++)
                    out[k] += bv[k];
            }
            store<T, N>(y_row + c, out);
        });
        if constexpr (STAGES > 0) { /* the slots of this row are free again */
            start(stage);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
    }
}

/* xhat = (x - mean) rstd, g = dy w:
 *     dx = rstd (g - mean(g) - xhat mean(g xhat))     RMSNorm has no mean(g) term
 *     dw += dy xhat, db += dy
 * dw and db are gathered over the rows of a block, then written to partials[block][cols]. */
template <typename T, int N, int VPT, int STAGES, bool LAYER>
__global__ void __launch_bounds__(most_threads(VPT, STAGES), least_blocks(STAGES, LAYER &&VPT > 1))
    norm_backward(T *dx, rows dx_rows, bool accumulate, const T *dy, rows dy_rows, const T *x,
                  rows x_rows, const T *w, float *dw_partials, float *db_partials, int64_t num_rows,
                  int64_t per_outer, int64_t cols, int width, float eps)
{
    extern __shared__ float4 shared4[]; /* the queue; at the end [groups][cols] of short rows */
    __shared__ float2 room[2][32];
    columns<N> mine = {width, (int)threadIdx.x % width};
    int groups = blockDim.x / width, group = threadIdx.x / width, turn = 0, stage = 0;
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
    values<T, N, VPT, STAGES> xs, dys, olds;
    values<T, N, VPT, 0> ws;
    int slots = VPT * (int)blockDim.x; /* of one tensor and stage */
    xs.stage_stride = dys.stage_stride = olds.stage_stride = slots * (accumulate ? 3 : 2);
    xs.slots = reinterpret_cast<pack<T, N> *>(shared4) + threadIdx.x;
    dys.slots = xs.slots + slots;
    olds.slots = dys.slots + slots;
    ws.open(w, true, mine, cols);
    const place step((int64_t)gridDim.x * groups, per_outer);
    place here((int64_t)blockIdx.x * groups + group, per_outer), ahead = here;
    auto start = [&](int at) {
        bool there = ahead.row < num_rows;
        xs.start(at, x + (there ? x_rows.at(ahead) : 0), there, mine, cols);
        dys.start(at, dy + (there ? dy_rows.at(ahead) : 0), there, mine, cols);
        olds.start(at, dx + (there ? dx_rows.at(ahead) : 0), there && accumulate, mine, cols);
        close_async_group();
        ahead.advance(step, per_outer);
    };
    for (int i = 0; i < STAGES; i++)
        start(i);
    for (int64_t first = (int64_t)blockIdx.x * groups; first < num_rows;
         first += step.row, here.advance(step, per_outer)) {
        bool present = here.row < num_rows;
        const T *x_row = x + (present ? x_rows.at(here) : 0);
        const T *dy_row = dy + (present ? dy_rows.at(here) : 0);
        T *dx_row = dx + (present ? dx_rows.at(here) : 0);
        if constexpr (STAGES > 0)
            wait_async_groups<STAGES - 1>();
        xs.open(x_row, present, mine, cols);
        dys.open(dy_row, present, mine, cols);
        olds.open(dx_row, present && accumulate, mine, cols);

        /* RMSNorm has its two sums in one round: sum x^2 and sum g x. LayerNorm first sums x and g,
         * then (x - mean)^2 and g (x - mean). */
        float mean = 0.0f, mean_g = 0.0f;
        float2 sums = make_float2(0.0f, 0.0f);
        for (int round = LAYER ? 0 : 1; round < 2; round++) {
            sums = make_float2(0.0f, 0.0f);
            if (present)
                each<N, VPT>(mine, cols, [&](int i, int64_t c) {
                    float xv[N], dyv[N], wv[N];
                    xs.get(xv, i, stage, x_row, c);
                    dys.get(dyv, i, stage, dy_row, c);
                    ws.get(wv, i, 0, w, c);
#pragma unroll
                    for (int k = 0; k < N; k++) {
                        float centred = xv[k] - mean;
                        sums.x += round == 0 ? centred : centred * centred;
                        sums.y += round == 0 ? dyv[k] * wv[k] : dyv[k] * wv[k] * centred;
                    }
                });
            sums = row_sums(sums, width, room, turn);
            if (round == 0) {
                mean = sums.x / (float)cols;
                mean_g = sums.y / (float)cols;
            }
        }
        float rstd = 1.0f / sqrtf(sums.x / (float)cols + eps);
        float mean_gx = sums.y * rstd / (float)cols;
        each<N, VPT>(mine, present ? cols : 0, [&](int i, int64_t c) {
            float xv[N], dyv[N], wv[N], old[N], out[N];
            xs.get(xv, i, stage, x_row, c);
            dys.get(dyv, i, stage, dy_row, c);
            ws.get(wv, i, 0, w, c);
            if (accumulate)
                olds.get(old, i, stage, dx_row, c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float xhat = (xv[k] - mean) * rstd;
                float d = rstd * (dyv[k] * wv[k] - mean_g - xhat * mean_gx);
                out[k] = accumulate ? old[k] + d : d;
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
            store<T, N>(dx_row + c, out);
        });
        if constexpr (STAGES > 0) { /* the slots of this row are free again */
            start(stage);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
    }
    if constexpr (VPT > 0) {
        /* Sum the groups of the block in order; one group needs no room. */
        float *gathered = reinterpret_cast<float *>(shared4);
        wait_async_groups<0>();
        __syncthreads();
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
        return {v.stride[0], v.stride[1]};
    return {v.num_dims == 2 ? v.stride[0] : 0, 0};
}

int64_t rows_per_outer(struct tri_view v)
{
    return v.num_dims == 3 ? v.dim[1] : 1;
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

/* Blocks that a multiprocessor holds, for a grid that fills the card once. */
template <typename K> int resident_blocks(K kernel, int threads, size_t shared)
{
    int blocks = 0;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared) !=
            cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared) !=
            cudaSuccess)
        return 0;
    return blocks;
}

template <typename T, int N, int VPT, int STAGES, bool LAYER>
cudaError_t launch_forward(const forward_call &c, int width)
{
    auto kernel = norm_forward<T, N, VPT, STAGES, LAYER>;
    int threads = width > 32 ? width : 256;
    size_t shared = (size_t)STAGES * VPT * threads * sizeof(pack<T, N>);
    int per_sm = resident_blocks(kernel, threads, shared);
    if (per_sm == 0)
        return cudaErrorInvalidConfiguration;
    unsigned blocks = grid_for(ceil_div(c.num_rows, threads / width), c.l, per_sm);
    kernel<<<blocks, threads, shared, c.l.stream>>>(
        (T *)c.y.data, rows_of(c.y), (const T *)c.x.data, rows_of(c.x), (const T *)c.w.data,
        (const T *)c.b.data, c.num_rows, rows_per_outer(c.x), c.cols, width, c.eps);
    return cudaGetLastError();
}

template <typename T, int N, bool LAYER> cudaError_t choose_forward(const forward_call &c)
{
    /* Single elements cannot be copied asynchronously; two stages of 512 threads are what fits into
     * the 99 KiB of the smaller cards. */
    constexpr int three = N > 1 ? 3 : 0, two = N > 1 ? 2 : 0;
    int64_t vectors = ceil_div(c.cols, N);
    if (vectors <= 256)
        return launch_forward<T, N, 1, three, LAYER>(c, width_for(vectors, 1, 256));
    if (vectors <= 512)
        return launch_forward<T, N, 2, three, LAYER>(c, width_for(vectors, 2, 256));
    if (vectors <= 1024)
        return launch_forward<T, N, 2, two, LAYER>(c, width_for(vectors, 2, 512));
    if (vectors <= 2048)
        return launch_forward<T, N, 4, 0, LAYER>(c, width_for(vectors, 4, 512));
    return launch_forward<T, N, 0, 0, LAYER>(c, 256);
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

template <typename T, int N, int VPT, int STAGES, bool LAYER>
cudaError_t launch_backward(const backward_call &c, int width)
{
    auto kernel = norm_backward<T, N, VPT, STAGES, LAYER>;
    int threads = width > 32 ? width : 256, groups = threads / width;
    bool bias = LAYER && c.db.data != nullptr;
    int64_t room = (int64_t)c.l.scratch_bytes / ((bias ? 8 : 4) * c.cols);
    size_t queued = (size_t)STAGES * (c.accumulate ? 3 : 2) * VPT * threads * sizeof(pack<T, N>);
    size_t gathered = groups > 1 ? (size_t)groups * (size_t)c.cols * sizeof(float) : 0;
    size_t shared = queued > gathered ? queued : gathered;
    int64_t per_sm = resident_blocks(kernel, threads, shared);
    if (room < 1 || per_sm == 0)
        return cudaErrorNotSupported;
    int64_t blocks = grid_for(ceil_div(c.num_rows, groups), c.l, (int)per_sm);
    if (blocks > room)
        blocks = room;
    float *dw = (float *)c.l.scratch, *db = bias ? dw + blocks * c.cols : nullptr;
    kernel<<<(unsigned)blocks, threads, shared, c.l.stream>>>(
        (T *)c.dx.data, rows_of(c.dx), c.accumulate, (const T *)c.dy.data, rows_of(c.dy),
        (const T *)c.x.data, rows_of(c.x), (const T *)c.w.data, dw, db, c.num_rows,
        rows_per_outer(c.x), c.cols, width, c.eps);
    cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess)
        code = launch_finish_columns(c.l, (float *)c.dw.data, dw, (int)blocks, c.cols);
    if (code == cudaSuccess && bias)
        code = launch_finish_columns(c.l, (float *)c.db.data, db, (int)blocks, c.cols);
    return code;
}

template <typename T, int N, bool LAYER> cudaError_t choose_backward(const backward_call &c)
{
    /* Single elements cannot be copied asynchronously; two stages of 512 threads are what fits into
     * the 99 KiB of the smaller cards. */
    constexpr int three = N > 1 ? 3 : 0, two = N > 1 ? 2 : 0;
    int64_t vectors = ceil_div(c.cols, N);
    if (vectors <= 256)
        return launch_backward<T, N, 1, three, LAYER>(c, width_for(vectors, 1, 256));
    if (vectors <= 512)
        return launch_backward<T, N, 2, three, LAYER>(c, width_for(vectors, 2, 256));
    if (vectors <= 1024)
        return launch_backward<T, N, 2, two, LAYER>(c, width_for(vectors, 2, 512));
    if (vectors <= 2048)
        return launch_backward<T, N, 4, 0, LAYER>(c, width_for(vectors, 4, 512));
    return launch_backward<T, N, 0, 0, LAYER>(c, 256);
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
