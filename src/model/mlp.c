/* The MLP half of a block, in tiles of tokens: its wide inner activations exist for one tile only.
 * (Tiled MLP: Bekman et al. 2025, "Arctic Long Sequence Training".) */
#include "model/mlp.h"

#include "model/net.h"

/* The inner tensors of one tile. */
struct inner {
    struct tri_view h;   /* (t, E) after the norm; x itself without one */
    struct tri_view in;  /* (t, 2F or F) first product: gate, then up */
    struct tri_view act; /* (t, F) what the second product reads */
};

static struct tri_view gate_of(const struct tri_mlp *mlp, struct tri_view in)
{
    return tri_view_cols(in, 0, mlp->out_w.dim[1]);
}

static struct tri_view up_of(const struct tri_mlp *mlp, struct tri_view in)
{
    int64_t f = mlp->out_w.dim[1];
    return mlp->gated ? tri_view_cols(in, f, f) : tri_view_none();
}

static enum tri_status get(const struct tri_mlp *mlp, const char *name, int64_t rows, int64_t cols,
                           struct tri_view *out)
{
    return tri_exec_scratch(&mlp->exec, name, mlp->in_w.dtype, rows, cols, out);
}

/* Room for the longest tile of n rows. */
static enum tri_status get_inner(const struct tri_mlp *mlp, int64_t rows, bool need_in,
                                 struct inner *out)
{
    TRI_TRY(get(mlp, "mlp norm", mlp->norm != NULL ? rows : 0, mlp->in_w.dim[1], &out->h));
    TRI_TRY(get(mlp, "mlp product", need_in ? rows : 0, mlp->in_w.dim[0], &out->in));
    return get(mlp, "mlp activation", rows, mlp->out_w.dim[1], &out->act);
}

static struct inner tile_of(const struct tri_mlp *mlp, struct inner buffers, struct tri_view x,
                            struct tri_view kept, struct tri_range tile)
{
    return (struct inner){
        .h = mlp->norm != NULL ? tri_view_rows(buffers.h, 0, tile.count)
                               : tri_view_rows(x, tile.begin, tile.count),
        .in = tri_view_present(kept) ? tri_view_rows(kept, tile.begin, tile.count)
                                     : tri_view_rows(buffers.in, 0, tile.count),
        .act = tri_view_rows(buffers.act, 0, tile.count),
    };
}

static enum tri_status norm(const struct tri_mlp *mlp, struct tri_view h, struct tri_view x)
{
    if (mlp->norm == NULL)
        return TRI_OK;
    return mlp->exec.ops->norm_forward(mlp->exec.stream, mlp->norm, h, x, mlp->norm_w, mlp->norm_b);
}

static enum tri_status first_product(const struct tri_mlp *mlp, const struct inner *t)
{
    return mlp->exec.ops->linear_forward(mlp->exec.stream, false, t->in, t->h, mlp->in_w,
                                         mlp->in_b);
}

static enum tri_status activate(const struct tri_mlp *mlp, const struct inner *t)
{
    return mlp->exec.ops->act_forward(mlp->exec.stream, mlp->activation, t->act,
                                      gate_of(mlp, t->in), up_of(mlp, t->in));
}

enum tri_status tri_mlp_run(const struct tri_mlp *mlp, struct tri_view y, struct tri_view x,
                            struct tri_view kept)
{
    int64_t rows = y.dim[0];
    size_t mark = tri_arena_mark(mlp->exec.arena);
    struct inner buffers;
    TRI_TRY(
        get_inner(mlp, (rows + mlp->tiles - 1) / mlp->tiles, !tri_view_present(kept), &buffers));
    for (int64_t i = 0; i < mlp->tiles; i++) {
        struct tri_range tile = tri_split(rows, mlp->tiles, i);
        struct inner t = tile_of(mlp, buffers, x, kept, tile);
        TRI_TRY(norm(mlp, t.h, tri_view_rows(x, tile.begin, tile.count)));
        TRI_TRY(first_product(mlp, &t));
        TRI_TRY(activate(mlp, &t));
        TRI_TRY(mlp->exec.ops->linear_forward(mlp->exec.stream, true,
                                              tri_view_rows(y, tile.begin, tile.count), t.act,
                                              mlp->out_w, mlp->out_b));
    }
    tri_arena_release(mlp->exec.arena, mark);
    return TRI_OK;
}

/* From the gradient of the first product, in t->in, to that of x. dh is (t, E) scratch. */
static enum tri_status input_backward(const struct tri_mlp *mlp, struct tri_view dx,
                                      struct tri_view x, const struct inner *t, struct tri_view dh)
{
    const struct tri_ops *ops = mlp->exec.ops;
    struct tri_stream *s = mlp->exec.stream;
    if (mlp->norm == NULL)
        return tri_view_present(dx) ? ops->linear_backward_x(s, true, dx, t->in, mlp->in_w)
                                    : TRI_OK;
    TRI_TRY(ops->linear_backward_x(s, false, dh, t->in, mlp->in_w));
    return ops->norm_backward(s, mlp->norm, true, dx, mlp->d_norm_w, mlp->d_norm_b, dh, x,
                              mlp->norm_w);
}

/* One tile of the backward; dact is (t, F) scratch. */
static enum tri_status tile_backward(const struct tri_mlp *mlp, struct tri_view dx,
                                     struct tri_view dy, struct tri_view x, const struct inner *t,
                                     bool have_in, struct tri_view dact, struct tri_view dh)
{
    const struct tri_ops *ops = mlp->exec.ops;
    struct tri_stream *s = mlp->exec.stream;
    TRI_TRY(norm(mlp, t->h, x));
    if (!have_in)
        TRI_TRY(first_product(mlp, t));
    TRI_TRY(activate(mlp, t));
    if (tri_view_present(mlp->d_out_w))
        TRI_TRY(ops->linear_backward_w(s, mlp->d_out_w, mlp->d_out_b, dy, t->act));
    TRI_TRY(ops->linear_backward_x(s, false, dact, dy, mlp->out_w));
    TRI_TRY(ops->act_backward(s, mlp->activation, gate_of(mlp, t->in), up_of(mlp, t->in), dact,
                              gate_of(mlp, t->in), up_of(mlp, t->in)));
    if (tri_view_present(mlp->d_in_w))
        TRI_TRY(ops->linear_backward_w(s, mlp->d_in_w, mlp->d_in_b, t->in, t->h));
    return input_backward(mlp, dx, x, t, dh);
}

static struct tri_view tile_rows(struct tri_view v, struct tri_range tile)
{
    return tri_view_present(v) ? tri_view_rows(v, tile.begin, tile.count) : v;
}

enum tri_status tri_mlp_run_backward(const struct tri_mlp *mlp, struct tri_view dx,
                                     struct tri_view dy, struct tri_view x, struct tri_view kept)
{
    int64_t rows = dy.dim[0];
    int64_t longest = (rows + mlp->tiles - 1) / mlp->tiles;
    size_t mark = tri_arena_mark(mlp->exec.arena);
    struct inner buffers;
    struct tri_view dact, dh;
    TRI_TRY(get_inner(mlp, longest, !tri_view_present(kept), &buffers));
    TRI_TRY(get(mlp, "d mlp activation", longest, mlp->out_w.dim[1], &dact));
    TRI_TRY(get(mlp, "d mlp norm", mlp->norm != NULL ? longest : 0, mlp->in_w.dim[1], &dh));
    for (int64_t i = 0; i < mlp->tiles; i++) {
        struct tri_range tile = tri_split(rows, mlp->tiles, i);
        struct inner t = tile_of(mlp, buffers, x, kept, tile);
        TRI_TRY(tile_backward(mlp, tile_rows(dx, tile), tile_rows(dy, tile), tile_rows(x, tile), &t,
                              tri_view_present(kept), tri_view_rows(dact, 0, tile.count),
                              mlp->norm != NULL ? tri_view_rows(dh, 0, tile.count) : dh));
    }
    tri_arena_release(mlp->exec.arena, mark);
    return TRI_OK;
}

/* ---- of a layer --------------------------------------------------------------------------------
 */

static struct tri_mlp mlp_of(const struct tri_net *net, int64_t layer, int64_t rows)
{
    const struct tri_arch *a = &net->model->arch;
    return (struct tri_mlp){
        .exec = net->exec,
        .norm = &a->norm,
        .activation = a->activation,
        .gated = a->gated_mlp,
        .tiles = tri_net_mlp_tiles(net, rows),
        .norm_w = tri_net_weight(net, layer, TRI_NORM2_W),
        .norm_b = tri_net_weight(net, layer, TRI_NORM2_B),
        .in_w = tri_net_weight(net, layer, TRI_MLP_IN_W),
        .in_b = tri_net_weight(net, layer, TRI_MLP_IN_B),
        .out_w = tri_net_weight(net, layer, TRI_MLP_OUT_W),
        .out_b = tri_net_weight(net, layer, TRI_MLP_OUT_B),
    };
}

enum tri_status tri_mlp_forward(const struct tri_net *net, int64_t layer, struct tri_view y,
                                struct tri_view x, struct tri_view kept)
{
    struct tri_mlp mlp = mlp_of(net, layer, y.dim[0]);
    return tri_mlp_run(&mlp, y, x, kept);
}

enum tri_status tri_mlp_backward(const struct tri_net *net, int64_t layer, struct tri_view dy,
                                 struct tri_view x, struct tri_view kept)
{
    struct tri_mlp mlp = mlp_of(net, layer, dy.dim[0]);
    mlp.d_norm_w = tri_net_grad(net, layer, TRI_NORM2_W);
    mlp.d_norm_b = tri_net_grad(net, layer, TRI_NORM2_B);
    mlp.d_in_w = tri_net_grad(net, layer, TRI_MLP_IN_W);
    mlp.d_in_b = tri_net_grad(net, layer, TRI_MLP_IN_B);
    mlp.d_out_w = tri_net_grad(net, layer, TRI_MLP_OUT_W);
    mlp.d_out_b = tri_net_grad(net, layer, TRI_MLP_OUT_B);
    return tri_mlp_run_backward(&mlp, dy, dy, x, kept);
}
