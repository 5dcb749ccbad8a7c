/* Up the stack: layer by layer, chunk by chunk. */
#include "pass/pass.h"
#include "pass/slots.h"

static void report(struct tri_pass *pass, const char *phase, int64_t layer, int64_t chunk)
{
    if (pass->progress.report != NULL)
        pass->progress.report(pass->progress.ctx, phase, layer, chunk,
                              pass->units_done / pass->units);
}

static enum tri_status embed(struct tri_pass *pass, struct tri_chunk chunk)
{
    struct tri_store *store = pass->net.store;
    int slot = tri_slot(pass, 0, TRI_SLOT_X);
    struct tri_view x;
    TRI_TRY(tri_store_fill(store, slot, chunk.rows.begin, chunk.rows.count, &x));
    TRI_TRY(tri_embed(&pass->net, x, pass->ids + chunk.rows.begin));
    return tri_store_put(store, slot, chunk.rows.begin, chunk.rows.count);
}

static enum tri_status layer_chunk(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk)
{
    struct tri_store *store = pass->net.store;
    int in = tri_slot(pass, layer, TRI_SLOT_X);
    int out = tri_slot(pass, layer + 1, TRI_SLOT_X);
    struct tri_view x, y;
    struct tri_block_kept kept;
    TRI_TRY(tri_store_get(store, in, chunk.rows.begin, chunk.rows.count, &x));
    TRI_TRY(tri_store_fill(store, out, chunk.rows.begin, chunk.rows.count, &y));
    TRI_TRY(tri_slots_fill(pass, layer, chunk, &kept));
    if (!pass->training || pass->remat == TRI_REMAT_FULL)
        kept.k_raw = tri_view_none(); /* shared scratch of the backward: nothing is kept here */
    TRI_TRY(tri_block_forward(&pass->net, layer, chunk, y, x, &kept));
    TRI_TRY(tri_slots_put(pass, layer, chunk));
    TRI_TRY(tri_store_put(store, out, chunk.rows.begin, chunk.rows.count));
    return tri_store_done(store, in, chunk.rows.begin, chunk.rows.count);
}

static enum tri_status embed_all(struct tri_pass *pass)
{
    struct tri_zero_walk walk;
    TRI_TRY(tri_zero_walk_begin(pass->zero, 0, 0, TRI_ZERO_WEIGHTS, &walk));
    TRI_TRY(tri_zero_walk_enter(&walk, 0));
    for (int64_t i = 0; i < tri_pass_chunks(pass); i++)
        TRI_TRY(embed(pass, tri_pass_chunk(pass, i)));
    TRI_TRY(tri_zero_walk_leave(&walk, 0));
    return tri_zero_walk_end(&walk);
}

enum tri_status tri_pass_forward(struct tri_pass *pass)
{
    int64_t chunks = tri_pass_chunks(pass);
    int layers = (int)pass->net.model->arch.num_layers;
    struct tri_zero_walk walk;
    TRI_TRY(embed_all(pass));
    TRI_TRY(tri_zero_walk_begin(pass->zero, 1, layers, TRI_ZERO_WEIGHTS, &walk));
    for (int64_t layer = 0; layer < layers; layer++) {
        pass->net.kv_slot = tri_slot(pass, layer, TRI_SLOT_KV);
        TRI_TRY(tri_zero_walk_enter(&walk, 1 + (int)layer));
        for (int64_t i = 0; i < chunks; i++) {
            report(pass, "forward", layer, i);
            TRI_TRY(layer_chunk(pass, layer, tri_pass_chunk(pass, i)));
            pass->units_done += 1;
        }
        TRI_TRY(tri_zero_walk_leave(&walk, 1 + (int)layer));
    }
    return tri_zero_walk_end(&walk);
}

enum tri_status tri_pass_top(struct tri_pass *pass, struct tri_view *top)
{
    return tri_store_get(pass->net.store,
                         tri_slot(pass, pass->net.model->arch.num_layers, TRI_SLOT_X), 0,
                         pass->net.num_rows, top);
}

/* The final norm and the head; a tied head is the embedding's unit, whose gradients are complete
 * when those of the tokens are added at the bottom of the stack. */
struct top_walk {
    struct tri_zero_walk last, tied;
    bool is_tied;
};

static enum tri_status enter_top(struct tri_pass *pass, struct top_walk *w)
{
    int last = pass->net.model->num_units - 1;
    int grads = pass->training ? TRI_ZERO_GRADS : 0;
    int some_grads = pass->training ? TRI_ZERO_SOME_GRADS : 0;
    w->is_tied = pass->net.model->arch.tied_embeddings;
    TRI_TRY(tri_zero_walk_begin(pass->zero, last, last, TRI_ZERO_WEIGHTS | grads, &w->last));
    TRI_TRY(tri_zero_walk_enter(&w->last, last));
    if (!w->is_tied)
        return TRI_OK;
    TRI_TRY(tri_zero_walk_begin(pass->zero, 0, 0, TRI_ZERO_WEIGHTS | some_grads, &w->tied));
    return tri_zero_walk_enter(&w->tied, 0);
}

static enum tri_status leave_top(struct tri_pass *pass, struct top_walk *w)
{
    if (w->is_tied) {
        TRI_TRY(tri_zero_walk_leave(&w->tied, 0));
        TRI_TRY(tri_zero_walk_end(&w->tied));
    }
    TRI_TRY(tri_zero_walk_leave(&w->last, pass->net.model->num_units - 1));
    return tri_zero_walk_end(&w->last);
}

enum tri_status tri_pass_loss(struct tri_pass *pass, double scale)
{
    int slot = tri_slot(pass, pass->net.model->arch.num_layers, TRI_SLOT_X);
    int64_t chunks = tri_pass_chunks(pass);
    struct top_walk walk;
    TRI_TRY(enter_top(pass, &walk));
    for (int64_t i = 0; i < chunks; i++) {
        struct tri_chunk c = tri_pass_chunk(pass, i);
        struct tri_view x;
        struct tri_view d =
            pass->training ? tri_view_rows(pass->d, c.rows.begin, c.rows.count) : tri_view_none();
        TRI_TRY(tri_store_get(pass->net.store, slot, c.rows.begin, c.rows.count, &x));
        TRI_TRY(tri_loss(&pass->net, scale, pass->loss_sum, d, x, pass->labels + c.rows.begin));
        TRI_TRY(tri_store_done(pass->net.store, slot, c.rows.begin, c.rows.count));
    }
    return leave_top(pass, &walk);
}

enum tri_status tri_pass_logits(struct tri_pass *pass, struct tri_view logits)
{
    struct tri_view top;
    struct top_walk walk;
    TRI_TRY(enter_top(pass, &walk));
    TRI_TRY(tri_pass_top(pass, &top));
    TRI_TRY(tri_logits(&pass->net, logits, top));
    return leave_top(pass, &walk);
}
