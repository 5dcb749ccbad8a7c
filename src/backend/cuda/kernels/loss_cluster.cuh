/* Cross-entropy with gradient, for cards whose blocks form clusters (Hopper and later).
 *
 * The gradient needs a row of logits twice, and a row (250 to 500 KB) is more than the shared
 * memory of a multiprocessor: a cluster of blocks holds it in theirs, so that it is read once from
 * device memory. A row is cut into pieces of 16 bytes a thread; block b of the cluster has pieces
 * b, b + blocks, ... A thread reads only the slots that it filled itself, so copies need no
 * barrier; one cluster barrier a row joins the sums. The ring of slots is longer than a row: the
 * next row is on its way while this one is summed, and takes each slot as soon as its gradient is
 * written. */
#ifndef TRI_BACKEND_CUDA_KERNELS_LOSS_CLUSTER_CUH
#define TRI_BACKEND_CUDA_KERNELS_LOSS_CLUSTER_CUH

#include "backend/cuda/kernels/loss.cuh"

namespace
{

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned cluster_rank()
{
    unsigned r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* *here = value in the shared memory of another block of the cluster. */
__device__ __forceinline__ void store_in_block(softmax *here, unsigned block, softmax value)
{
    unsigned to = (unsigned)__cvta_generic_to_shared(here);
    asm volatile("{\n\t"
                 ".reg .b32 there;\n\t"
                 "mapa.shared::cluster.u32 there, %0, %1;\n\t"
                 "st.shared::cluster.v2.f32 [there], {%2, %3};\n\t"
                 "}" ::"r"(to),
                 "r"(block), "f"(value.max), "f"(value.sum)
                 : "memory");
}
#endif

/* f(index<I>) for every I in [I, COUNT): loops whose index must be a constant. */
template <int I> struct index {
    static constexpr int value = I;
};
template <int I, int COUNT, typename F> __device__ __forceinline__ void unrolled(F f)
{
    if constexpr (I < COUNT) {
        f(index<I>());
        unrolled<I + 1, COUNT>(f);
    }
}

constexpr int most_cluster = 8; /* the size that every card with clusters has */

/* A row takes at most PIECES slots of a block. `most_cluster` blocks at most in a cluster. */
template <typename T, int N, int THREADS, int PIECES, int SLOTS>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_cluster(T *logits, int64_t stride, const int32_t *labels, int64_t rows, int vocab,
                          int blocks, float scale, double *partials)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ float4 shared4[];
    __shared__ softmax room[32];
    __shared__ softmax shares[2][most_cluster]; /* of the blocks; the halves take turns */
    __shared__ double losses[32];
    constexpr int ahead = SLOTS - PIECES; /* pieces of the next row that are on their way */
    static_assert(ahead > 0 && ahead <= PIECES, "the queue ends in the next row");
    pack<T, N> *slots = reinterpret_cast<pack<T, N> *>(shared4) + threadIdx.x;
    const int rank = (int)cluster_rank(), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t step = gridDim.x / (unsigned)blocks;
    const int begin = (rank * THREADS + (int)threadIdx.x) * N, piece_step = blocks * THREADS * N;
    auto row_at = [&](int64_t r) { return r < rows ? logits + r * stride : nullptr; };
    auto fetch = [&](const T *row, int piece, int slot) {
        int c = begin + piece * piece_step;
        if (row != nullptr && c < vocab)
            copy_async(slots + slot * THREADS, row + c);
        close_async_group(); /* an empty one too, for the count */
    };

    double loss = 0;
    int turn = 0, first_slot = 0;
    int64_t trained = next_trained(labels, blockIdx.x / (unsigned)blocks, step, rows);
    int64_t next = next_trained(labels, trained + step, step, rows);
#pragma unroll
    for (int i = 0; i < SLOTS; i++)
        fetch(row_at(i < PIECES ? trained : next), i % PIECES, i);
    cluster_barrier(); /* the others' shared memory exists */

    for (int64_t r = blockIdx.x / (unsigned)blocks; r < rows; r += step) {
        T *row = logits + r * stride;
        if (r != trained) { /* no label: all rows before `trained` */
            for (int c = begin; c < vocab; c += piece_step)
                write_zeros<T, N>(row, c);
            continue;
        }
        int64_t after = next_trained(labels, next + step, step, rows);
        const T *next_row = row_at(next), *row_after = row_at(after);
        int32_t label = labels[r];
        softmax s = {-INFINITY, 0.0f};
        unrolled<0, PIECES>([&](auto index) {
            constexpr int piece = decltype(index)::value;
            int slot = first_slot + piece;
            slot -= slot >= SLOTS ? SLOTS : 0;
            wait_async_groups<SLOTS - 1 - piece>();
            if (begin + piece * piece_step < vocab)
                add_piece<T, N>(s, load_whole(slots + slot * THREADS));
        });
        s = lanes_join(s, 32);
        if (lane == 0)
            room[warp] = s;
        __syncthreads();
        if (warp == 0) {
            s = lane < THREADS / 32 ? room[lane] : softmax{-INFINITY, 0.0f};
            s = lanes_join(s, 32);
            if (lane < blocks)
                store_in_block(&shares[turn][rank], (unsigned)lane, s);
        }
        cluster_barrier();
        s = shares[turn][0];
        for (int b = 1; b < blocks; b++)
            s = join(s, shares[turn][b]);
        turn ^= 1;
        if (rank == 0 && threadIdx.x == 0)
            loss += ((double)s.max + log2((double)s.sum)) * ln2;
        float factor = scale / s.sum, picked = 0.0f;
#pragma unroll
        for (int piece = 0; piece < PIECES; piece++) {
            int slot = first_slot + piece, c = begin + piece * piece_step;
            slot -= slot >= SLOTS ? SLOTS : 0;
            if (c < vocab)
                picked += write_gradient<T, N>(row, c, load_whole(slots + slot * THREADS), s.max,
                                               factor, scale, label);
            fetch(piece + ahead < PIECES ? next_row : row_after, (piece + ahead) % PIECES, slot);
        }
        loss -= (double)picked;
        first_slot += PIECES;
        first_slot -= first_slot >= SLOTS ? SLOTS : 0;
        trained = next;
        next = after;
    }
    loss = block_sum(loss, losses);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = loss;
#endif
}

} // namespace

#endif
