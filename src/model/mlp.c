/* The MLP half of a block, in tiles of tokens: its wide inner activations exist for one tile only.
 * (Tiled MLP: Bekman et al. 2025, "Arctic Long Sequence Training".) */
#include "base/arena.h"
#include "model/net.h"

/* The inner tensors of one tile. */
struct inner {
    struct tri_view h;   /* (t, E) after norm2 */
    struct tri_view in;  /* (t, 2F or F) first product: gate, then up */
    struct tri_view act; /* (t, F) what the second product reads */
};

static int64_t inner_width(const struct tri_net *net)
{
    const struct tri_arch *a = &net->model->arch;
    return a->gated_mlp ? 2 * a->mlp_width : a->mlp_width;
}

static struct tri_view gate_of(const struct tri_net *net, struct tri_view in)
{
    return tri_view_cols(in, 0, net->model->arch.mlp_width);
}

static struct tri_view up_of(const struct tri_net *net, struct tri_view in)
{
    int64_t f = net->model->arch.mlp_width;
    return net->model->arch.gated_mlp ? tri_view_cols(in, f, f) : tri_view_none();
}

/* Room for the longest tile of n rows. */
static enum tri_status get_inner(const struct tri_net *net, int64_t rows, bool need_in,
                                 struct inner *out)
{
    const struct tri_arch *a = &net->model->arch;
    TRI_TRY(tri_net_scratch(net, "mlp norm", net->act, rows, a->hidden, &out->h));
    TRI_TRY(tri_net_scratch(net, "mlp product", net->act, need_in ? rows : 0, inner_width(net),
                            &out->in));
    return tri_net_scratch(net, "mlp activation", net->act, rows, a->mlp_width, &out->act);
}

static struct inner tile_of(struct inner buffers, struct tri_view kept, struct tri_range tile)
{
    return (struct inner){
        .h = tri_view_rows(buffers.h, 0, tile.count),
        .in = tri_view_present(kept) ? tri_view_rows(kept, tile.begin, tile.count)
                                     : tri_view_rows(buffers.in, 0, tile.count),
        .act = tri_view_rows(buffers.act, 0, tile.count),
    };
}

static enum tri_status norm2(const struct tri_net *net, int64_t layer, struct tri_view h,
                             struct tri_view x)
{
    return net->exec.ops->norm_forward(net->exec.stream, &net->model->arch.norm, h, x,
                                       tri_net_weight(net, layer, TRI_NORM2_W),
                                       tri_net_weight(net, layer, TRI_NORM2_B));
}

static enum tri_status first_product(const struct tri_net *net, int64_t layer,
                                     const struct inner *t)
{
    return net->exec.ops->linear_forward(net->exec.stream, false, t->in, t->h,
                                         tri_net_weight(net, layer, TRI_MLP_IN_W),
                                         tri_net_weight(net, layer, TRI_MLP_IN_B));
}

static enum tri_status activate(const struct tri_net *net, const struct inner *t)
{
    return net->exec.ops->act_forward(net->exec.stream, net->model->arch.activation, t->act,
                                      gate_of(net, t->in), up_of(net, t->in));
}

enum tri_status tri_mlp_forward(const struct tri_net *net, int64_t layer, struct tri_view y,
                                struct tri_view x, struct tri_view kept)
{
    int64_t rows = y.dim[0];
    int64_t tiles = tri_net_mlp_tiles(net, rows);
    size_t mark = tri_arena_mark(net->exec.arena);
    struct inner buffers;
    TRI_TRY(get_inner(net, (rows + tiles - 1) / tiles, !tri_view_present(kept), &buffers));
    for (int64_t i = 0; i < tiles; i++) {
        struct tri_range tile = tri_split(rows, tiles, i);
        struct inner t = tile_of(buffers, kept, tile);
        TRI_TRY(norm2(net, layer, t.h, tri_view_rows(x, tile.begin, tile.count)));
        TRI_TRY(first_product(net, layer, &t));
        TRI_TRY(activate(net, &t));
        TRI_TRY(net->exec.ops->linear_forward(
            net->exec.stream, true, tri_view_rows(y, tile.begin, tile.count), t.act,
            tri_net_weight(net, layer, TRI_MLP_OUT_W), tri_net_weight(net, layer, TRI_MLP_OUT_B)));
    }
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}

/* One tile of the backward; dact is (t, F) scratch, dh is (t, E) scratch. */
static enum tri_status tile_backward(const struct tri_net *net, int64_t layer, struct tri_view dy,
                                     struct tri_view x, const struct inner *t, bool have_in,
                                     struct tri_view dact, struct tri_view dh)
{
    const struct tri_ops *ops = net->exec.ops;
    struct tri_stream *s = net->exec.stream;
    TRI_TRY(norm2(net, layer, t->h, x));
    if (!have_in)
        TRI_TRY(first_product(net, layer, t));
    TRI_TRY(activate(net, t));
    TRI_TRY(ops->linear_backward_w(s, tri_net_grad(net, layer, TRI_MLP_OUT_W),
                                   tri_net_grad(net, layer, TRI_MLP_OUT_B), dy, t->act));
    TRI_TRY(ops->linear_backward_x(s, false, dact, dy, tri_net_weight(net, layer, TRI_MLP_OUT_W)));
    TRI_TRY(ops->act_backward(s, net->model->arch.activation, gate_of(net, t->in),
                              up_of(net, t->in), dact, gate_of(net, t->in), up_of(net, t->in)));
    TRI_TRY(ops->linear_backward_w(s, tri_net_grad(net, layer, TRI_MLP_IN_W),
                                   tri_net_grad(net, layer, TRI_MLP_IN_B), t->in, t->h));
    TRI_TRY(ops->linear_backward_x(s, false, dh, t->in, tri_net_weight(net, layer, TRI_MLP_IN_W)));
    return ops->norm_backward(
        s, &net->model->arch.norm, true, dy, tri_net_grad(net, layer, TRI_NORM2_W),
        tri_net_grad(net, layer, TRI_NORM2_B), dh, x, tri_net_weight(net, layer, TRI_NORM2_W));
}

enum tri_status tri_mlp_backward(const struct tri_net *net, int64_t layer, struct tri_view dy,
                                 struct tri_view x, struct tri_view kept)
{
    const struct tri_arch *a = &net->model->arch;
    int64_t rows = dy.dim[0];
    int64_t tiles = tri_net_mlp_tiles(net, rows);
    int64_t longest = (rows + tiles - 1) / tiles;
    size_t mark = tri_arena_mark(net->exec.arena);
    struct inner buffers;
    struct tri_view dact, dh;
    TRI_TRY(get_inner(net, longest, !tri_view_present(kept), &buffers));
    TRI_TRY(tri_net_scratch(net, "d mlp activation", net->act, longest, a->mlp_width, &dact));
    TRI_TRY(tri_net_scratch(net, "d mlp norm", net->act, longest, a->hidden, &dh));
    for (int64_t i = 0; i < tiles; i++) {
        struct tri_range tile = tri_split(rows, tiles, i);
        struct inner t = tile_of(buffers, kept, tile);
        TRI_TRY(tile_backward(net, layer, tri_view_rows(dy, tile.begin, tile.count),
                              tri_view_rows(x, tile.begin, tile.count), &t, tri_view_present(kept),
                              tri_view_rows(dact, 0, tile.count),
                              tri_view_rows(dh, 0, tile.count)));
    }
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}
