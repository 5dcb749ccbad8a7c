/* The kernels' launchers: C linkage between the C11 host side and the .cu files.
 *
 * Each queues one or a few kernels and returns cudaSuccess or the launch's error. Views are as in
 * the ops table; cudaErrorNotSupported means a dtype or size that the ops table does not promise.
 * Offsets are 64 bits wide everywhere. Vector paths need 16-byte aligned rows and are chosen here;
 * others take a scalar path with the same results. */
#ifndef TRI_BACKEND_CUDA_KERNELS_H
#define TRI_BACKEND_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensor/view.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tri_launch {
    cudaStream_t stream;
    int num_sms;
    void *scratch; /* device memory for the inside of this call */
    size_t scratch_bytes;
};

/* move.cu */
cudaError_t tri_kernel_copy(struct tri_launch l, bool add, struct tri_view dst,
                            struct tri_view src);
cudaError_t tri_kernel_zero(struct tri_launch l, struct tri_view dst);

/* rows.cu: rows of bytes, on num_sms multiprocessors. Without 16-byte alignment of everything:
 * cudaErrorNotSupported. */
cudaError_t tri_kernel_copy_rows(struct tri_launch l, void *to, size_t to_stride, const void *from,
                                 size_t from_stride, int64_t rows, size_t row_bytes);

/* embed.cu */
cudaError_t tri_kernel_embed_forward(struct tri_launch l, struct tri_view y, const int32_t *ids,
                                     struct tri_view table);
cudaError_t tri_kernel_embed_backward(struct tri_launch l, struct tri_view dtable,
                                      const int32_t *ids, struct tri_view dy);

/* norm.cu: `layer` is LayerNorm, otherwise RMSNorm. */
cudaError_t tri_kernel_norm_forward(struct tri_launch l, bool layer, double eps, struct tri_view y,
                                    struct tri_view x, struct tri_view w, struct tri_view b);
cudaError_t tri_kernel_norm_backward(struct tri_launch l, bool layer, double eps, bool accumulate,
                                     struct tri_view dx, struct tri_view dw, struct tri_view db,
                                     struct tri_view dy, struct tri_view x, struct tri_view w);

/* rope.cu: inv_freq in host memory, at most TRI_KERNEL_MAX_FREQUENCIES. */
enum { TRI_KERNEL_MAX_FREQUENCIES = 256 };
cudaError_t tri_kernel_rope_table(struct tri_launch l, struct tri_view table, const int64_t *pos,
                                  const double *inv_freq, double scale);
cudaError_t tri_kernel_rope(struct tri_launch l, bool inverse, struct tri_view y, struct tri_view x,
                            struct tri_view table);

/* act.cu: `act` is an enum tri_activation. */
cudaError_t tri_kernel_act_forward(struct tri_launch l, int act, struct tri_view y,
                                   struct tri_view gate, struct tri_view up);
cudaError_t tri_kernel_act_backward(struct tri_launch l, int act, struct tri_view dgate,
                                    struct tri_view dup, struct tri_view dy, struct tri_view gate,
                                    struct tri_view up);

/* loss.cu */
cudaError_t tri_kernel_cross_entropy(struct tri_launch l, bool backward, double scale,
                                     double *loss_sum, struct tri_view logits,
                                     const int32_t *labels);

/* update.cu: rest = 1 - beta, correction1 = 1 / (1 - beta1^step), correction2 = 1 / sqrt(1 -
 * beta2^step), formed in float64: 1 - 0.999 in float32 would be off by 1e-5. */
struct tri_adamw_step {
    float lr, beta1, beta2, rest1, rest2, eps, decay, correction1, correction2, grad_scale;
};
cudaError_t tri_kernel_adamw(struct tri_launch l, struct tri_adamw_step op, struct tri_view p,
                             struct tri_view m, struct tri_view v, struct tri_view w,
                             struct tri_view g);
cudaError_t tri_kernel_sum_squares(struct tri_launch l, double *sum, struct tri_view x);

/* product.cu: c(rows,cols) = or += op(a) op(b) + bias, as tri_gemm_run; any shape, slow. */
cudaError_t tri_kernel_product(struct tri_launch l, bool accumulate, struct tri_view c,
                               struct tri_view a, bool trans_a, struct tri_view b, bool trans_b,
                               struct tri_view bias);
/* out(N) f32 += column sums of x(T,N), in a fixed order. */
cudaError_t tri_kernel_column_sums(struct tri_launch l, struct tri_view out, struct tri_view x);

/* attention_forward.cu, attention_backward.cu. `doc_begin` (num_docs + 1) is in device memory,
 * `delta` Tq*Hq floats of workspace. */
struct tri_kernel_attn {
    float scale;
    int64_t q_begin, k_begin, window;
    const int64_t *doc_begin;
    int64_t num_docs;
};
cudaError_t tri_kernel_attn_forward(struct tri_launch l, struct tri_kernel_attn op,
                                    struct tri_view o, struct tri_view lse, struct tri_view q,
                                    struct tri_view k, struct tri_view v);
cudaError_t tri_kernel_attn_backward(struct tri_launch l, struct tri_kernel_attn op,
                                     bool accumulate_dq, struct tri_view dq, struct tri_view dk,
                                     struct tri_view dv, struct tri_view dout, struct tri_view q,
                                     struct tri_view k, struct tri_view v, struct tri_view o,
                                     struct tri_view lse, float *delta);

#ifdef __cplusplus
}
#endif

#endif
