/* The two kernels of RMSNorm and LayerNorm over the last dimension, forward and backward.
 *
 * WIDTH threads own a row: some lanes of a warp for short rows (the norms of query and key heads),
 * a block for long ones. Each thread keeps VPT vectors of N elements of the row in registers, so
 * that x is read once. VPT 0 is for rows that do not fit. With STAGES, the next rows wait in shared
 * memory; with AHEAD, the next one waits in registers. BLOCKS is how many blocks a multiprocessor
 * must be able to hold, LAYER tells LayerNorm from RMSNorm. */
#ifndef TRI_BACKEND_CUDA_KERNELS_NORM_KERNELS_CUH
#define TRI_BACKEND_CUDA_KERNELS_NORM_KERNELS_CUH

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

} // namespace

#endif
