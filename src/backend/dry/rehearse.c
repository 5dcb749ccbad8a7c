/* REHEARSE: token-wise ops run for real; products and attention run on their first tile, and the
 * rest of what they write is set to zero, which touches it. */
#include "backend/dry/stream.h"

/* Rows of a product that run. The tiles of an MLP are about as long as the model is wide, so this
 * is what makes a rehearsal short; the least that the kernels' register tiles fill. */
enum { TILE = 32 };

static int64_t tile_rows(struct tri_view v)
{
    return v.dim[0] < TILE ? v.dim[0] : TILE;
}

static struct tri_view tile(struct tri_view v)
{
    return tri_view_rows(v, 0, tile_rows(v));
}

/* Zero what the cut op leaves of a tensor that it should have overwritten. */
static enum tri_status touch_rest(struct tri_stream *s, struct tri_view v)
{
    int64_t done = tile_rows(v);
    return s->base->ops.zero(s->base->stream, tri_view_rows(v, done, v.dim[0] - done));
}

static enum tri_status copy(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    return s->base->ops.copy(s->base->stream, dst, src);
}

static enum tri_status zero(struct tri_stream *s, struct tri_view dst)
{
    return s->base->ops.zero(s->base->stream, dst);
}

static enum tri_status add(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    return s->base->ops.add(s->base->stream, dst, src);
}

static enum tri_status upload(struct tri_stream *s, struct tri_view dst, const void *host)
{
    return s->base->ops.upload(s->base->stream, dst, host);
}

static enum tri_status download(struct tri_stream *s, void *host, struct tri_view src)
{
    return s->base->ops.download(s->base->stream, host, src);
}

static enum tri_status read_scalars(struct tri_stream *s, double *host, const double *src,
                                    int64_t n)
{
    return s->base->ops.read_scalars(s->base->stream, host, src, n);
}

static enum tri_status sync(struct tri_stream *s)
{
    return s->base->ops.sync(s->base->stream);
}

static enum tri_status embed_forward(struct tri_stream *s, struct tri_view y, const int32_t *ids,
                                     struct tri_view table)
{
    return s->base->ops.embed_forward(s->base->stream, y, ids, table);
}

static enum tri_status embed_backward(struct tri_stream *s, struct tri_view dtable,
                                      const int32_t *ids, struct tri_view dy)
{
    return s->base->ops.embed_backward(s->base->stream, dtable, ids, dy);
}

static enum tri_status norm_forward(struct tri_stream *s, const struct tri_norm *op,
                                    struct tri_view y, struct tri_view x, struct tri_view w,
                                    struct tri_view b)
{
    return s->base->ops.norm_forward(s->base->stream, op, y, x, w, b);
}

static enum tri_status norm_backward(struct tri_stream *s, const struct tri_norm *op,
                                     bool accumulate, struct tri_view dx, struct tri_view dw,
                                     struct tri_view db, struct tri_view dy, struct tri_view x,
                                     struct tri_view w)
{
    return s->base->ops.norm_backward(s->base->stream, op, accumulate, dx, dw, db, dy, x, w);
}

static enum tri_status rope_table(struct tri_stream *s, struct tri_view table, const int64_t *pos,
                                  const double *inv_freq, double scale)
{
    return s->base->ops.rope_table(s->base->stream, table, pos, inv_freq, scale);
}

static enum tri_status rope(struct tri_stream *s, bool inverse, struct tri_view y,
                            struct tri_view x, struct tri_view table)
{
    return s->base->ops.rope(s->base->stream, inverse, y, x, table);
}

static enum tri_status act_forward(struct tri_stream *s, enum tri_activation act, struct tri_view y,
                                   struct tri_view gate, struct tri_view up)
{
    return s->base->ops.act_forward(s->base->stream, act, y, gate, up);
}

static enum tri_status act_backward(struct tri_stream *s, enum tri_activation act,
                                    struct tri_view dgate, struct tri_view dup, struct tri_view dy,
                                    struct tri_view gate, struct tri_view up)
{
    return s->base->ops.act_backward(s->base->stream, act, dgate, dup, dy, gate, up);
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
    return s->base->ops.cross_entropy(s->base->stream, backward, scale, loss_sum, logits, labels);
}

static enum tri_status adamw(struct tri_stream *s, const struct tri_adamw *op, struct tri_view p,
                             struct tri_view m, struct tri_view v, struct tri_view w,
                             struct tri_view g)
{
    return s->base->ops.adamw(s->base->stream, op, p, m, v, w, g);
}

static enum tri_status sum_squares(struct tri_stream *s, double *sum, struct tri_view x)
{
    return s->base->ops.sum_squares(s->base->stream, sum, x);
}

static enum tri_status linear_forward(struct tri_stream *s, bool accumulate, struct tri_view y,
                                      struct tri_view x, struct tri_view w, struct tri_view b)
{
    TRI_TRY(s->base->ops.linear_forward(s->base->stream, accumulate, tile(y), tile(x), w, b));
    return accumulate ? TRI_OK : touch_rest(s, y);
}

static enum tri_status linear_backward_x(struct tri_stream *s, bool accumulate, struct tri_view dx,
                                         struct tri_view dy, struct tri_view w)
{
    TRI_TRY(s->base->ops.linear_backward_x(s->base->stream, accumulate, tile(dx), tile(dy), w));
    return accumulate ? TRI_OK : touch_rest(s, dx);
}

static enum tri_status linear_backward_w(struct tri_stream *s, struct tri_view dw,
                                         struct tri_view db, struct tri_view dy, struct tri_view x)
{
    return s->base->ops.linear_backward_w(s->base->stream, dw, db, tile(dy), tile(x));
}

/* The workspace is as long as attn_workspace says and is touched whole. */
static enum tri_status touch_workspace(struct tri_stream *s, const struct tri_attn *op,
                                       bool backward, struct tri_view q, struct tri_view k,
                                       void *workspace)
{
    size_t bytes = attn_workspace(s, op, backward, q, k);
    return s->base->ops.zero(s->base->stream, tri_view1(workspace, TRI_U8, (int64_t)bytes));
}

static enum tri_status attn_forward(struct tri_stream *s, const struct tri_attn *op,
                                    struct tri_view o, struct tri_view lse, struct tri_view q,
                                    struct tri_view k, struct tri_view v, void *workspace)
{
    TRI_TRY(touch_workspace(s, op, false, q, k, workspace));
    TRI_TRY(s->base->ops.attn_forward(s->base->stream, op, tile(o), tile(lse), tile(q), tile(k),
                                      tile(v), workspace));
    TRI_TRY(touch_rest(s, o));
    return touch_rest(s, lse);
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
    return accumulate_dq ? TRI_OK : touch_rest(s, dq);
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
