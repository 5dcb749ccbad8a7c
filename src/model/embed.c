/* The first layer: one row of the embedding table for each token. */
#include "base/arena.h"
#include "model/net.h"

enum tri_status tri_embed(const struct tri_net *net, struct tri_view x, const int32_t *ids)
{
    return net->exec.ops->embed_forward(net->exec.stream, x, ids,
                                        tri_net_weight(net, -1, TRI_EMBED));
}

/* In Transformers the embedding of these families has a padding_idx: tokens of that id leave no
 * gradient in its row (a tied head still does). So the row is put back as it was before. */
enum tri_status tri_embed_backward(const struct tri_net *net, struct tri_view dx,
                                   const int32_t *ids)
{
    const struct tri_ops *ops = net->exec.ops;
    struct tri_stream *s = net->exec.stream;
    struct tri_view table = tri_net_grad(net, -1, TRI_EMBED);
    int64_t padding = net->model->arch.padding_row;
    if (padding < 0)
        return ops->embed_backward(s, table, ids, dx);
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view before;
    struct tri_view row = tri_view_rows(table, padding, 1);
    TRI_TRY(
        tri_net_scratch(net, "gradient of the padding row", net->stat, 1, table.dim[1], &before));
    TRI_TRY(ops->copy(s, before, row));
    TRI_TRY(ops->embed_backward(s, table, ids, dx));
    TRI_TRY(ops->copy(s, row, before));
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}
