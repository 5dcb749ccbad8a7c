/* Small kernels around cuDNN's attention: tables of ragged batches, rows that see nothing. */
#ifndef TRI_BACKEND_CUDA_KERNELS_ATTN_GLUE_H
#define TRI_BACKEND_CUDA_KERNELS_ATTN_GLUE_H

#include "backend/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One launch describes so many batch entries: they travel as its arguments (4 KiB at most), so
 * that nothing is copied from the host and nobody waits. */
enum { TRI_KERNEL_ENTRIES = 96, TRI_KERNEL_OFFSETS = 9 };

struct tri_kernel_entry {
    int64_t q_row, k_row; /* where it starts */
    int32_t q_rows, k_rows;
};

/* Entries [first, first + count) of a batch. */
struct tri_kernel_entries {
    int32_t *q_length, *k_length;        /* device, one each for every entry */
    int64_t *offset[TRI_KERNEL_OFFSETS]; /* device, one more than entries; NULL: not needed */
    int64_t stride[TRI_KERNEL_OFFSETS];  /* elements from row to row */
    uint32_t of_keys;                    /* bit i: offset[i] counts key rows, else query rows */
    int32_t first, count;
    bool last; /* also write the end that follows the last entry */
    struct tri_kernel_entry entry[TRI_KERNEL_ENTRIES];
};
cudaError_t tri_kernel_write_entries(struct tri_launch l, const struct tri_kernel_entries *entries);

/* o(T,H,D) bf16 and lse(T,H) f32 over some keys, and `part` over others, become those over all:
 *     lse = log(exp(lse) + exp(part_lse)),  o = o exp(lse_before - lse) + part exp(part_lse - lse)
 * D is a multiple of 8 and rows start on 16-byte borders. */
cudaError_t tri_kernel_join_attention(struct tri_launch l, struct tri_view o, struct tri_view lse,
                                      struct tri_view part, struct tri_view part_lse);

/* lse(T,H) f32 = -infinity */
cudaError_t tri_kernel_fill_lse(struct tri_launch l, struct tri_view lse);

#ifdef __cplusplus
}
#endif

#endif
