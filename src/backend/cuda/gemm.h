/* Matrix products by cuBLASLt, opened at run time; the algorithm of each shape is chosen once. */
#ifndef TRI_BACKEND_CUDA_GEMM_H
#define TRI_BACKEND_CUDA_GEMM_H

#include "backend/cuda/cuda.h"

struct tri_gemm;

/* TRI_UNSUPPORTED when the library is missing; `found` says what was found either way. */
enum tri_status tri_gemm_open(bool tf32, struct tri_cuda_library *found, struct tri_gemm **out);
void tri_gemm_close(struct tri_gemm *gemm);

/* Row-major c(rows,cols) = or += op(a) op(b) + bias(cols). op transposes when trans_a / trans_b:
 * op(a) is (rows,depth), op(b) is (depth,cols). `bias` may be absent.
 * TRI_UNSUPPORTED, with nothing queued, when the library has no kernel for the shape. */
enum tri_status tri_gemm_run(struct tri_gemm *gemm, struct tri_stream *s, bool accumulate,
                             struct tri_view c, struct tri_view a, bool trans_a, struct tri_view b,
                             bool trans_b, struct tri_view bias);

#endif
