/* RMSNorm and LayerNorm over the last dimension: which kernel of norm_kernels.cuh a call takes.
 *
 * Several vectors a thread, because every row also costs each thread its reductions and addresses;
 * several blocks a multiprocessor, so that memory is busy while one of them reduces. */
#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/norm_kernels.cuh"

namespace
{

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
