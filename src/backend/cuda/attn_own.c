/* Attention by our own kernels: the oracle of cuDNN's, and what runs without it. */
#include "backend/cuda/context.h"

static size_t own_workspace(struct tri_stream *s, const struct tri_attn *op, bool backward,
                            struct tri_view q, struct tri_view k)
{
    (void)s;
    (void)op;
    (void)k;
    /* delta, the row sums of dO O: one float a query and head. */
    return backward ? (size_t)(q.dim[0] * q.dim[1]) * sizeof(float) : 0;
}

static enum tri_status describe(struct tri_stream *s, const struct tri_attn *op, struct tri_view q,
                                struct tri_view k, struct tri_kernel_attn *out)
{
    if (q.dim[2] > 256)
        return tri_fail(TRI_UNSUPPORTED, "head size %lld: attention on CUDA takes at most 256",
                        (long long)q.dim[2]);
    if (k.dim[1] < 1 || q.dim[1] % k.dim[1] != 0)
        return tri_fail(TRI_INVALID, "%lld query heads are no multiple of %lld key heads",
                        (long long)q.dim[1], (long long)k.dim[1]);
    *out = (struct tri_kernel_attn){.scale = (float)op->scale,
                                    .q_begin = op->q_begin,
                                    .k_begin = op->k_begin,
                                    .window = op->window,
                                    .num_docs = op->num_docs};
    return tri_documents_get(s, op, &out->doc_begin);
}

static enum tri_status own_forward(struct tri_stream *s, const struct tri_attn *op,
                                   struct tri_view o, struct tri_view lse, struct tri_view q,
                                   struct tri_view k, struct tri_view v, void *workspace)
{
    (void)workspace;
    struct tri_kernel_attn call;
    TRI_TRY(describe(s, op, q, k, &call));
    return tri_cuda_check(tri_kernel_attn_forward(tri_cuda_launch(s), call, o, lse, q, k, v),
                          "run attention forward");
}

static enum tri_status own_backward(struct tri_stream *s, const struct tri_attn *op,
                                    bool accumulate_dq, struct tri_view dq, struct tri_view dk,
                                    struct tri_view dv, struct tri_view dout, struct tri_view q,
                                    struct tri_view k, struct tri_view v, struct tri_view o,
                                    struct tri_view lse, void *workspace)
{
    struct tri_kernel_attn call;
    TRI_TRY(describe(s, op, q, k, &call));
    return tri_cuda_check(tri_kernel_attn_backward(tri_cuda_launch(s), call, accumulate_dq, dq, dk,
                                                   dv, dout, q, k, v, o, lse, workspace),
                          "run attention backward");
}

const struct tri_attn_engine tri_own_attn = {
    .workspace = own_workspace, .forward = own_forward, .backward = own_backward};
