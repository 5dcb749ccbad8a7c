/* Cross-entropy on a tile of logits: loss, and the gradient in place of the logits.
 *
 * A block takes a row. The first pass reads it (maximum and sum of exponentials together); the
 * second, which writes the gradient, finds most of it in L2: with one row a multiprocessor the rows
 * in work are smaller than L2 for bfloat16 vocabularies up to about 150 thousand. Where blocks form
 * clusters, their shared memory holds the row instead (loss_cluster.cuh). */
#include "backend/cuda/kernels/loss_cluster.cuh"

namespace
{

/* Forward passes hide a row's start and end behind the other blocks of a multiprocessor; the
 * gradient wants few rows in work. */
/* partials[block] = sum of the losses of the block's rows, in order. */
template <typename T, int N, bool BACKWARD, int THREADS, int UNROLL, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    cross_entropy(T *logits, int64_t stride, const int32_t *labels, int64_t rows, int vocab,
                  float scale, double *partials)
{
    constexpr int step = THREADS * N;
    __shared__ softmax room[2][32]; /* the halves take turns */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, begin = (int)threadIdx.x * N;
    int turn = 0;
    double loss = 0;
    int32_t next_label = labels[blockIdx.x];
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        T *row = logits + r * stride;
        int32_t label = next_label;
        if (r + gridDim.x < rows)
            next_label = labels[r + gridDim.x];
        if (label < 0) {
            if (BACKWARD)
                for (int c = begin; c < vocab; c += step)
                    write_zeros<T, N>(row, c);
            continue;
        }
        float picked = to_float(row[label]);
        softmax s = {-INFINITY, 0.0f};
        int c = begin;
        for (; c + (UNROLL - 1) * step < vocab; c += UNROLL * step) {
            pack<T, N> in[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                in[u] = load_whole(reinterpret_cast<const pack<T, N> *>(row + c + u * step));
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                add_piece<T, N>(s, in[u]);
        }
        for (; c < vocab; c += step)
            add_piece<T, N>(s, load_whole(reinterpret_cast<const pack<T, N> *>(row + c)));
        s = lanes_join(s, 32);
        if (lane == 0)
            room[turn][warp] = s;
        __syncthreads(); /* nor is the label's logit overwritten before it is read */
        s = lane < THREADS / 32 ? room[turn][lane] : softmax{-INFINITY, 0.0f};
        s = lanes_join(s, 32);
        turn ^= 1;
        loss += ((double)s.max + log2((double)s.sum)) * ln2 - (double)picked;
        if (!BACKWARD)
            continue;
        float factor = scale / s.sum;
#pragma unroll UNROLL
        for (c = begin; c < vocab; c += step) {
            pack<T, N> in = load_whole(reinterpret_cast<const pack<T, N> *>(row + c));
            write_gradient<T, N>(row, c, in, s.max, factor, scale, label);
        }
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = loss;
}

/* A block adds the few partial sums, always in the same order. */
__global__ void __launch_bounds__(256) add_partials(double *sum, const double *partials, int count)
{
    __shared__ double room[32];
    double total = 0;
    for (int i = threadIdx.x; i < count; i += 256)
        total += partials[i];
    total = block_sum(total, room);
    if (threadIdx.x == 0)
        *sum += total;
}

struct loss_call {
    struct tri_launch l;
    bool backward;
    float scale;
    struct tri_view logits;
    const int32_t *labels;
};

template <typename T, int N, bool BACKWARD, int THREADS, int UNROLL, int BLOCKS>
unsigned launch_alone(const loss_call &c)
{
    unsigned blocks = grid_for(c.logits.dim[0], c.l, BLOCKS);
    cross_entropy<T, N, BACKWARD, THREADS, UNROLL, BLOCKS><<<blocks, THREADS, 0, c.l.stream>>>(
        (T *)c.logits.data, c.logits.stride[0], c.labels, c.logits.dim[0], (int)c.logits.dim[1],
        c.scale, (double *)c.l.scratch);
    return blocks;
}

/* Blocks launched, or 0 where the card has no clusters, too little shared memory, or the row is
 * too long. */
template <typename T, int N, int THREADS, int PIECES, int SLOTS>
unsigned launch_cluster(const loss_call &c, int64_t size)
{
    auto kernel = cross_entropy_cluster<T, N, THREADS, PIECES, SLOTS>;
    const size_t shared = (size_t)SLOTS * THREADS * sizeof(pack<T, N>);
    int device = 0, clusters = 0, most = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
            cudaSuccess)
        return 0;
    int64_t vectors = ceil_div(c.logits.dim[1], N);
    while (size * PIECES * THREADS < vectors)
        size *= 2;
    if (!clusters || (size_t)most < shared + 2048 || size > most_cluster)
        return 0;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = (unsigned)size;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)size);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = c.l.stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int resident = 0;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared) !=
            cudaSuccess ||
        cudaOccupancyMaxActiveClusters(&resident, kernel, &config) != cudaSuccess || resident < 1)
        return 0;
    int64_t rows = c.logits.dim[0];
    config.gridDim.x = (unsigned)(size * (rows < resident ? rows : resident));
    if (cudaLaunchKernelEx(&config, kernel, (T *)c.logits.data, c.logits.stride[0], c.labels, rows,
                           (int)c.logits.dim[1], (int)size, c.scale,
                           (double *)c.l.scratch) != cudaSuccess)
        return 0;
    return config.gridDim.x;
}

template <typename T> cudaError_t run(const loss_call &c, double *loss_sum)
{
    constexpr int n = vector_bytes / sizeof(T);
    bool vectors = vectors_fit(c.logits, sizeof(T));
    unsigned blocks = 0;
    if (c.backward) {
        if (vectors)
            blocks = launch_cluster<T, n, 1024, 8, 14>(c, 1);
        if (blocks == 0)
            blocks = vectors ? launch_alone<T, n, true, 1024, 4, 1>(c)
                             : launch_alone<T, 1, true, 1024, 4, 1>(c);
    } else {
        blocks = vectors ? launch_alone<T, n, false, 512, 4, 3>(c)
                         : launch_alone<T, 1, false, 512, 4, 3>(c);
    }
    cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess)
        return code;
    add_partials<<<1, 256, 0, c.l.stream>>>(loss_sum, (const double *)c.l.scratch, (int)blocks);
    return cudaGetLastError();
}

} // namespace

cudaError_t tri_kernel_cross_entropy(struct tri_launch l, bool backward, double scale,
                                     double *loss_sum, struct tri_view logits,
                                     const int32_t *labels)
{
    if (!is_act(logits.dtype) || logits.dim[1] > 1 << 30)
        return cudaErrorNotSupported;
    if (logits.dim[0] == 0)
        return cudaSuccess;
    loss_call c = {l, backward, (float)scale, logits, labels};
    return logits.dtype == TRI_F32 ? run<float>(c, loss_sum) : run<bf16>(c, loss_sum);
}
