/* Final norm, language-model head and cross entropy, fused in tiles of rows.
 *
 * The number of trained tokens of the whole step is known beforehand, so a tile goes forward and
 * backward at once with the true upstream gradient: dX and dW are both scaled by it, and no tile
 * needs its logits again. A tile without a trained token adds exactly zero. */
#include "base/arena.h"
#include "model/net.h"

static enum tri_status final_norm(const struct tri_net *net, struct tri_view h, struct tri_view x)
{
    return net->exec.ops->norm_forward(net->exec.stream, &net->model->arch.norm, h, x,
                                       tri_net_weight(net, -1, TRI_FINAL_NORM_W),
                                       tri_net_weight(net, -1, TRI_FINAL_NORM_B));
}

static enum tri_status head(const struct tri_net *net, struct tri_view logits, struct tri_view h)
{
    return net->exec.ops->linear_forward(net->exec.stream, false, logits, h,
                                         tri_net_weight(net, -1, TRI_HEAD_W), tri_view_none());
}

/* Gradient of the tile from dlogits, which replaced the logits; h is the norm's output on entry and
 * carries its gradient afterwards. */
static enum tri_status tile_backward(const struct tri_net *net, struct tri_view dx,
                                     struct tri_view x, struct tri_view h, struct tri_view dlogits)
{
    const struct tri_ops *ops = net->exec.ops;
    struct tri_stream *s = net->exec.stream;
    TRI_TRY(
        ops->linear_backward_w(s, tri_net_grad(net, -1, TRI_HEAD_W), tri_view_none(), dlogits, h));
    TRI_TRY(ops->linear_backward_x(s, false, h, dlogits, tri_net_weight(net, -1, TRI_HEAD_W)));
    return ops->norm_backward(
        s, &net->model->arch.norm, false, dx, tri_net_grad(net, -1, TRI_FINAL_NORM_W),
        tri_net_grad(net, -1, TRI_FINAL_NORM_B), h, x, tri_net_weight(net, -1, TRI_FINAL_NORM_W));
}

enum tri_status tri_loss(const struct tri_net *net, double scale, double *loss_sum,
                         struct tri_view dx, struct tri_view x, const int32_t *labels)
{
    const struct tri_arch *a = &net->model->arch;
    bool backward = tri_view_present(dx);
    int64_t rows = x.dim[0];
    int64_t tiles = (rows + net->loss_rows - 1) / net->loss_rows;
    if (tiles == 0)
        return TRI_OK;
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view h, logits;
    int64_t longest = (rows + tiles - 1) / tiles;
    TRI_TRY(tri_net_scratch(net, "loss norm", net->act, longest, a->hidden, &h));
    TRI_TRY(tri_net_scratch(net, "logits tile", net->act, longest, a->vocab, &logits));
    for (int64_t i = 0; i < tiles; i++) {
        struct tri_range tile = tri_split(rows, tiles, i);
        struct tri_view xt = tri_view_rows(x, tile.begin, tile.count);
        struct tri_view ht = tri_view_rows(h, 0, tile.count);
        struct tri_view lt = tri_view_rows(logits, 0, tile.count);
        TRI_TRY(final_norm(net, ht, xt));
        TRI_TRY(head(net, lt, ht));
        TRI_TRY(net->exec.ops->cross_entropy(net->exec.stream, backward, scale, loss_sum, lt,
                                             labels + tile.begin));
        if (backward)
            TRI_TRY(tile_backward(net, tri_view_rows(dx, tile.begin, tile.count), xt, ht, lt));
    }
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}

enum tri_status tri_logits(const struct tri_net *net, struct tri_view logits, struct tri_view x)
{
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view h;
    TRI_TRY(tri_net_scratch(net, "loss norm", net->act, x.dim[0], x.dim[1], &h));
    TRI_TRY(final_norm(net, h, x));
    TRI_TRY(head(net, logits, h));
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}
