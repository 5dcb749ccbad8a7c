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

} // namespace

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
