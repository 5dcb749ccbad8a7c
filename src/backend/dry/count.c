/* COUNT: every op succeeds and touches nothing. */
#include <string.h>

#include "backend/dry/stream.h"

static enum tri_status copy(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    (void)s;
    (void)dst;
    (void)src;
    return TRI_OK;
}

static enum tri_status zero(struct tri_stream *s, struct tri_view dst)
{
    (void)s;
    (void)dst;
    return TRI_OK;
}

static enum tri_status add(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    (void)s;
    (void)dst;
    (void)src;
    return TRI_OK;
}

static enum tri_status upload(struct tri_stream *s, struct tri_view dst, const void *host)
{
    (void)s;
    (void)dst;
    (void)host;
    return TRI_OK;
}

static enum tri_status download(struct tri_stream *s, void *host, struct tri_view src)
{
    (void)s;
    (void)host;
    (void)src;
    return TRI_OK;
}

static enum tri_status sync(struct tri_stream *s)
{
    (void)s;
    return TRI_OK;
}

static enum tri_status embed_forward(struct tri_stream *s, struct tri_view y, const int32_t *ids,
                                     struct tri_view table)
{
    (void)s;
    (void)y;
    (void)ids;
    (void)table;
    return TRI_OK;
}

static enum tri_status embed_backward(struct tri_stream *s, struct tri_view dtable,
                                      const int32_t *ids, struct tri_view dy)
{
    (void)s;
    (void)dtable;
    (void)ids;
    (void)dy;
    return TRI_OK;
}

static enum tri_status norm_forward(struct tri_stream *s, const struct tri_norm *op,
                                    struct tri_view y, struct tri_view x, struct tri_view w,
                                    struct tri_view b)
{
    (void)s;
    (void)op;
    (void)y;
    (void)x;
    (void)w;
    (void)b;
    return TRI_OK;
}

static enum tri_status norm_backward(struct tri_stream *s, const struct tri_norm *op,
                                     bool accumulate, struct tri_view dx, struct tri_view dw,
                                     struct tri_view db, struct tri_view dy, struct tri_view x,
                                     struct tri_view w)
{
    (void)s;
    (void)op;
    (void)accumulate;
    (void)dx;
    (void)dw;
    (void)db;
    (void)dy;
    (void)x;
    (void)w;
    return TRI_OK;
}

static enum tri_status linear_forward(struct tri_stream *s, bool accumulate, struct tri_view y,
                                      struct tri_view x, struct tri_view w, struct tri_view b)
{
    (void)s;
    (void)accumulate;
    (void)y;
    (void)x;
    (void)w;
    (void)b;
    return TRI_OK;
}

static enum tri_status linear_backward_x(struct tri_stream *s, bool accumulate, struct tri_view dx,
                                         struct tri_view dy, struct tri_view w)
{
    (void)s;
    (void)accumulate;
    (void)dx;
    (void)dy;
    (void)w;
    return TRI_OK;
}

static enum tri_status linear_backward_w(struct tri_stream *s, struct tri_view dw,
                                         struct tri_view db, struct tri_view dy, struct tri_view x)
{
    (void)s;
    (void)dw;
    (void)db;
    (void)dy;
    (void)x;
    return TRI_OK;
}

static enum tri_status rope_table(struct tri_stream *s, struct tri_view table, const int64_t *pos,
                                  const double *inv_freq, double scale)
{
    (void)s;
    (void)table;
    (void)pos;
    (void)inv_freq;
    (void)scale;
    return TRI_OK;
}

static enum tri_status rope(struct tri_stream *s, bool inverse, struct tri_view y,
                            struct tri_view x, struct tri_view table)
{
    (void)s;
    (void)inverse;
    (void)y;
    (void)x;
    (void)table;
    return TRI_OK;
}

static enum tri_status act_forward(struct tri_stream *s, enum tri_activation act, struct tri_view y,
                                   struct tri_view gate, struct tri_view up)
{
    (void)s;
    (void)act;
    (void)y;
    (void)gate;
    (void)up;
    return TRI_OK;
}

static enum tri_status act_backward(struct tri_stream *s, enum tri_activation act,
                                    struct tri_view dgate, struct tri_view dup, struct tri_view dy,
                                    struct tri_view gate, struct tri_view up)
{
    (void)s;
    (void)act;
    (void)dgate;
    (void)dup;
    (void)dy;
    (void)gate;
    (void)up;
    return TRI_OK;
}

static enum tri_status attn_forward(struct tri_stream *s, const struct tri_attn *op,
                                    struct tri_view o, struct tri_view lse, struct tri_view q,
                                    struct tri_view k, struct tri_view v, void *workspace)
{
    (void)s;
    (void)op;
    (void)o;
    (void)lse;
    (void)q;
    (void)k;
    (void)v;
    (void)workspace;
    return TRI_OK;
}

static enum tri_status attn_backward(struct tri_stream *s, const struct tri_attn *op,
                                     bool accumulate_dq, struct tri_view dq, struct tri_view dk,
                                     struct tri_view dv, struct tri_view dout, struct tri_view q,
                                     struct tri_view k, struct tri_view v, struct tri_view o,
                                     struct tri_view lse, void *workspace)
{
    (void)s;
    (void)op;
    (void)accumulate_dq;
    (void)dq;
    (void)dk;
    (void)dv;
    (void)dout;
    (void)q;
    (void)k;
    (void)v;
    (void)o;
    (void)lse;
    (void)workspace;
    return TRI_OK;
}

static enum tri_status cross_entropy(struct tri_stream *s, bool backward, double scale,
                                     double *loss_sum, struct tri_view logits,
                                     const int32_t *labels)
{
    (void)s;
    (void)backward;
    (void)scale;
    (void)loss_sum;
    (void)logits;
    (void)labels;
    return TRI_OK;
}

static enum tri_status adamw(struct tri_stream *s, const struct tri_adamw *op, struct tri_view p,
                             struct tri_view m, struct tri_view v, struct tri_view w,
                             struct tri_view g)
{
    (void)s;
    (void)op;
    (void)p;
    (void)m;
    (void)v;
    (void)w;
    (void)g;
    return TRI_OK;
}

static enum tri_status sum_squares(struct tri_stream *s, double *sum, struct tri_view x)
{
    (void)s;
    (void)sum;
    (void)x;
    return TRI_OK;
}

static enum tri_status read_scalars(struct tri_stream *s, double *host, const double *src,
                                    int64_t n)
{
    (void)s;
    (void)src;
    memset(host, 0, (size_t)n * sizeof *host);
    return TRI_OK;
}

static size_t attn_workspace(struct tri_stream *s, const struct tri_attn *op, bool backward,
                             struct tri_view q, struct tri_view k)
{
    return s->base->ops.attn_workspace(s->base->stream, op, backward, q, k);
}

void tri_dry_count_ops(struct tri_ops *ops)
{
    *ops = (struct tri_ops){
        .copy = copy,
        .zero = zero,
        .add = add,
        .upload = upload,
        .download = download,
        .read_scalars = read_scalars,
        .sync = sync,
        .embed_forward = embed_forward,
        .embed_backward = embed_backward,
        .norm_forward = norm_forward,
        .norm_backward = norm_backward,
        .linear_forward = linear_forward,
        .linear_backward_x = linear_backward_x,
        .linear_backward_w = linear_backward_w,
        .rope_table = rope_table,
        .rope = rope,
        .act_forward = act_forward,
        .act_backward = act_backward,
        .attn_workspace = attn_workspace,
        .attn_forward = attn_forward,
        .attn_backward = attn_backward,
        .cross_entropy = cross_entropy,
        .adamw = adamw,
        .sum_squares = sum_squares,
    };
}
