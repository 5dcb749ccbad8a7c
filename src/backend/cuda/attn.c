/* Which attention runs: cuDNN's where it is there and takes the call, our own otherwise. */
#include "backend/cuda/attn.h"

#include "backend/cuda/context.h"
#include "base/log.h"
#include "base/minmax.h"

/* Whether our own kernel may stand in where cuDNN refused a call. It says why, once; whoever asked
 * for another dtype than `auto` chooses did so knowingly and is not warned. */
static bool may_fall_back(struct tri_stream *s, enum tri_dtype dtype)
{
    if (s->cuda->config.attention == TRI_CUDA_ATTENTION_CUDNN)
        return false;
    if (!s->cuda->told_fallback)
        tri_log(dtype == TRI_BF16 ? TRI_LOG_WARN : TRI_LOG_INFO,
                "attention runs on our own kernel, many times slower: %s", tri_error_text());
    s->cuda->told_fallback = true;
    tri_error_clear();
    return true;
}

static size_t cuda_attn_workspace(struct tri_stream *s, const struct tri_attn *op, bool backward,
                                  struct tri_view q, struct tri_view k)
{
    size_t own = tri_own_attn.workspace(s, op, backward, q, k);
    if (s->cuda->cudnn.workspace == NULL)
        return own;
    return tri_max_size(own, s->cuda->cudnn.workspace(s, op, backward, q, k));
}

static enum tri_status cuda_attn_forward(struct tri_stream *s, const struct tri_attn *op,
                                         struct tri_view o, struct tri_view lse, struct tri_view q,
                                         struct tri_view k, struct tri_view v, void *workspace)
{
    if (s->cuda->cudnn.forward != NULL) {
        enum tri_status st = s->cuda->cudnn.forward(s, op, o, lse, q, k, v, workspace);
        if (st != TRI_UNSUPPORTED || !may_fall_back(s, q.dtype))
            return st;
    }
    return tri_own_attn.forward(s, op, o, lse, q, k, v, workspace);
}

static enum tri_status cuda_attn_backward(struct tri_stream *s, const struct tri_attn *op,
                                          bool accumulate_dq, struct tri_view dq,
                                          struct tri_view dk, struct tri_view dv,
                                          struct tri_view dout, struct tri_view q,
                                          struct tri_view k, struct tri_view v, struct tri_view o,
                                          struct tri_view lse, void *workspace)
{
    if (s->cuda->cudnn.backward != NULL) {
        enum tri_status st = s->cuda->cudnn.backward(s, op, accumulate_dq, dq, dk, dv, dout, q, k,
                                                     v, o, lse, workspace);
        if (st != TRI_UNSUPPORTED || !may_fall_back(s, q.dtype))
            return st;
    }
    return tri_own_attn.backward(s, op, accumulate_dq, dq, dk, dv, dout, q, k, v, o, lse,
                                 workspace);
}

void tri_cuda_attn_ops(struct tri_ops *ops)
{
    ops->attn_workspace = cuda_attn_workspace;
    ops->attn_forward = cuda_attn_forward;
    ops->attn_backward = cuda_attn_backward;
}
