/* From the pieces of a mask to batches, each with one plan. */
#include <string.h>

#include "backend/cuda/attn_cudnn_call.h"
#include "base/minmax.h"

enum {
    SMALLEST_CLASS = 256, /* rows; squares of up to so many share a class */
    MAX_BATCH = 1024,     /* entries of one plan */
    SAFE_KEYS = 128,      /* backward may give NaN for key rows that are no multiple of it, unless
                             the mask for padding is on (cudnn-frontend pull request 628) */
};

/* In a packed sequence lengths differ from step to step, and a plan of exact sizes takes about
 * 50 ms to build. It pays from so many scores on: ragged plans are about a twentieth slower. */
#define EXACT_SCORES ((int64_t)1 << 30)

static int64_t power_of_two_above(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

int64_t tri_cudnn_rounded_rows(int64_t rows)
{
    return power_of_two_above(rows < SMALLEST_CLASS ? SMALLEST_CLASS : rows);
}

bool tri_cudnn_may_be_ragged(const struct tri_cudnn_call *c)
{
    int family = c->s->cuda->info.capability / 10;
    return !c->backward ||
           (family != 8 && family != 12 && (c->q.dim[2] <= 128 || c->engine->api.version >= 91900));
}

static bool is_exact(const struct tri_cudnn_call *c, const struct tri_attn_piece *piece)
{
    if (c->deterministic) /* chunks of one size against many lengths */
        return false;
    if (c->op->num_docs == 1 || !tri_cudnn_may_be_ragged(c))
        return true;
    return piece->q_rows * piece->k_rows >= EXACT_SCORES;
}

bool tri_cudnn_may_split(const struct tri_cudnn_call *c)
{
    return c->k.dim[0] > c->q.dim[0] && c->q.dim[0] * c->k.dim[0] >= EXACT_SCORES;
}

static bool splits(const struct tri_cudnn_call *c, const struct tri_attn_piece *piece)
{
    if (piece->kind != TRI_PIECE_CAUSAL || piece->window > 0 || tri_attn_piece_is_square(piece))
        return false;
    return c->backward ? !c->deterministic : piece->q_rows * piece->k_rows >= EXACT_SCORES;
}

/* Whether a piece joins others in a ragged batch of squares. */
static bool joins(const struct tri_cudnn_call *c, const struct tri_attn_piece *piece)
{
    return tri_attn_piece_is_square(piece) && !c->deterministic && !is_exact(c, piece);
}

void tri_cudnn_pieces_begin(struct tri_cudnn_pieces *p, const struct tri_cudnn_call *c)
{
    *p = (struct tri_cudnn_pieces){.call = c, .op = *c->op};
    tri_attn_walk_begin(&p->walk, &p->op, 0, 0);
}

/* Take the square at the end of a chunk and its prefix off. */
static void split(struct tri_cudnn_pieces *p, struct tri_attn_piece *piece)
{
    int64_t before = piece->k_rows - piece->q_rows;
    p->second = *piece;
    p->second.k_row += before;
    p->second.k_rows -= before;
    p->again = true;
    piece->kind = TRI_PIECE_FULL;
    piece->k_rows = before;
}

bool tri_cudnn_pieces_next(struct tri_cudnn_pieces *p, struct tri_attn_piece *out, bool *again)
{
    const struct tri_cudnn_call *c = p->call;
    *again = p->again;
    if (p->again) {
        p->again = false;
        *out = p->second;
        return true;
    }
    while (!tri_attn_walk_next(&p->walk, out)) {
        int64_t count = tri_min(c->chunk, c->q.dim[0] - p->next);
        if (count <= 0)
            return false;
        p->op.q_begin = c->op->q_begin + p->next;
        p->next += count;
        tri_attn_walk_begin(&p->walk, &p->op, count, c->k.dim[0]);
    }
    out->q_row += p->op.q_begin - c->op->q_begin;
    if (splits(c, out))
        split(p, out);
    return true;
}

bool tri_cudnn_pieces_next_square(struct tri_cudnn_pieces *p, int64_t rows,
                                  struct tri_attn_piece *out)
{
    bool again;
    while (tri_cudnn_pieces_next(p, out, &again))
        if (!again && joins(p->call, out) && tri_cudnn_rounded_rows(out->q_rows) == rows)
            return true;
    return false;
}

/* The tables of a batch start at a multiple of four entries, so that all are 16-byte aligned, and
 * have room for the end that follows the last one. */
static int64_t next_slot(const struct tri_cudnn_batch *batch)
{
    return batch->slot + (batch->padded ? (batch->b + 1 + 3) / 4 * 4 : 0);
}

static struct tri_cudnn_batch single(const struct tri_cudnn_call *c,
                                     const struct tri_attn_piece *piece, bool again, int64_t slot)
{
    bool exact = is_exact(c, piece);
    struct tri_cudnn_batch batch = {
        .ragged = !exact,
        .padded = !exact || (c->backward && piece->k_rows % SAFE_KEYS != 0),
        .causal = piece->kind == TRI_PIECE_CAUSAL,
        .windowed = piece->window > 0,
        .window = piece->window,
        .b = 1,
        .q_rows = exact ? piece->q_rows : tri_cudnn_rounded_rows(piece->q_rows),
        .k_rows = exact ? piece->k_rows : tri_cudnn_rounded_rows(piece->k_rows),
        .q_row = exact ? piece->q_row : 0,
        .k_row = exact ? piece->k_row : 0,
        .slot = slot,
        .count = 1,
        .piece = *piece,
        .aside = again || c->accumulate_dq,
    };
    batch.bottom_right = batch.causal && !tri_attn_piece_is_square(piece);
    return batch;
}

/* Entries of a ragged batch of squares that fit into what it may take. */
static int64_t batch_capacity(const struct tri_cudnn_call *c, int64_t rows)
{
    if (!c->backward)
        return MAX_BATCH;
    int64_t heads = c->group * (c->q.dim[1] / c->k.dim[1]), d = c->q.dim[2];
    int64_t row_bytes = heads * (4 * d + 4 + (c->q.dim[1] > c->k.dim[1] ? 4 * d : 0));
    int64_t capacity = 1;
    while (capacity < MAX_BATCH && 2 * capacity * rows * row_bytes <= c->most)
        capacity *= 2;
    return capacity;
}

static enum tri_status visit_squares(struct tri_cudnn_call *c, tri_cudnn_visit *visit, void *ctx,
                                     int64_t rows, int64_t *slot)
{
    struct tri_cudnn_pieces pieces;
    struct tri_attn_piece piece;
    int64_t count = 0, capacity = batch_capacity(c, rows);
    bool windowed = false;
    tri_cudnn_pieces_begin(&pieces, c);
    while (tri_cudnn_pieces_next_square(&pieces, rows, &piece)) {
        count++;
        windowed = windowed || piece.window > 0;
    }
    for (int64_t done = 0; done < count;) {
        int64_t left = count - done;
        struct tri_cudnn_batch batch = {
            .ragged = true,
            .padded = true,
            .causal = true,
            .windowed = windowed,
            .window = windowed ? c->op->window : 0,
            .b = left < capacity ? power_of_two_above(left) : capacity,
            .q_rows = rows,
            .k_rows = rows,
            .slot = *slot,
            .square = true,
            .done = done,
            .aside = c->accumulate_dq,
        };
        batch.count = tri_min(left, batch.b);
        *slot = next_slot(&batch);
        done += batch.count;
        TRI_TRY(visit(c, &batch, ctx));
    }
    return TRI_OK;
}

enum tri_status tri_cudnn_call_batches(struct tri_cudnn_call *c, tri_cudnn_visit *visit, void *ctx)
{
    struct tri_cudnn_pieces pieces;
    struct tri_attn_piece piece, squares = {.kind = TRI_PIECE_BLIND};
    int64_t slot = 0, longest = 0;
    bool again;
    tri_cudnn_pieces_begin(&pieces, c);
    while (tri_cudnn_pieces_next(&pieces, &piece, &again)) {
        if (piece.kind == TRI_PIECE_BLIND)
            continue;
        if (!again && joins(c, &piece)) { /* whole documents in a row */
            if (longest == 0)
                squares = piece;
            longest = piece.q_rows > longest ? piece.q_rows : longest;
            squares.q_rows = piece.q_row + piece.q_rows - squares.q_row;
            squares.k_rows = piece.k_row + piece.k_rows - squares.k_row;
            continue;
        }
        struct tri_cudnn_batch batch = single(c, &piece, again, slot);
        slot = next_slot(&batch);
        TRI_TRY(visit(c, &batch, ctx));
    }
    for (int64_t rows = SMALLEST_CLASS; longest > 0 && rows <= tri_cudnn_rounded_rows(longest);
         rows *= 2)
        TRI_TRY(visit_squares(c, visit, ctx, rows, &slot));
    c->slots = slot;
    c->squares = squares;
    return TRI_OK;
}

static struct tri_cudnn_strides strides(struct tri_view v)
{
    return (struct tri_cudnn_strides){v.stride[0], v.stride[1]};
}

void tri_cudnn_batch_shape(const struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                           struct tri_cudnn_sdpa *out)
{
    int64_t d = c->q.dim[2], q_heads = c->group * (c->q.dim[1] / c->k.dim[1]);
    memset(out, 0, sizeof *out); /* plans are compared as bytes */
    out->batch = batch->b;
    out->q_heads = q_heads;
    out->k_heads = c->group;
    out->q_rows = batch->q_rows;
    out->k_rows = batch->k_rows;
    out->head_size = d;
    out->q = strides(c->q);
    out->k = strides(c->k);
    out->v = strides(c->v);
    out->o = strides(c->o);
    out->lse = (struct tri_cudnn_strides){c->lse.stride[0], c->lse.stride[1]};
    if (!c->backward && batch->aside) {
        out->o = (struct tri_cudnn_strides){q_heads * d, d};
        out->lse = (struct tri_cudnn_strides){q_heads, 1};
    }
    out->causal = batch->causal;
    out->bottom_right = batch->bottom_right;
    out->window = batch->windowed;
    out->padded = batch->padded;
    out->ragged = batch->ragged;
    if (!c->backward)
        return;
    out->backward = true;
    out->deterministic = c->deterministic;
    out->dout = strides(c->dout);
    out->dq = batch->aside ? (struct tri_cudnn_strides){q_heads * d, d} : strides(c->dq);
    out->dkv = (struct tri_cudnn_strides){c->group * d, d};
}
