/* How threads share the rows of a norm: which row, which columns, sums over a row, and its values.
 */
#ifndef TRI_BACKEND_CUDA_KERNELS_NORM_CUH
#define TRI_BACKEND_CUDA_KERNELS_NORM_CUH

#include "backend/cuda/kernels/common.cuh"

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

/* Calls f(vector number, column) for each vector inside the row of the `lane`-th of WIDTH threads:
 * vectors lane, lane + WIDTH, ... of N elements; VPT of them at most, or (0) as many as there are.
 */
template <int N, int VPT, int WIDTH, typename F>
__device__ __forceinline__ void each(int lane, int cols, F f)
{
    if constexpr (VPT > 0) {
#pragma unroll
        for (int i = 0; i < VPT; i++)
            if ((i * WIDTH + lane) * N < cols)
                f(i, (i * WIDTH + lane) * N);
    } else {
        for (int c = lane * N; c < cols; c += WIDTH * N)
            f(0, c);
    }
}

constexpr int most_sums = 3;

/* Sums of COUNT values over the WIDTH threads of a row, with one barrier for a block: `room` has
 * two halves that take turns, so a half is written again only when everybody has read it. */
template <int WIDTH, int COUNT>
__device__ __forceinline__ void row_sums(float (&x)[COUNT], float (*room)[most_sums][32], int &turn)
{
    constexpr int warps = WIDTH / 32;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        x[i] = group_sum(x[i], WIDTH < 32 ? WIDTH : 32);
    if constexpr (warps > 1) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (lane == 0)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                room[turn][i][warp] = x[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            x[i] = group_sum(room[turn][i][lane % warps], warps);
        turn ^= 1;
    }
}

/* From device memory, past the first cache where the access is 16 bytes: nobody asks again. */
template <typename T, int N> __device__ __forceinline__ pack<T, N> load_once(const T *p)
{
    if constexpr (sizeof(pack<T, N>) == 16) {
        uint4 bits = __ldcs(reinterpret_cast<const uint4 *>(p));
        return *reinterpret_cast<pack<T, N> *>(&bits);
    } else {
        return *reinterpret_cast<const pack<T, N> *>(p);
    }
}

/* The thread's values of the present row of a tensor. With STAGES, they and those of the next rows
 * lie in shared memory, where each thread has slots of its own: loads stay in flight through the
 * reductions of the present row. Without, they are in registers, or (VPT 0) are read from the row
 * whenever they are asked for. */
template <typename T, int N, int VPT, int WIDTH, int STAGES> struct values {
    pack<T, N> *slots; /* of the tensor; slot i of stage s at [s * stage_stride + i * blockDim.x] */
    int stage_stride;
    pack<T, N> v[VPT > 0 && STAGES == 0 ? VPT : 1];

    /* Send for a row. */
    __device__ __forceinline__ void start(int stage, const T *row, int lane, int cols)
    {
        if constexpr (STAGES > 0)
            each<N, VPT, WIDTH>(lane, cols, [&](int i, int c) {
                copy_async(slots + (stage * stage_stride + i * (int)blockDim.x), row + c);
            });
    }
    /* Make a row the present one. */
    __device__ __forceinline__ void open(const T *row, int lane, int cols)
    {
        if constexpr (VPT > 0 && STAGES == 0)
            each<N, VPT, WIDTH>(lane, cols, [&](int i, int c) { v[i] = load_once<T, N>(row + c); });
    }
    /* The values of another row, loaded ahead. By words: element by element the compiler would take
     * them apart and put them together again. */
    __device__ __forceinline__ void take(const values &other)
    {
        if constexpr (sizeof(pack<T, N>) % 4 == 0) {
#pragma unroll
            for (int i = 0; i < VPT; i++)
#pragma unroll
                for (int k = 0; k < (int)sizeof(pack<T, N>) / 4; k++)
                    reinterpret_cast<unsigned *>(&v[i])[k] =
                        reinterpret_cast<const unsigned *>(&other.v[i])[k];
        } else {
            *this = other;
        }
    }
    /* Make the compiler take the registers' contents for new: otherwise it keeps the values as
     * float from one pass over the row to the next, in twice the registers, and spills. */
    __device__ __forceinline__ void stay_packed()
    {
        if constexpr (VPT > 0 && STAGES == 0 && sizeof(pack<T, N>) == 16 && sizeof(T) == 2)
#pragma unroll
            for (int i = 0; i < VPT; i++) {
                unsigned *words = reinterpret_cast<unsigned *>(&v[i]);
                asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));
            }
    }
    __device__ __forceinline__ void get(float (&out)[N], int i, int stage, const T *row, int c)
    {
        if constexpr (STAGES > 0)
            unpack<T, N>(out, load_whole(slots + (stage * stage_stride + i * (int)blockDim.x)));
        else if constexpr (VPT > 0)
            unpack<T, N>(out, v[i]);
        else
            unpack<T, N>(out, *reinterpret_cast<const pack<T, N> *>(row + c));
    }
};

} // namespace

#endif
