/* Down the stack: layer by layer from the top, chunks last first, so that when a chunk's turn comes
 * every later chunk has already added its part to the gradient of the chunk's keys and values. */
#include "base/arena.h"
#include "pass/pass.h"
#include "pass/slots.h"

static void report(struct tri_pass *pass, int64_t layer, int64_t chunk)
{
    if (pass->progress.report != NULL)
        pass->progress.report(pass->progress.ctx, "backward", layer, chunk,
                              pass->units_done / pass->units);
}

static enum tri_status input(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk,
                             struct tri_view *x)
{
    return tri_store_get(pass->net.store, tri_slot(pass, layer, TRI_SLOT_X), chunk.rows.begin,
                         chunk.rows.count, x);
}

/* Keys and values of the whole sequence again, if the layer did not keep its own. */
static enum tri_status rebuild_kv(struct tri_pass *pass, int64_t layer)
{
    if (pass->remat != TRI_REMAT_FULL)
        return TRI_OK;
    int64_t chunks = tri_pass_chunks(pass);
    for (int64_t i = 0; i < chunks; i++) {
        struct tri_chunk chunk = tri_pass_chunk(pass, i);
        struct tri_view x;
        struct tri_block_kept kept;
        TRI_TRY(input(pass, layer, chunk, &x));
        TRI_TRY(tri_slots_fill(pass, layer, chunk, &kept));
        TRI_TRY(tri_block_rebuild_kv(&pass->net, layer, chunk, x, kept.k_raw));
        TRI_TRY(tri_slots_put(pass, layer, chunk));
        TRI_TRY(tri_store_done(pass->net.store, tri_slot(pass, layer, TRI_SLOT_X), chunk.rows.begin,
                               chunk.rows.count));
    }
    return TRI_OK;
}

static enum tri_status layer_backward(struct tri_pass *pass, int64_t layer)
{
    const struct tri_net *net = &pass->net;
    int64_t chunks = tri_pass_chunks(pass);
    int64_t kv_width = 2 * tri_exchange_heads(&net->exchange).key.count * net->model->arch.head_dim;
    size_t mark = tri_arena_mark(net->exec.arena);
    struct tri_view dkv;
    TRI_TRY(rebuild_kv(pass, layer));
    TRI_TRY(tri_net_scratch(net, "d keys and values of a layer", net->stat, net->batch->num_tokens,
                            kv_width, &dkv));
    TRI_TRY(net->exec.ops->zero(net->exec.stream, dkv));
    for (int64_t i = chunks - 1; i >= 0; i--) {
        struct tri_chunk chunk = tri_pass_chunk(pass, i);
        struct tri_view x;
        struct tri_block_kept kept;
        report(pass, layer, i);
        TRI_TRY(input(pass, layer, chunk, &x));
        TRI_TRY(tri_slots_get(pass, layer, chunk, &kept));
        TRI_TRY(tri_block_backward(net, layer, chunk,
                                   tri_view_rows(pass->d, chunk.rows.begin, chunk.rows.count), dkv,
                                   x, &kept));
        TRI_TRY(tri_slots_done(pass, layer, chunk));
        TRI_TRY(tri_store_done(net->store, tri_slot(pass, layer, TRI_SLOT_X), chunk.rows.begin,
                               chunk.rows.count));
        pass->units_done += 3;
    }
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}

enum tri_status tri_pass_backward(struct tri_pass *pass)
{
    int layers = (int)pass->net.model->arch.num_layers;
    struct tri_zero_walk walk;
    TRI_TRY(tri_zero_walk_begin(pass->zero, layers, 1, TRI_ZERO_WEIGHTS | TRI_ZERO_GRADS, &walk));
    for (int64_t layer = layers - 1; layer >= 0; layer--) {
        pass->net.kv_slot = tri_slot(pass, layer, TRI_SLOT_KV);
        TRI_TRY(tri_zero_walk_enter(&walk, 1 + (int)layer));
        TRI_TRY(layer_backward(pass, layer));
        TRI_TRY(tri_zero_walk_leave(&walk, 1 + (int)layer));
    }
    TRI_TRY(tri_zero_walk_end(&walk));
    TRI_TRY(tri_zero_walk_begin(pass->zero, 0, 0, TRI_ZERO_GRADS, &walk));
    TRI_TRY(tri_zero_walk_enter(&walk, 0));
    TRI_TRY(tri_embed_backward(&pass->net, pass->d, pass->ids));
    TRI_TRY(tri_zero_walk_leave(&walk, 0));
    return tri_zero_walk_end(&walk);
}
