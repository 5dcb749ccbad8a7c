/* What kernels share: element types as float, 16-byte vectors, sums over threads, launch helpers.
 */
#ifndef TRI_BACKEND_CUDA_KERNELS_COMMON_CUH
#define TRI_BACKEND_CUDA_KERNELS_COMMON_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/cuda/kernels/kernels.h"

namespace
{

using bf16 = __nv_bfloat16;

constexpr int vector_bytes = 16;

/* N elements that are loaded and stored in one access of N * sizeof(T) bytes. */
template <typename T, int N> struct alignas(N * sizeof(T)) pack {
    T v[N];
};

template <typename T> __device__ __forceinline__ float to_float(T x)
{
    return (float)x;
}

template <typename T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* A thread's N elements as float; the compiler makes 16-byte accesses of it. */
template <typename T, int N> __device__ __forceinline__ void load(float (&out)[N], const T *p)
{
    pack<T, N> in = *reinterpret_cast<const pack<T, N> *>(p);
#pragma unroll
    for (int i = 0; i < N; i++)
        out[i] = to_float(in.v[i]);
}

/* N elements as float; the halves of a word of bfloat16 take one instruction each. */
template <typename T, int N>
__device__ __forceinline__ void unpack(float (&out)[N], const pack<T, N> &in)
{
    if constexpr (sizeof(T) == 2 && N % 2 == 0) {
        const unsigned *words = reinterpret_cast<const unsigned *>(&in);
#pragma unroll
        for (int k = 0; k < N; k += 2) {
            out[k] = __uint_as_float(words[k / 2] << 16);
            out[k + 1] = __uint_as_float(words[k / 2] & 0xffff0000u);
        }
    } else {
#pragma unroll
        for (int k = 0; k < N; k++)
            out[k] = to_float(in.v[k]);
    }
}

/* Two floats as the bits of two bfloat16, by the one instruction that rounds both. */
__device__ __forceinline__ unsigned bf16_pair(float low, float high)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<unsigned *>(&pair);
}

/* WORDS words to device memory in accesses as wide as they allow. In assembly, because the compiler
 * splits stores of structs, and even of uint4, into their elements wherever it is not sure that
 * nothing lies between: a third of the speed. */
template <int WORDS>
__device__ __forceinline__ void store_words(void *p, const unsigned (&w)[WORDS])
{
    size_t to = __cvta_generic_to_global(p);
    if constexpr (WORDS % 4 == 0) {
#pragma unroll
        for (int i = 0; i < WORDS; i += 4)
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to + (size_t)i * 4),
                         "r"(w[i]), "r"(w[i + 1]), "r"(w[i + 2]), "r"(w[i + 3])
                         : "memory");
    } else if constexpr (WORDS == 2) {
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(w[0]), "r"(w[1]) : "memory");
    } else {
        static_assert(WORDS == 1, "packs are of 4, 8 or a multiple of 16 bytes");
        *reinterpret_cast<unsigned *>(p) = w[0];
    }
}

/* A thread's N elements to device memory. */
template <typename T, int N> __device__ __forceinline__ void store(T *p, const float (&in)[N])
{
    if constexpr (sizeof(T) == 4) {
        unsigned w[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            w[i] = __float_as_uint(in[i]);
        store_words<N>(p, w);
    } else if constexpr (N > 1) {
        unsigned w[N / 2];
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            w[i] = bf16_pair(in[2 * i], in[2 * i + 1]);
        store_words<N / 2>(p, w);
    } else {
        *p = from_float<T>(in[0]);
    }
}

/* Sum over groups of `width` neighbouring lanes (a power of two up to 32), in a fixed order; every
 * lane gets it. */
template <typename T> __device__ __forceinline__ T group_sum(T x, int width)
{
    for (int step = width / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* Sum over a block whose size is a multiple of 32; `room` holds 32 values and may be reused after
 * the next barrier. Every thread gets the sum. */
template <typename T> __device__ __forceinline__ T block_sum(T x, T *room)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    x = group_sum(x, 32);
    if (warps == 1)
        return x;
    __syncthreads();
    if (lane == 0)
        room[warp] = x;
    __syncthreads();
    x = lane < warps ? room[lane] : T(0);
    return group_sum(x, 32);
}

/* Copies of 16 bytes into shared memory that run while the thread goes on. A thread that reads only
 * what it copied itself needs no barrier: waiting for its own groups is enough. */
__device__ __forceinline__ void copy_async(void *shared, const void *global)
{
    unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}

__device__ __forceinline__ void close_async_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Elements in one access; left to itself the compiler reads bfloat16 one by one. */
template <typename T, int N> __device__ __forceinline__ pack<T, N> load_whole(const pack<T, N> *p)
{
    if constexpr (sizeof(pack<T, N>) == 16) {
        uint4 bits = *reinterpret_cast<const uint4 *>(p);
        return *reinterpret_cast<pack<T, N> *>(&bits);
    } else {
        return *p;
    }
}

/* Until at most LEFT of the thread's groups are under way. */
template <int LEFT> __device__ __forceinline__ void wait_async_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* Blocks for `work` blocks' worth of independent pieces, at most `per_sm` of them on each
 * multiprocessor: kernels loop over the rest. */
inline unsigned grid_for(int64_t work, const struct tri_launch &l, int per_sm)
{
    int64_t most = (int64_t)l.num_sms * per_sm;
    return (unsigned)(work < 1 ? 1 : work < most ? work : most);
}

inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Whether every row of a view starts on a 16-byte border and rows are whole vectors. */
inline bool vectors_fit(struct tri_view v, size_t element_bytes)
{
    uint64_t bits = (uint64_t)(uintptr_t)v.data;
    for (int i = 0; i + 1 < v.num_dims; i++)
        if (v.dim[i] > 1)
            bits |= (uint64_t)v.stride[i] * element_bytes;
    return ((bits | (uint64_t)v.dim[v.num_dims - 1] * element_bytes) & (vector_bytes - 1)) == 0;
}

inline size_t element_bytes(enum tri_dtype dtype)
{
    return dtype == TRI_F32 ? 4 : dtype == TRI_BF16 ? 2 : 0;
}

/* The dtype that ops work in; anything else is refused before a launch. */
inline bool is_act(enum tri_dtype dtype)
{
    return dtype == TRI_F32 || dtype == TRI_BF16;
}

} // namespace

#endif
