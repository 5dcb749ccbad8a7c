/* One call of attention, cut into tasks that share nothing but their inputs (and, in backward, the
 * order in which they add to dq). */
#ifndef TRI_BACKEND_CPU_ATTN_H
#define TRI_BACKEND_CPU_ATTN_H

#include <stdatomic.h>

#include "backend/backend.h"

/* Queries that one task of forward covers, over all its heads; queries and keys of the blocks in
 * backward. Multiples of every register tile's rows and columns. Key blocks begin at multiples of
 * TRI_ATTN_KEYS from global token 0, so that cutting the queries differently changes no bit. */
enum {
    TRI_ATTN_FORWARD_ROWS = 192,
    TRI_ATTN_QUERIES = 96,
    TRI_ATTN_KEYS = 96,
    TRI_ATTN_HEADS = 2, /* heads of one group that share the packed keys in forward */
    /* Queries that backward goes over at a time: as many have room for what dq loses. */
    TRI_ATTN_BACKWARD_ROWS = 128 * TRI_ATTN_QUERIES,
};

/* Local keys [begin, end) that a query sees; both ends grow with the query. */
struct tri_attn_range {
    int64_t begin;
    int64_t end;
};

struct tri_attn_call {
    const struct tri_attn *op;
    struct tri_view q, k, v, o, lse;
    struct tri_view dq, dk, dv, dout;       /* backward */
    int64_t num_queries, num_keys;          /* Tq, Tk */
    int64_t num_heads, num_kv_heads, group; /* Hq, Hk, Hq/Hk */
    int64_t head_size;                      /* D */

    /* Forward: task = ((block * Hk) + kv head) * head_sets + set, last queries first. */
    int64_t heads_per_task, head_sets, rows_per_head, num_query_blocks;

    /* Backward: task = key block * Hk + kv head. */
    const float *delta; /* (Tq, Hq): rows of dout * o */
    float *dq_lost;     /* (Hq, Tq, D) contiguous: what rounding has lost of dq */
    atomic_int *turn;   /* (query blocks, Hk): the key block that may add to dq next */
    int64_t first_key_block, first_query_block; /* numbered from global token 0 */
};

/* Floats of a thread's private tile. */
struct tri_attn_tiles {
    int64_t (*forward_floats)(int64_t head_size);
    int64_t (*backward_floats)(int64_t head_size);
};

/* The keys that `count` queries from local `first` see, clipped to the call's keys. */
void tri_attn_ranges(const struct tri_attn *op, int64_t num_keys, int64_t first, int64_t count,
                     struct tri_attn_range *out);

/* Local queries [begin, end) outside of which none sees local keys [k0, k0 + count). */
void tri_attn_seen_by(const struct tri_attn *op, int64_t num_queries, int64_t k0, int64_t count,
                      int64_t *begin, int64_t *end);

/* floor(a / b) for b > 0. */
static inline int64_t tri_floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

#endif
