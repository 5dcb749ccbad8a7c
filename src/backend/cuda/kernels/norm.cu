/* RMSNorm and LayerNorm over the last dimension, forward and backward.
 *
 * WIDTH threads own a row: some lanes of a warp for short rows (the norms of query and key heads),
 * a block for long ones. Each thread keeps VPT vectors of N elements of the row in registers, so
 * that x is read once. Several vectors a thread, because every row also costs each thread its
 * reductions and addresses; several blocks a multiprocessor, so that memory is busy while one of
 * them reduces. VPT 0 is for rows that do not fit. */
#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/norm.cuh"

namespace
{

template <int WIDTH> constexpr int threads_of = WIDTH > 32 ? WIDTH : 256;
/* Weights stay in registers where they are few, otherwise they come from the first cache. */
template <int VPT> constexpr int kept_weights = VPT <= 4 ? VPT : 0;

template <typename T, int N, int VPT, int WIDTH, int STAGES, bool AHEAD, int BLOCKS, bool LAYER>
__global__ void __launch_bounds__(threads_of<WIDTH>, BLOCKS)
    norm_forward(T *y, rows y_rows, const T *x, rows x_rows, const T *w, const T *b,
                 int64_t num_rows, int64_t per_outer, int cols, float eps)
{
    extern __shared__ float4 shared4[];
    __shared__ float room[2][most_sums][32];
    constexpr int groups = threads_of<WIDTH> / WIDTH;
    const int lane = threadIdx.x % WIDTH, group = threadIdx.x / WIDTH;
    const float per_col = 1.0f / (float)cols;
    int turn = 0, stage = 0;
    values<T, N, VPT, WIDTH, STAGES> xs, nexts;
    values<T, N, kept_weights<VPT>, WIDTH, 0> ws, bs;
    xs.slots = reinterpret_cast<pack<T, N> *>(shared4) + threadIdx.x;
    xs.stage_stride = VPT * (int)blockDim.x;
    ws.open(w, lane, cols);
    bs.open(b, lane, LAYER && b != nullptr ? cols : 0);

    const place step((int64_t)gridDim.x * groups, per_outer);
    place here((int64_t)blockIdx.x * groups + group, per_outer), ahead = here;
    auto start = [&](int at) {
        if constexpr (STAGES > 0) {
            if (ahead.row < num_rows)
                xs.start(at, x + x_rows.at(ahead), lane, cols);
            close_async_group();
            ahead.advance(step, per_outer);
        }
    };
#pragma unroll
    for (int i = 0; i < STAGES; i++)
        start(i);
    if (AHEAD && here.row < num_rows)
        nexts.open(x + x_rows.at(here), lane, cols);
    /* All groups of a block go round equally often: they meet at barriers and in shuffles. */
    for (int64_t first = (int64_t)blockIdx.x * groups; first < num_rows; first += step.row) {
        const bool present = groups == 1 || here.row < num_rows;
        const int count = present ? cols : 0;
        const T *x_row = x + (present && !AHEAD ? x_rows.at(here) : 0);
        T *y_row = y + (present ? y_rows.at(here) : 0);
        here.advance(step, per_outer);
        if constexpr (STAGES > 0)
            wait_async_groups<(STAGES > 0 ? STAGES - 1 : 0)>();
        if constexpr (AHEAD) {
            xs.take(nexts);
            if (here.row < num_rows)
                nexts.open(x + x_rows.at(here), lane, cols);
        } else {
            xs.open(x_row, lane, count);
        }
        ws.stay_packed();
        bs.stay_packed();
        float sums[1] = {};
        each<N, VPT, WIDTH>(lane, count, [&](int i, int c) {
            float xv[N];
            xs.get(xv, i, stage, x_row, c);
#pragma unroll
            for (int k = 0; k < N; k++)
                sums[0] += LAYER ? xv[k] : xv[k] * xv[k];
        });
        row_sums<WIDTH>(sums, room, turn);
        xs.stay_packed();
        float mean = LAYER ? sums[0] * per_col : 0.0f;
        if constexpr (LAYER) {
            sums[0] = 0.0f;
            each<N, VPT, WIDTH>(lane, count, [&](int i, int c) {
                float xv[N];
                xs.get(xv, i, stage, x_row, c);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sums[0] += (xv[k] - mean) * (xv[k] - mean);
            });
            row_sums<WIDTH>(sums, room, turn);
            xs.stay_packed();
        }
        float rstd = rsqrtf(sums[0] * per_col + eps);
        each<N, VPT, WIDTH>(lane, count, [&](int i, int c) {
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
        start(stage); /* the slots of this row are free again */
        stage = stage + 1 >= STAGES ? 0 : stage + 1;
    }
}

/* xhat = (x - mean) rstd, g = dy w:
 *     dx = rstd (g - mean(g) - xhat mean(g xhat))     RMSNorm has no mean(g) term
 *     dw += dy xhat, db += dy
 * dw and db are gathered over the rows of a block, then written to partials[block][cols]. */
template <typename T, int N, int VPT, int WIDTH, int STAGES, bool AHEAD, int BLOCKS, bool LAYER,
          bool ADD>
__global__ void __launch_bounds__(threads_of<WIDTH>, BLOCKS)
    norm_backward(T *dx, rows dx_rows, const T *dy, rows dy_rows, const T *x, rows x_rows,
                  const T *w, float *dw_partials, float *db_partials, int64_t num_rows,
                  int64_t per_outer, int cols, float eps)
{
    extern __shared__ float4 shared4[]; /* the queue; at the end [groups][cols] of short rows */
    __shared__ float room[2][most_sums][32];
    constexpr int groups = threads_of<WIDTH> / WIDTH;
    const int lane = threadIdx.x % WIDTH, group = threadIdx.x / WIDTH;
    const float per_col = 1.0f / (float)cols;
    int turn = 0, stage = 0;
    float *dw_mine = dw_partials + (int64_t)blockIdx.x * cols;
    float *db_mine = db_partials == nullptr ? nullptr : db_partials + (int64_t)blockIdx.x * cols;
    float dw[VPT > 0 ? VPT : 1][N] = {}, db[VPT > 0 && LAYER ? VPT : 1][N] = {};
    if constexpr (VPT == 0) {
        for (int c = threadIdx.x; c < cols; c += blockDim.x) {
            dw_mine[c] = 0;
            if (LAYER && db_mine != nullptr)
                db_mine[c] = 0;
        }
        __syncthreads();
    }
    values<T, N, VPT, WIDTH, STAGES> xs, dys, olds, next_xs, next_dys;
    values<T, N, kept_weights<VPT>, WIDTH, 0> ws;
    constexpr int slots = VPT * threads_of<WIDTH>; /* of one tensor and stage */
    xs.stage_stride = dys.stage_stride = olds.stage_stride = slots * (ADD ? 3 : 2);
    xs.slots = reinterpret_cast<pack<T, N> *>(shared4) + threadIdx.x;
    dys.slots = xs.slots + slots;
    olds.slots = dys.slots + slots;
    ws.open(w, lane, cols);
    const place step((int64_t)gridDim.x * groups, per_outer);
    place here((int64_t)blockIdx.x * groups + group, per_outer), ahead = here;
    auto start = [&](int at) {
        if constexpr (STAGES > 0) {
            if (ahead.row < num_rows) {
                xs.start(at, x + x_rows.at(ahead), lane, cols);
                dys.start(at, dy + dy_rows.at(ahead), lane, cols);
                if constexpr (ADD)
                    olds.start(at, dx + dx_rows.at(ahead), lane, cols);
            }
            close_async_group();
            ahead.advance(step, per_outer);
        }
    };
#pragma unroll
    for (int i = 0; i < STAGES; i++)
        start(i);
    if (AHEAD && here.row < num_rows) {
        next_xs.open(x + x_rows.at(here), lane, cols);
        next_dys.open(dy + dy_rows.at(here), lane, cols);
    }
    for (int64_t first = (int64_t)blockIdx.x * groups; first < num_rows; first += step.row) {
        const bool present = groups == 1 || here.row < num_rows;
        const int count = present ? cols : 0;
        const T *x_row = x + (present && !AHEAD ? x_rows.at(here) : 0);
        const T *dy_row = dy + (present && !AHEAD ? dy_rows.at(here) : 0);
        T *dx_row = dx + (present ? dx_rows.at(here) : 0);
        here.advance(step, per_outer);
        if constexpr (STAGES > 0)
            wait_async_groups<(STAGES > 0 ? STAGES - 1 : 0)>();
        if constexpr (AHEAD) {
            xs.take(next_xs);
            dys.take(next_dys);
            if (here.row < num_rows) {
                next_xs.open(x + x_rows.at(here), lane, cols);
                next_dys.open(dy + dy_rows.at(here), lane, cols);
            }
        } else {
            xs.open(x_row, lane, count);
            dys.open(dy_row, lane, count);
        }
        olds.open(dx_row, lane, ADD ? count : 0);

        float mean = 0.0f;
        ws.stay_packed();
        if constexpr (LAYER) {
            float sum[1] = {};
            each<N, VPT, WIDTH>(lane, count, [&](int i, int c) {
                float xv[N];
                xs.get(xv, i, stage, x_row, c);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[0] += xv[k];
            });
            row_sums<WIDTH>(sum, room, turn);
            mean = sum[0] * per_col;
            xs.stay_packed();
        }
        /* (x - mean)^2, g (x - mean), g */
        float sums[LAYER ? 3 : 2] = {};
        each<N, VPT, WIDTH>(lane, count, [&](int i, int c) {
            float xv[N], dyv[N], wv[N];
            xs.get(xv, i, stage, x_row, c);
            dys.get(dyv, i, stage, dy_row, c);
            ws.get(wv, i, 0, w, c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float centred = xv[k] - mean, g = __fmul_rn(dyv[k], wv[k]);
                sums[0] += centred * centred;
                sums[1] += g * centred;
                if (LAYER)
                    sums[LAYER ? 2 : 0] += g;
            }
        });
        row_sums<WIDTH>(sums, room, turn);
        xs.stay_packed();
        dys.stay_packed();
        ws.stay_packed();
        float rstd = rsqrtf(sums[0] * per_col + eps);
        float mean_gx = sums[1] * rstd * per_col,
              mean_g = LAYER ? sums[LAYER ? 2 : 0] * per_col : 0.0f;
        each<N, VPT, WIDTH>(lane, count, [&](int i, int c) {
            float xv[N], dyv[N], wv[N], out[N];
            xs.get(xv, i, stage, x_row, c);
            dys.get(dyv, i, stage, dy_row, c);
            ws.get(wv, i, 0, w, c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float xhat = (xv[k] - mean) * rstd;
                /* The product is rounded as it was in the sum, or a row of one would not give 0. */
                out[k] = rstd * (__fmul_rn(dyv[k], wv[k]) - mean_g - xhat * mean_gx);
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
            if constexpr (ADD) {
                float old[N];
                olds.get(old, i, stage, dx_row, c);
#pragma unroll
                for (int k = 0; k < N; k++)
                    out[k] += old[k];
            }
            store<T, N>(dx_row + c, out);
        });
        start(stage); /* the slots of this row are free again */
        stage = stage + 1 >= STAGES ? 0 : stage + 1;
    }
    if constexpr (VPT > 0) {
        /* Sum the groups of the block in order; one group needs no room. */
        float *gathered = reinterpret_cast<float *>(shared4);
        wait_async_groups<0>();
        __syncthreads();
        for (int pass = 0; pass < (LAYER && db_mine != nullptr ? 2 : 1); pass++) {
            float *to = pass == 0 ? dw_mine : db_mine;
            each<N, VPT, WIDTH>(lane, cols, [&](int i, int c) {
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
                for (int c = threadIdx.x; c < cols; c += blockDim.x) {
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

struct forward_call {
    struct tri_launch l;
    struct tri_view y, x, w, b;
    float eps;
    int64_t num_rows;
    int cols;
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

template <typename T, int N, int VPT, int WIDTH, int STAGES, bool AHEAD, int BLOCKS, bool LAYER>
cudaError_t launch_forward(const forward_call &c)
{
    auto kernel = norm_forward<T, N, VPT, WIDTH, STAGES, AHEAD, BLOCKS, LAYER>;
    constexpr int threads = threads_of<WIDTH>;
    size_t shared = (size_t)STAGES * VPT * threads * sizeof(pack<T, N>);
    int per_sm = resident_blocks(kernel, threads, shared);
    if (per_sm == 0)
        return cudaErrorInvalidConfiguration;
    unsigned blocks = grid_for(ceil_div(c.num_rows, threads / WIDTH), c.l, per_sm);
    kernel<<<blocks, threads, shared, c.l.stream>>>(
        (T *)c.y.data, rows_of(c.y), (const T *)c.x.data, rows_of(c.x), (const T *)c.w.data,
        (const T *)c.b.data, c.num_rows, rows_per_outer(c.x), c.cols, c.eps);
    return cudaGetLastError();
}

template <typename T, int N, bool LAYER> cudaError_t choose_forward(const forward_call &c)
{
    int64_t vectors = ceil_div(c.cols, N);
    if constexpr (N == 1) { /* rows that are not whole vectors: few kernels, for any width */
        if (vectors <= 128)
            return launch_forward<T, N, 4, 32, 0, false, 1, LAYER>(c);
        if (vectors <= 1024)
            return launch_forward<T, N, 4, 256, 0, false, 1, LAYER>(c);
        return launch_forward<T, N, 0, 256, 0, false, 1, LAYER>(c);
    }
    if (vectors <= 8)
        return launch_forward<T, N, 1, 8, 0, true, 4, LAYER>(c);
    if (vectors <= 16)
        return launch_forward<T, N, 2, 8, 0, true, 4, LAYER>(c);
    if (vectors <= 128)
        return launch_forward<T, N, 4, 32, 0, false, 3, LAYER>(c);
    if (vectors <= 512)
        return launch_forward<T, N, 4, 128, 0, false, 6, LAYER>(c);
    if (vectors <= 1024)
        return launch_forward<T, N, 4, 256, 0, false, 3, LAYER>(c);
    if (vectors <= 2048)
        return launch_forward<T, N, 4, 512, 0, false, 1, LAYER>(c);
    return launch_forward<T, N, 0, 256, 0, false, 1, LAYER>(c);
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
    int64_t num_rows;
    int cols;
};

template <typename T, int N, int VPT, int WIDTH, int STAGES, bool AHEAD, int BLOCKS, bool LAYER>
cudaError_t launch_backward(const backward_call &c)
{
    auto kernel = c.accumulate
                      ? norm_backward<T, N, VPT, WIDTH, STAGES, AHEAD, BLOCKS, LAYER, true>
                      : norm_backward<T, N, VPT, WIDTH, STAGES, AHEAD, BLOCKS, LAYER, false>;
    constexpr int threads = threads_of<WIDTH>, groups = threads / WIDTH;
    bool bias = LAYER && c.db.data != nullptr;
    int64_t room = (int64_t)c.l.scratch_bytes / ((bias ? 8 : 4) * (int64_t)c.cols);
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
        (T *)c.dx.data, rows_of(c.dx), (const T *)c.dy.data, rows_of(c.dy), (const T *)c.x.data,
        rows_of(c.x), (const T *)c.w.data, dw, db, c.num_rows, rows_per_outer(c.x), c.cols, c.eps);
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
    if constexpr (N == 1) { /* rows that are not whole vectors: few kernels, for any width */
        if (vectors <= 128)
            return launch_backward<T, N, 4, 32, 0, false, 1, LAYER>(c);
        if (vectors <= 1024)
            return launch_backward<T, N, 4, 256, 0, false, 1, LAYER>(c);
        return launch_backward<T, N, 0, 256, 0, false, 1, LAYER>(c);
    }
    if (vectors <= 8)
        return launch_backward<T, N, 1, 8, 0, true, 3, LAYER>(c);
    if (vectors <= 16)
        return launch_backward<T, N, 2, 8, 0, true, 2, LAYER>(c);
    if (vectors <= 128)
        return launch_backward<T, N, 4, 32, 0, false, 1, LAYER>(c);
    if (vectors <= 512)
        return launch_backward < T, N, 4, 128, LAYER ? 2 : 1, false, LAYER ? 4 : 5, LAYER > (c);
    if (vectors <= 1024)
        return launch_backward<T, N, 4, 256, 2, false, 2, LAYER>(c);
    if (vectors <= 2048)
        return launch_backward<T, N, 4, 512, 0, false, 1, LAYER>(c);
    return launch_backward<T, N, 0, 256, 0, false, 1, LAYER>(c);
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
    if (!is_act(x.dtype) || x.dim[x.num_dims - 1] > 1 << 28 || y.dtype != x.dtype ||
        w.dtype != x.dtype || (b.data != nullptr && b.dtype != x.dtype))
        return cudaErrorNotSupported;
    forward_call c = {l, y, x, w, b, (float)eps, count_rows(x), (int)x.dim[x.num_dims - 1]};
    if (c.num_rows == 0)
        return cudaSuccess;
    return x.dtype == TRI_F32 ? forward<float>(c, layer) : forward<bf16>(c, layer);
}

cudaError_t tri_kernel_norm_backward(struct tri_launch l, bool layer, double eps, bool accumulate,
                                     struct tri_view dx, struct tri_view dw, struct tri_view db,
                                     struct tri_view dy, struct tri_view x, struct tri_view w)
{
    if (!is_act(x.dtype) || x.dim[x.num_dims - 1] > 1 << 28 || dx.dtype != x.dtype ||
        dy.dtype != x.dtype || w.dtype != x.dtype || dw.dtype != TRI_F32 ||
        (db.data != nullptr && db.dtype != TRI_F32))
        return cudaErrorNotSupported;
    backward_call c = {
        l, dx, dw, db, dy, x, w, accumulate, (float)eps, count_rows(x), (int)x.dim[x.num_dims - 1]};
    if (c.num_rows == 0)
        return cudaSuccess;
    return x.dtype == TRI_F32 ? backward<float>(c, layer) : backward<bf16>(c, layer);
}
