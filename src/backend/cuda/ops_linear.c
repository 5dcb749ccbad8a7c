/* Linear layers: three products, each by cuBLASLt where it has a kernel, by our plain one where
 * not. */
#include "backend/cuda/context.h"

static enum tri_status product(struct tri_stream *s, bool accumulate, struct tri_view c,
                               struct tri_view a, bool trans_a, struct tri_view b, bool trans_b,
                               struct tri_view bias)
{
    int64_t depth = trans_a ? a.dim[0] : a.dim[1];
    if (c.dim[0] == 0 || c.dim[1] == 0)
        return TRI_OK;
    if (s->cuda->gemm != NULL && depth > 0) {
        enum tri_status st =
            tri_gemm_run(s->cuda->gemm, s, accumulate, c, a, trans_a, b, trans_b, bias);
        if (st != TRI_UNSUPPORTED)
            return st;
        tri_error_clear();
    }
    return tri_cuda_check(
        tri_kernel_product(tri_cuda_launch(s), accumulate, c, a, trans_a, b, trans_b, bias),
        "run a matrix product");
}

/* y(T,N) = x(T,K) w(N,K)^T + b(N) */
static enum tri_status cuda_linear_forward(struct tri_stream *s, bool accumulate, struct tri_view y,
                                           struct tri_view x, struct tri_view w, struct tri_view b)
{
    return product(s, accumulate, y, x, false, w, true, b);
}

/* dx(T,K) = dy(T,N) w(N,K) */
static enum tri_status cuda_linear_backward_x(struct tri_stream *s, bool accumulate,
                                              struct tri_view dx, struct tri_view dy,
                                              struct tri_view w)
{
    return product(s, accumulate, dx, dy, false, w, false, tri_view_none());
}

/* dw(N,K) += dy(T,N)^T x(T,K), db(N) += column sums of dy */
static enum tri_status cuda_linear_backward_w(struct tri_stream *s, struct tri_view dw,
                                              struct tri_view db, struct tri_view dy,
                                              struct tri_view x)
{
    if (dy.dim[0] == 0)
        return TRI_OK;
    TRI_TRY(product(s, true, dw, dy, true, x, false, tri_view_none()));
    if (!tri_view_present(db))
        return TRI_OK;
    return tri_cuda_check(tri_kernel_column_sums(tri_cuda_launch(s), db, dy),
                          "sum the gradient of a bias");
}

void tri_cuda_linear_ops(struct tri_ops *ops)
{
    ops->linear_forward = cuda_linear_forward;
    ops->linear_backward_x = cuda_linear_backward_x;
    ops->linear_backward_w = cuda_linear_backward_w;
}
