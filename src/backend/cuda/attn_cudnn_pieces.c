#include "backend/cuda/attn_cudnn_pieces.h"

#include "base/minmax.h"

void tri_attn_walk_begin(struct tri_attn_walk *w, const struct tri_attn *op, int64_t num_queries,
                         int64_t num_keys)
{
    *w = (struct tri_attn_walk){.op = op,
                                .q_end = op->q_begin + num_queries,
                                .k_end = op->k_begin + num_keys,
                                .query = op->q_begin};
    /* The last document that begins at or before the first query. */
    int64_t high = op->num_docs;
    while (w->doc + 1 < high) {
        int64_t middle = w->doc + (high - w->doc) / 2;
        if (op->doc_begin[middle] <= op->q_begin)
            w->doc = middle;
        else
            high = middle;
    }
}

bool tri_attn_walk_next(struct tri_attn_walk *w, struct tri_attn_piece *out)
{
    const struct tri_attn *op = w->op;
    int64_t q = w->query;
    if (q >= w->q_end)
        return false;
    while (w->doc + 1 < op->num_docs && op->doc_begin[w->doc + 1] <= q)
        w->doc++;
    int64_t q_end = tri_min(w->q_end, op->doc_begin[w->doc + 1]);
    int64_t k_begin = tri_max(op->k_begin, op->doc_begin[w->doc]);
    int64_t k_end = tri_min(w->k_end, op->doc_begin[w->doc + 1]);
    if (q_end <= q) /* past the last document: contracts forbid it, but the walk must end */
        q_end = w->q_end;
    /* The first query from which the window has left the keys behind. */
    int64_t late =
        op->window > 0 && k_end < INT64_MAX - op->window ? k_end + op->window - 1 : INT64_MAX;
    enum tri_attn_piece_kind kind;
    if (k_begin >= k_end || q >= late) {
        kind = TRI_PIECE_BLIND;
    } else if (q < k_begin) {
        kind = TRI_PIECE_BLIND;
        q_end = tri_min(q_end, k_begin);
    } else if (q < k_end) {
        kind = TRI_PIECE_CAUSAL;
        q_end = k_end = tri_min(q_end, k_end);
    } else {
        kind = TRI_PIECE_FULL;
        q_end = tri_min(q_end, late);
    }
    *out = (struct tri_attn_piece){.kind = kind, .q_row = q - op->q_begin, .q_rows = q_end - q};
    w->query = q_end;
    if (kind == TRI_PIECE_BLIND)
        return true;
    if (op->window > 0)
        k_begin = tri_max(k_begin, q - op->window + 1);
    out->k_row = k_begin - op->k_begin;
    out->k_rows = k_end - k_begin;
    if (op->window > 0 && q_end - 1 - k_begin >= op->window)
        out->window = op->window + k_begin - q;
    return true;
}
