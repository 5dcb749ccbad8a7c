/* The first layer: one row of the embedding table for each token. */
#include "model/net.h"

enum tri_status tri_embed(const struct tri_net *net, struct tri_view x, const int32_t *ids)
{
    return net->exec.ops->embed_forward(net->exec.stream, x, ids,
                                        tri_net_weight(net, -1, TRI_EMBED));
}

enum tri_status tri_embed_backward(const struct tri_net *net, struct tri_view dx,
                                   const int32_t *ids)
{
    return net->exec.ops->embed_backward(net->exec.stream, tri_net_grad(net, -1, TRI_EMBED), ids,
                                         dx);
}
