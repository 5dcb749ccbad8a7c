/* Private to api: one call of sequence-parallel attention at work on memory of the caller. */
#ifndef TRI_API_ATTENTION_WORK_H
#define TRI_API_ATTENTION_WORK_H

#include "api/batch.h"
#include "attn/attention.h"

/* What one call works with. */
struct tri_sp_work {
    struct tri_sp_batch *batch;
    const struct tri_sp_attention *op;
    enum tri_dtype dtype, stat;
    struct tri_heads mine;
    struct tri_exchange exchange;
    struct tri_memory lender; /* memory of the caller, or scratch */
    struct tri_arena *arena;  /* over it */
    struct tri_store *store;
};

/* Of one row; laid out the same by forward and backward. */
struct tri_sp_kept {
    struct tri_view q;   /* (S, hq*D) */
    int kv_slot;         /* (S, 2*hk*D) */
    struct tri_view o;   /* (S, hq*D) */
    struct tri_view lse; /* (S, hq), float32 or float64 */
};

/* A tensor of the caller and the same in the layout of heads. */
struct tri_sp_pair {
    enum tri_head_kind kind;
    struct tri_tensor local;
    struct tri_view heads; /* rows of the chunk */
};

/* Fill `w`, which must not move. `memory` NULL: scratch that the caller releases. */
enum tri_status tri_sp_work_open(struct tri_sp_work *w, struct tri_sp_batch *batch,
                                 const struct tri_sp_attention *op, enum tri_dtype dtype,
                                 void *memory);
void tri_sp_work_close(struct tri_sp_work *w);

/* The next row's place in the memory: the same in forward and backward. */
enum tri_status tri_sp_next_row(struct tri_sp_work *w, struct tri_sp_kept *out);

/* Attention of row b. */
struct tri_attention tri_sp_attention_of(const struct tri_sp_work *w, const struct tri_sp_kept *k,
                                         int64_t b);

/* Bring tensors of a chunk to heads, or back: with one rank by a copy. */
enum tri_status tri_sp_move(const struct tri_sp_work *w, int64_t b, struct tri_chunk chunk,
                            const struct tri_sp_pair *pairs, int count, bool to_heads);

#endif
