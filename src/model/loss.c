/* Final norm, language-model head and cross entropy, fused in tiles of rows.
 *
 * The number of trained tokens of the whole step is known beforehand, so a tile goes forward and
 * backward at once with the true upstream gradient: dX and dW are both scaled by it, and no tile
 * needs its logits again. A tile without a trained token adds exactly zero. */
#include "model/head.h"

#include "model/net.h"

static enum tri_status norm(const struct tri_head *head, struct tri_view h, struct tri_view x)
{
    if (head->norm == NULL)
        return TRI_OK;
    return head->exec.ops->norm_forward(head->exec.stream, head->norm, h, x, head->norm_w,
                                        head->norm_b);
}

static enum tri_status product(const struct tri_head *head, struct tri_view logits,
                               struct tri_view h)
{
    return head->exec.ops->linear_forward(head->exec.stream, false, logits, h, head->w,
                                          tri_view_none());
}

/* Gradient of the tile from dlogits, which replaced the logits; h is the norm's output on entry and
 * carries its gradient afterwards. */
static enum tri_status tile_backward(const struct tri_head *head, struct tri_view dx,
                                     struct tri_view x, struct tri_view h, struct tri_view dlogits)
{
    const struct tri_ops *ops = head->exec.ops;
    struct tri_stream *s = head->exec.stream;
    if (tri_view_present(head->dw))
        TRI_TRY(ops->linear_backward_w(s, head->dw, tri_view_none(), dlogits, h));
    if (head->norm == NULL)
        return tri_view_present(dx) ? ops->linear_backward_x(s, false, dx, dlogits, head->w)
                                    : TRI_OK;
    TRI_TRY(ops->linear_backward_x(s, false, h, dlogits, head->w));
    return ops->norm_backward(s, head->norm, false, dx, head->d_norm_w, head->d_norm_b, h, x,
                              head->norm_w);
}

enum tri_status tri_head_loss(const struct tri_head *head, bool backward, double scale,
                              double *loss_sum, struct tri_view dx, struct tri_view x,
                              const int32_t *labels)
{
    int64_t rows = x.dim[0];
    int64_t tiles = (rows + head->rows - 1) / head->rows;
    if (tiles == 0)
        return TRI_OK;
    size_t mark = tri_arena_mark(head->exec.arena);
    struct tri_view h, logits;
    int64_t longest = (rows + tiles - 1) / tiles;
    enum tri_dtype act = head->w.dtype;
    TRI_TRY(tri_exec_scratch(&head->exec, "loss norm", act, head->norm != NULL ? longest : 0,
                             x.dim[1], &h));
    TRI_TRY(tri_exec_scratch(&head->exec, "logits tile", act, longest, head->w.dim[0], &logits));
    for (int64_t i = 0; i < tiles; i++) {
        struct tri_range tile = tri_split(rows, tiles, i);
        struct tri_view xt = tri_view_rows(x, tile.begin, tile.count);
        struct tri_view ht = head->norm != NULL ? tri_view_rows(h, 0, tile.count) : xt;
        struct tri_view lt = tri_view_rows(logits, 0, tile.count);
        TRI_TRY(norm(head, ht, xt));
        TRI_TRY(product(head, lt, ht));
        TRI_TRY(head->exec.ops->cross_entropy(head->exec.stream, backward, scale, loss_sum, lt,
                                              labels + tile.begin));
        if (backward)
            TRI_TRY(tile_backward(
                head, tri_view_present(dx) ? tri_view_rows(dx, tile.begin, tile.count) : dx, xt, ht,
                lt));
    }
    tri_arena_release(head->exec.arena, mark);
    return TRI_OK;
}

/* ---- of a model --------------------------------------------------------------------------------
 */

static struct tri_head head_of(const struct tri_net *net)
{
    return (struct tri_head){.exec = net->exec,
                             .norm = &net->model->arch.norm,
                             .rows = net->loss_rows,
                             .norm_w = tri_net_weight(net, -1, TRI_FINAL_NORM_W),
                             .norm_b = tri_net_weight(net, -1, TRI_FINAL_NORM_B),
                             .w = tri_net_weight(net, -1, TRI_HEAD_W)};
}

enum tri_status tri_loss(const struct tri_net *net, double scale, double *loss_sum,
                         struct tri_view dx, struct tri_view x, const int32_t *labels)
{
    struct tri_head head = head_of(net);
    bool backward = tri_view_present(dx);
    if (backward) {
        head.d_norm_w = tri_net_grad(net, -1, TRI_FINAL_NORM_W);
        head.d_norm_b = tri_net_grad(net, -1, TRI_FINAL_NORM_B);
        head.dw = tri_net_grad(net, -1, TRI_HEAD_W);
    }
    return tri_head_loss(&head, backward, scale, loss_sum, dx, x, labels);
}

enum tri_status tri_logits(const struct tri_net *net, struct tri_view logits, struct tri_view x)
{
    struct tri_head head = head_of(net);
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view h;
    TRI_TRY(tri_net_scratch(net, "loss norm", net->act, x.dim[0], x.dim[1], &h));
    TRI_TRY(norm(&head, h, x));
    TRI_TRY(product(&head, logits, h));
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}
