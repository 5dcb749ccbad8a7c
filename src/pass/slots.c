#include "pass/slots.h"

static int *slot_of(const struct tri_pass *pass, int64_t layer, enum tri_slot which)
{
    return &pass->slots[layer * TRI_NUM_SLOTS + which];
}

int tri_slot(const struct tri_pass *pass, int64_t layer, enum tri_slot which)
{
    return *slot_of(pass, layer, which);
}

/* Layout, width and type of a slot. */
struct kind {
    const char *name;
    bool heads; /* all tokens of this rank's heads; else this rank's tokens */
    int64_t cols;
    enum tri_dtype dtype;
};

static struct kind kind_of(const struct tri_pass *pass, enum tri_slot which)
{
    const struct tri_arch *a = &pass->net.model->arch;
    struct tri_heads mine = tri_exchange_heads(&pass->net.exchange);
    int64_t d = a->head_dim;
    enum tri_dtype act = pass->net.act;
    switch (which) {
    case TRI_SLOT_X:
        return (struct kind){"layer input", false, a->hidden, act};
    case TRI_SLOT_KV:
        return (struct kind){"keys and values", true, 2 * mine.key.count * d, act};
    case TRI_SLOT_K_RAW:
        return (struct kind){"keys before norm", false, a->num_kv_heads * d, act};
    case TRI_SLOT_Q:
        return (struct kind){"kept queries", true, mine.query.count * d, act};
    case TRI_SLOT_Q_RAW:
        return (struct kind){"kept queries before norm", false, a->num_heads * d, act};
    case TRI_SLOT_O:
        return (struct kind){"kept attention output", false, a->num_heads * d, act};
    case TRI_SLOT_LSE:
        return (struct kind){"kept log-sum-exp", true, mine.query.count, pass->net.stat};
    case TRI_SLOT_MID:
        return (struct kind){"kept mlp input", false, a->hidden, act};
    case TRI_SLOT_IN:
        return (struct kind){"kept mlp product", false, (a->gated_mlp ? 2 : 1) * a->mlp_width, act};
    case TRI_NUM_SLOTS:
        break;
    }
    return (struct kind){"nothing", false, 0, act};
}

/* Whether a layer keeps this slot for itself until its backward. */
static bool keeps(const struct tri_pass *pass, enum tri_slot which)
{
    const struct tri_arch *a = &pass->net.model->arch;
    if (!pass->training)
        return false;
    switch (which) {
    case TRI_SLOT_X:
        return true;
    case TRI_SLOT_KV:
    case TRI_SLOT_Q:
    case TRI_SLOT_O:
    case TRI_SLOT_LSE:
        return pass->remat != TRI_REMAT_FULL;
    case TRI_SLOT_K_RAW:
    case TRI_SLOT_Q_RAW:
        return pass->remat != TRI_REMAT_FULL && a->qk_norm;
    case TRI_SLOT_MID:
        return pass->remat == TRI_REMAT_NONE && !a->parallel_residual;
    case TRI_SLOT_IN:
        return pass->remat == TRI_REMAT_NONE;
    case TRI_NUM_SLOTS:
        break;
    }
    return false;
}

/* Whether all layers take turns in one slot when they do not keep their own. */
static bool shares(const struct tri_pass *pass, enum tri_slot which)
{
    return which == TRI_SLOT_KV ||
           (which == TRI_SLOT_K_RAW && pass->training && pass->net.model->arch.qk_norm);
}

static enum tri_status add(struct tri_pass *pass, enum tri_slot which, int *slot)
{
    struct kind kind = kind_of(pass, which);
    return tri_store_add(pass->net.store, kind.name, TRI_TIER_DEVICE, kind.dtype,
                         kind.heads ? pass->net.batch->num_tokens : pass->net.num_rows, kind.cols,
                         slot);
}

enum tri_status tri_slots_add(struct tri_pass *pass)
{
    int64_t layers = pass->net.model->arch.num_layers;
    for (int which = 0; which < TRI_NUM_SLOTS; which++) {
        enum tri_slot w = (enum tri_slot)which;
        int shared = -1;
        if (!keeps(pass, w) && shares(pass, w))
            TRI_TRY(add(pass, w, &shared));
        for (int64_t l = 0; l <= layers; l++) {
            *slot_of(pass, l, w) = l < layers ? shared : -1;
            if (l < layers && keeps(pass, w))
                TRI_TRY(add(pass, w, slot_of(pass, l, w)));
        }
    }
    /* The stream of hidden states: one slot a layer and one for the top; going forward only, two
     * that are used in turn. */
    if (pass->training)
        return add(pass, TRI_SLOT_X, slot_of(pass, layers, TRI_SLOT_X));
    int turn[2];
    TRI_TRY(add(pass, TRI_SLOT_X, &turn[0]));
    TRI_TRY(add(pass, TRI_SLOT_X, &turn[1]));
    for (int64_t l = 0; l <= layers; l++)
        *slot_of(pass, l, TRI_SLOT_X) = turn[l % 2];
    return TRI_OK;
}

/* Where the rows of a slot go in struct tri_block_kept; NULL for X and KV, which travel apart. */
static struct tri_view *place(struct tri_block_kept *kept, enum tri_slot which)
{
    switch (which) {
    case TRI_SLOT_K_RAW:
        return &kept->k_raw;
    case TRI_SLOT_Q:
        return &kept->attn.q;
    case TRI_SLOT_Q_RAW:
        return &kept->attn.q_raw;
    case TRI_SLOT_O:
        return &kept->attn.o;
    case TRI_SLOT_LSE:
        return &kept->attn.lse;
    case TRI_SLOT_MID:
        return &kept->mid;
    case TRI_SLOT_IN:
        return &kept->in;
    default:
        return NULL;
    }
}

typedef enum tri_status slot_call(struct tri_store *, int, int64_t, int64_t, struct tri_view *);
typedef enum tri_status end_call(struct tri_store *, int, int64_t, int64_t);

static enum tri_status each(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk,
                            struct tri_block_kept *kept, slot_call *begin, end_call *end)
{
    struct tri_block_kept none = {.k_raw = {.data = NULL}};
    if (kept != NULL)
        *kept = none;
    for (int which = 0; which < TRI_NUM_SLOTS; which++) {
        int slot = tri_slot(pass, layer, (enum tri_slot)which);
        struct tri_view *rows = place(kept != NULL ? kept : &none, (enum tri_slot)which);
        if (slot < 0 || rows == NULL)
            continue;
        struct tri_range range =
            kind_of(pass, (enum tri_slot)which).heads ? chunk.tokens : chunk.rows;
        if (begin != NULL)
            TRI_TRY(begin(pass->net.store, slot, range.begin, range.count, rows));
        else
            TRI_TRY(end(pass->net.store, slot, range.begin, range.count));
    }
    return TRI_OK;
}

enum tri_status tri_slots_fill(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk,
                               struct tri_block_kept *kept)
{
    return each(pass, layer, chunk, kept, tri_store_fill, NULL);
}

enum tri_status tri_slots_put(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk)
{
    return each(pass, layer, chunk, NULL, NULL, tri_store_put);
}

enum tri_status tri_slots_get(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk,
                              struct tri_block_kept *kept)
{
    return each(pass, layer, chunk, kept, tri_store_get, NULL);
}

enum tri_status tri_slots_done(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk)
{
    return each(pass, layer, chunk, NULL, NULL, tri_store_done);
}

int tri_pass_rank(const struct tri_pass *pass)
{
    const struct tri_comm *sequence = pass->net.exchange.comm;
    return sequence != NULL ? sequence->rank : 0;
}

int64_t tri_pass_chunks(const struct tri_pass *pass)
{
    return tri_layout_chunks(&pass->net.exchange.layout);
}

struct tri_chunk tri_pass_chunk(const struct tri_pass *pass, int64_t i)
{
    return tri_layout_at(&pass->net.exchange.layout, i, tri_pass_rank(pass));
}
