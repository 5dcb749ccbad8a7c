/* Attention of one chunk of queries over the keys it can see.
 *
 * Keys and values of the whole sequence live in a store slot of (S, 2*Hk*D): the Hk key heads of a
 * token, then its Hk value heads. A chunk asks the store only for the rows its queries can see:
 * from the begin of the first query's document, or from where its window begins, to the chunk's
 * end. */
#ifndef TRI_ATTN_ATTENTION_H
#define TRI_ATTN_ATTENTION_H

#include "backend/backend.h"
#include "data/batch.h"
#include "shard/layout.h"
#include "store/store.h"

/* What is the same for all chunks of a layer. Hq and Hk below are the heads of this rank. */
struct tri_attention {
    struct tri_exec exec;
    const struct tri_batch *batch; /* documents */
    struct tri_store *store;
    int kv_slot;
    int64_t num_heads, num_kv_heads; /* of the model */
    struct tri_heads heads;          /* of this rank */
    int64_t window;                  /* 0: none */
    double scale;
    bool deterministic;
};

/* The range of keys that some query of the tokens `chunk` can see. */
struct tri_range tri_attention_keys(const struct tri_attention *a, struct tri_range chunk);

/* o(n,Hq,D) and lse(n,Hq) of the chunk's queries q(n,Hq,D). Scratch comes from exec.arena and goes
 * back to it. */
enum tri_status tri_attention_forward(const struct tri_attention *a, struct tri_range chunk,
                                      struct tri_view o, struct tri_view lse, struct tri_view q);

/* dq(n,Hq,D) = gradient; dkv(S, 2*Hk*D), in the dtype of statistics, += what the chunk's queries
 * contribute to all keys they see. Once every later chunk has been here too, the chunk's own rows
 * of dkv are final. */
enum tri_status tri_attention_backward(const struct tri_attention *a, struct tri_range chunk,
                                       struct tri_view dq, struct tri_view dkv,
                                       struct tri_view dout, struct tri_view q, struct tri_view o,
                                       struct tri_view lse);

#endif
