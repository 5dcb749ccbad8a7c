/* The mask of an attention call as rectangles of queries and keys that cuDNN knows. */
#ifndef TRI_BACKEND_CUDA_ATTN_CUDNN_PIECES_H
#define TRI_BACKEND_CUDA_ATTN_CUDNN_PIECES_H

#include "backend/backend.h"

enum tri_attn_piece_kind {
    TRI_PIECE_BLIND,  /* queries that see no key */
    TRI_PIECE_CAUSAL, /* the last query sees all keys, the one before all but one, ... */
    TRI_PIECE_FULL,   /* every query sees every key, but for the window */
};

/* Rows count from the first query and the first key of the call. Every query of a piece that is
 * not blind sees at least one of its keys, and none outside of it. */
struct tri_attn_piece {
    enum tri_attn_piece_kind kind;
    int64_t q_row, q_rows;
    int64_t k_row, k_rows;
    int64_t window; /* 0, or query i (from 0) sees only keys j with j + window > i */
};

/* A walk over the pieces in order of queries; each query lies in exactly one. */
struct tri_attn_walk {
    const struct tri_attn *op;
    int64_t q_end, k_end; /* global tokens */
    int64_t query;        /* next, global */
    int64_t doc;          /* the document that holds it, or one before */
};
void tri_attn_walk_begin(struct tri_attn_walk *w, const struct tri_attn *op, int64_t num_queries,
                         int64_t num_keys);
/* False at the end. */
bool tri_attn_walk_next(struct tri_attn_walk *w, struct tri_attn_piece *out);

/* A piece that can join others in one ragged call: as many keys as queries, causal. */
static inline bool tri_attn_piece_is_square(const struct tri_attn_piece *piece)
{
    return piece->kind == TRI_PIECE_CAUSAL && piece->q_rows == piece->k_rows;
}

#endif
