#include "backend/cuda/kernels/attn_glue.h"

#include "backend/cuda/kernels/common.cuh"

namespace
{

constexpr int entry_threads = 128;
static_assert(entry_threads > TRI_KERNEL_ENTRIES, "a thread an entry, and one for the end");
static_assert(sizeof(tri_kernel_entries) <= 4096, "kernel arguments");

/* One thread an entry; the last writes where the batch ends. */
__global__ void write_entries(const __grid_constant__ tri_kernel_entries e)
{
    int i = (int)threadIdx.x;
    bool end = i == e.count && e.last;
    if (i >= e.count && !end)
        return;
    const tri_kernel_entry &entry = e.entry[end ? i - 1 : i];
    int64_t q_row = entry.q_row + (end ? entry.q_rows : 0);
    int64_t k_row = entry.k_row + (end ? entry.k_rows : 0);
    if (!end) {
        e.q_length[e.first + i] = entry.q_rows;
        e.k_length[e.first + i] = entry.k_rows;
    }
#pragma unroll
    for (int t = 0; t < TRI_KERNEL_OFFSETS; t++)
        if (e.offset[t] != nullptr)
            e.offset[t][e.first + i] = (e.of_keys >> t & 1 ? k_row : q_row) * e.stride[t];
}

__global__ void fill_lse(float *lse, int64_t rows, int64_t heads, int64_t token, int64_t head)
{
    int64_t count = rows * heads;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        lse[i / heads * token + i % heads * head] = -INFINITY;
}

/* A group of `width` lanes of one warp takes a row of a head, each lane every width-th vector. */
__global__ void __launch_bounds__(256)
    join_attention(bf16 *o, int64_t o_token, int64_t o_head, float *lse, int64_t lse_token,
                   int64_t lse_head, const bf16 *part, int64_t part_token, int64_t part_head,
                   const float *part_lse, int64_t part_lse_token, int64_t part_lse_head,
                   int64_t rows, int64_t heads, int dim, int width)
{
    constexpr int n = vector_bytes / sizeof(bf16);
    int groups = blockDim.x / width, group = threadIdx.x / width, lane = threadIdx.x % width;
    int64_t count = rows * heads;
    int64_t rounds = (count + (int64_t)gridDim.x * groups - 1) / ((int64_t)gridDim.x * groups);
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = (round * gridDim.x + blockIdx.x) * groups + group;
        bool present = i < count;
        int64_t row = present ? i / heads : 0, head = present ? i - row * heads : 0;
        float *l = lse + row * lse_token + head * lse_head;
        float a = present ? *l : 0.0f;
        float b = present ? part_lse[row * part_lse_token + head * part_lse_head] : 0.0f;
        float high = fmaxf(a, b);
        float both = high == -INFINITY ? high : high + log1pf(expf(fminf(a, b) - high));
        float wa = high == -INFINITY ? 0.0f : expf(a - both);
        float wb = high == -INFINITY ? 0.0f : expf(b - both);
        __syncwarp(); /* everybody has read the old lse */
        if (!present)
            continue;
        if (lane == 0)
            *l = both;
        bf16 *to = o + row * o_token + head * o_head;
        const bf16 *from = part + row * part_token + head * part_head;
        for (int c = lane * n; c < dim; c += width * n) {
            float x[n], y[n];
            load<bf16, n>(x, to + c);
            load<bf16, n>(y, from + c);
#pragma unroll
            for (int k = 0; k < n; k++)
                x[k] = x[k] * wa + y[k] * wb;
            store<bf16, n>(to + c, x);
        }
    }
}

} // namespace

cudaError_t tri_kernel_join_attention(struct tri_launch l, struct tri_view o, struct tri_view lse,
                                      struct tri_view part, struct tri_view part_lse)
{
    constexpr int threads = 256, n = vector_bytes / sizeof(bf16);
    int64_t dim = o.dim[2];
    int width = 1;
    while (width < 32 && width * n < dim)
        width *= 2;
    if (o.dim[0] * o.dim[1] == 0)
        return cudaSuccess;
    int64_t blocks = ceil_div(o.dim[0] * o.dim[1], threads / width);
    join_attention<<<grid_for(blocks, l, 8), threads, 0, l.stream>>>(
        (bf16 *)o.data, o.stride[0], o.stride[1], (float *)lse.data, lse.stride[0], lse.stride[1],
        (const bf16 *)part.data, part.stride[0], part.stride[1], (const float *)part_lse.data,
        part_lse.stride[0], part_lse.stride[1], o.dim[0], o.dim[1], (int)dim, width);
    return cudaGetLastError();
}

cudaError_t tri_kernel_write_entries(struct tri_launch l, const struct tri_kernel_entries *entries)
{
    write_entries<<<1, entry_threads, 0, l.stream>>>(*entries);
    return cudaGetLastError();
}

cudaError_t tri_kernel_fill_lse(struct tri_launch l, struct tri_view lse)
{
    constexpr int threads = 256;
    int64_t count = lse.dim[0] * lse.dim[1];
    if (count == 0)
        return cudaSuccess;
    fill_lse<<<grid_for(ceil_div(count, threads), l, 8), threads, 0, l.stream>>>(
        (float *)lse.data, lse.dim[0], lse.dim[1], lse.stride[0], lse.stride[1]);
    return cudaGetLastError();
}
