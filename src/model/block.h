/* One block of the decoder over one chunk: attention half and MLP half in the order that the
 * architecture asks for. Loops over layers and chunks live in pass/. */
#ifndef TRI_MODEL_BLOCK_H
#define TRI_MODEL_BLOCK_H

#include "model/net.h"

/* What of a chunk survives until backward, beside the block's input; views may be absent.
 * Attention tensors are kept together or not at all. With QK-norm q_raw and k_raw belong to them,
 * since the backward of a norm reads its input. */
struct tri_block_kept {
    struct tri_attn_kept attn;
    struct tri_view k_raw; /* (t, Hk*D) act; only with QK-norm */
    struct tri_view mid;   /* (t, E) act: input of norm2 in a sequential block */
    struct tri_view in;    /* (t, 2F or F) act: first product of the MLP */
};

/* y(t,E) = block(x(t,E)); keys and values of earlier chunks are in the store. y is not x.
 * Whatever is present in `kept` is filled. */
enum tri_status tri_block_forward(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                  struct tri_view y, struct tri_view x,
                                  const struct tri_block_kept *kept);

/* Keys and values of a chunk again, from the block's input. k_raw may be absent. */
enum tri_status tri_block_rebuild_kv(const struct tri_net *net, int64_t layer,
                                     struct tri_chunk chunk, struct tri_view x,
                                     struct tri_view k_raw);

/* d(t,E): gradient of y on entry, of x on return; parameter gradients +=. Chunks come last first;
 * dkv(S, 2*hk*D) gathers what they contribute to earlier keys and values and starts at zero.
 * What `kept` does not hold is computed again from x. */
enum tri_status tri_block_backward(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                   struct tri_view d, struct tri_view dkv, struct tri_view x,
                                   const struct tri_block_kept *kept);

#endif
