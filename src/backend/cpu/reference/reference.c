/* The table of plain kernels, and the two helpers they share that are not inline. */
#include "backend/cpu/reference/reference.h"

#include "backend/cpu/cpu.h"

void tri_cpu_reference_ops(struct tri_ops *ops)
{
    *ops = (struct tri_ops){
        .copy = tri_reference_copy,
        .zero = tri_reference_zero,
        .add = tri_reference_accumulate,
        .upload = tri_reference_upload,
        .download = tri_reference_download,
        .read_scalars = tri_reference_read_scalars,
        .sync = tri_reference_sync,
        .embed_forward = tri_reference_embed_forward,
        .embed_backward = tri_reference_embed_backward,
        .norm_forward = tri_reference_norm_forward,
        .norm_backward = tri_reference_norm_backward,
        .linear_forward = tri_reference_linear_forward,
        .linear_backward_x = tri_reference_linear_backward_x,
        .linear_backward_w = tri_reference_linear_backward_w,
        .rope_table = tri_reference_rope_table,
        .rope = tri_reference_rope,
        .act_forward = tri_reference_act_forward,
        .act_backward = tri_reference_act_backward,
        .attn_workspace = tri_reference_attn_workspace,
        .attn_forward = tri_reference_attn_forward,
        .attn_backward = tri_reference_attn_backward,
        .cross_entropy = tri_reference_cross_entropy,
        .adamw = tri_reference_adamw,
        .sum_squares = tri_reference_sum_squares,
    };
}

const double *tri_reference_load(struct tri_view v, int64_t offset, int64_t count, double *buffer)
{
    switch (v.dtype) {
    case TRI_F64:
        return (const double *)v.data + offset;
    case TRI_F32: {
        const float *x = (const float *)v.data + offset;
        for (int64_t i = 0; i < count; i++)
            buffer[i] = x[i];
        return buffer;
    }
    case TRI_BF16:
    case TRI_F16:
    case TRI_I32:
    case TRI_I64:
    case TRI_U8:
        break;
    }
    for (int64_t i = 0; i < count; i++)
        buffer[i] = tri_reference_get(v, offset + i);
    return buffer;
}

enum tri_status tri_reference_check(const char *op, const struct tri_view *views, int count)
{
    for (int i = 0; i < count; i++)
        if (tri_view_present(views[i]) && !tri_reference_floating(views[i]))
            return tri_fail(TRI_UNSUPPORTED,
                            "%s: tensor %d is %s; only floating dtypes can be computed with", op, i,
                            tri_dtype_name(views[i].dtype));
    return TRI_OK;
}
