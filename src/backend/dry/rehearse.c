/* REHEARSE: every op runs on its first tile, and what else it would have written is touched, a byte
 * a page. What comes out are no numbers of a training: only memory, calls and kernels are real. */
#include <math.h>

#include "backend/dry/stream.h"
#include "base/minmax.h"

enum {
    ROWS = 32, /* of an op that run: the least that the kernels' register tiles fill */
    COLS = 64, /* of a product that run, and terms of its sums */
};

static struct tri_view tile(struct tri_view v)
{
    return tri_view_present(v) ? tri_view_rows(v, 0, tri_min(v.dim[0], ROWS)) : v;
}

static enum tri_status copy(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    TRI_TRY(s->base->ops.copy(s->base->stream, tile(dst), tile(src)));
    return tri_dry_touch(s, dst);
}

static enum tri_status zero(struct tri_stream *s, struct tri_view dst)
{
    TRI_TRY(s->base->ops.zero(s->base->stream, tile(dst)));
    return tri_dry_touch(s, dst);
}

static enum tri_status add(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    return s->base->ops.add(s->base->stream, tile(dst), tile(src));
}

static enum tri_status upload(struct tri_stream *s, struct tri_view dst, const void *host)
{
    return s->base->ops.upload(s->base->stream, dst, host);
}

static enum tri_status download(struct tri_stream *s, void *host, struct tri_view src)
{
    return s->base->ops.download(s->base->stream, host, src);
}

/* Sums over what happened to lie in memory may be anything: nobody may take them for a failure. */
static enum tri_status read_scalars(struct tri_stream *s, double *host, const double *src,
                                    int64_t n)
{
    TRI_TRY(s->base->ops.read_scalars(s->base->stream, host, src, n));
    for (int64_t i = 0; i < n; i++)
        host[i] = isfinite(host[i]) ? host[i] : 0.0;
    return TRI_OK;
}

static enum tri_status sync(struct tri_stream *s)
{
    return s->base->ops.sync(s->base->stream);
}

static enum tri_status embed_forward(struct tri_stream *s, struct tri_view y, const int32_t *ids,
                                     struct tri_view table)
{
    TRI_TRY(s->base->ops.embed_forward(s->base->stream, tile(y), ids, table));
    return tri_dry_touch(s, y);
}

static enum tri_status embed_backward(struct tri_stream *s, struct tri_view dtable,
                                      const int32_t *ids, struct tri_view dy)
{
    return s->base->ops.embed_backward(s->base->stream, dtable, ids, tile(dy));
}

static enum tri_status norm_forward(struct tri_stream *s, const struct tri_norm *op,
                                    struct tri_view y, struct tri_view x, struct tri_view w,
                                    struct tri_view b)
{
    TRI_TRY(s->base->ops.norm_forward(s->base->stream, op, tile(y), tile(x), w, b));
    return tri_dry_touch(s, y);
}

static enum tri_status norm_backward(struct tri_stream *s, const struct tri_norm *op,
                                     bool accumulate, struct tri_view dx, struct tri_view dw,
                                     struct tri_view db, struct tri_view dy, struct tri_view x,
                                     struct tri_view w)
{
    TRI_TRY(s->base->ops.norm_backward(s->base->stream, op, accumulate, tile(dx), dw, db, tile(dy),
                                       tile(x), w));
    return accumulate ? TRI_OK : tri_dry_touch(s, dx);
}

static enum tri_status rope_table(struct tri_stream *s, struct tri_view table, const int64_t *pos,
                                  const double *inv_freq, double scale)
{
    TRI_TRY(s->base->ops.rope_table(s->base->stream, tile(table), pos, inv_freq, scale));
    return tri_dry_touch(s, table);
}

static enum tri_status rope(struct tri_stream *s, bool inverse, struct tri_view y,
                            struct tri_view x, struct tri_view table)
{
    TRI_TRY(s->base->ops.rope(s->base->stream, inverse, tile(y), tile(x), tile(table)));
    return tri_dry_touch(s, y);
}

static enum tri_status act_forward(struct tri_stream *s, enum tri_activation act, struct tri_view y,
                                   struct tri_view gate, struct tri_view up)
{
    TRI_TRY(s->base->ops.act_forward(s->base->stream, act, tile(y), tile(gate), tile(up)));
    return tri_dry_touch(s, y);
}

static enum tri_status act_backward(struct tri_stream *s, enum tri_activation act,
                                    struct tri_view dgate, struct tri_view dup, struct tri_view dy,
                                    struct tri_view gate, struct tri_view up)
{
    TRI_TRY(s->base->ops.act_backward(s->base->stream, act, tile(dgate), tile(dup), tile(dy),
                                      tile(gate), tile(up)));
    TRI_TRY(tri_dry_touch(s, dgate));
    return tri_dry_touch(s, dup);
}

static size_t attn_workspace(struct tri_stream *s, const struct tri_attn *op, bool backward,
                             struct tri_view q, struct tri_view k)
{
    return s->base->ops.attn_workspace(s->base->stream, op, backward, q, k);
}

static enum tri_status cross_entropy(struct tri_stream *s, bool backward, double scale,
                                     double *loss_sum, struct tri_view logits,
                                     const int32_t *labels)
{
    return s->base->ops.cross_entropy(s->base->stream, backward, scale, loss_sum, tile(logits),
                                      labels);
}

static enum tri_status adamw(struct tri_stream *s, const struct tri_adamw *op, struct tri_view p,
                             struct tri_view m, struct tri_view v, struct tri_view w,
                             struct tri_view g)
{
    TRI_TRY(s->base->ops.adamw(s->base->stream, op, tile(p), tile(m), tile(v), tile(w), tile(g)));
    TRI_TRY(tri_dry_touch(s, p));
    TRI_TRY(tri_dry_touch(s, m));
    TRI_TRY(tri_dry_touch(s, v));
    return tri_dry_touch(s, w);
}

static enum tri_status sum_squares(struct tri_stream *s, double *sum, struct tri_view x)
{
    return s->base->ops.sum_squares(s->base->stream, sum, tile(x));
}

/* Products run in ROWS tokens. One over a larger matrix than any before it sees all of the matrix,
 * so that the kernel and its own buffers have been tried; the others see a corner of it. */
struct corner {
    int64_t n, k;
};

static struct corner corner_of(struct tri_stream *s, enum tri_dry_product product,
                               struct tri_view w)
{
    const int64_t size = w.dim[0] * w.dim[1];
    if (size > s->largest[product]) {
        s->largest[product] = size;
        return (struct corner){w.dim[0], w.dim[1]};
    }
    return (struct corner){tri_min(w.dim[0], COLS), tri_min(w.dim[1], COLS)};
}

static struct tri_view matrix(struct tri_view w, struct corner c)
{
    return tri_view_cols(tri_view_rows(w, 0, c.n), 0, c.k);
}

static struct tri_view tokens(struct tri_view v, int64_t cols)
{
    return tri_view_cols(tile(v), 0, cols);
}

static struct tri_view bias(struct tri_view b, struct corner c)
{
    return tri_view_present(b) ? tri_view_rows(b, 0, c.n) : b;
}

static enum tri_status linear_forward(struct tri_stream *s, bool accumulate, struct tri_view y,
                                      struct tri_view x, struct tri_view w, struct tri_view b)
{
    const struct corner c = corner_of(s, TRI_DRY_FORWARD, w);
    TRI_TRY(s->base->ops.linear_forward(s->base->stream, accumulate, tokens(y, c.n), tokens(x, c.k),
                                        matrix(w, c), bias(b, c)));
    return accumulate ? TRI_OK : tri_dry_touch(s, y);
}

static enum tri_status linear_backward_x(struct tri_stream *s, bool accumulate, struct tri_view dx,
                                         struct tri_view dy, struct tri_view w)
{
    const struct corner c = corner_of(s, TRI_DRY_BACKWARD_X, w);
    TRI_TRY(s->base->ops.linear_backward_x(s->base->stream, accumulate, tokens(dx, c.k),
                                           tokens(dy, c.n), matrix(w, c)));
    return accumulate ? TRI_OK : tri_dry_touch(s, dx);
}

static enum tri_status linear_backward_w(struct tri_stream *s, struct tri_view dw,
                                         struct tri_view db, struct tri_view dy, struct tri_view x)
{
    const struct corner c = corner_of(s, TRI_DRY_BACKWARD_W, dw);
    return s->base->ops.linear_backward_w(s->base->stream, matrix(dw, c), bias(db, c),
                                          tokens(dy, c.n), tokens(x, c.k));
}

static enum tri_status touch_workspace(struct tri_stream *s, const struct tri_attn *op,
                                       bool backward, struct tri_view q, struct tri_view k,
                                       void *workspace)
{
    size_t bytes = attn_workspace(s, op, backward, q, k);
    return tri_dry_touch(s, tri_view1(workspace, TRI_U8, (int64_t)bytes));
}

static enum tri_status attn_forward(struct tri_stream *s, const struct tri_attn *op,
                                    struct tri_view o, struct tri_view lse, struct tri_view q,
                                    struct tri_view k, struct tri_view v, void *workspace)
{
    TRI_TRY(touch_workspace(s, op, false, q, k, workspace));
    TRI_TRY(s->base->ops.attn_forward(s->base->stream, op, tile(o), tile(lse), tile(q), tile(k),
                                      tile(v), workspace));
    TRI_TRY(tri_dry_touch(s, o));
    return tri_dry_touch(s, lse);
}

static enum tri_status attn_backward(struct tri_stream *s, const struct tri_attn *op,
                                     bool accumulate_dq, struct tri_view dq, struct tri_view dk,
                                     struct tri_view dv, struct tri_view dout, struct tri_view q,
                                     struct tri_view k, struct tri_view v, struct tri_view o,
                                     struct tri_view lse, void *workspace)
{
    TRI_TRY(touch_workspace(s, op, true, q, k, workspace));
    TRI_TRY(s->base->ops.attn_backward(s->base->stream, op, accumulate_dq, tile(dq), tile(dk),
                                       tile(dv), tile(dout), tile(q), tile(k), tile(v), tile(o),
                                       tile(lse), workspace));
    return accumulate_dq ? TRI_OK : tri_dry_touch(s, dq);
}

void tri_dry_rehearse_ops(struct tri_ops *ops)
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
