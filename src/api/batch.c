/* Layout, heads, and the batch that all layers of a step share. */
#include "api/batch.h"

#include <stdlib.h>

#include "base/hash.h"
#include "comm/gather.h"

static struct tri_layout layout_of(const struct tri_sp_shape *shape, int ranks)
{
    return (struct tri_layout){.tokens = shape->tokens, .chunk = shape->chunk, .ranks = ranks};
}

int64_t tri_sp_local_tokens(const struct tri_sp_shape *shape, int ranks, int rank)
{
    struct tri_layout layout = layout_of(shape, ranks);
    return tri_layout_local(&layout, rank);
}

int64_t tri_sp_token(const struct tri_sp_shape *shape, int ranks, int rank, int64_t local)
{
    struct tri_layout layout = layout_of(shape, ranks);
    /* Chunks have equal parts but the last; when parts are empty nothing is asked. */
    int64_t full = tri_layout_rows(&layout, 0, rank).count;
    int64_t i = full > 0 ? local / full : 0;
    if (i >= tri_layout_chunks(&layout))
        i = tri_layout_chunks(&layout) - 1;
    return tri_layout_part(&layout, i, rank).begin + local -
           tri_layout_rows(&layout, i, rank).begin;
}

enum tri_status tri_sp_heads(int64_t num_heads, int64_t num_kv_heads, int ranks, int rank,
                             struct tri_sp_heads *out)
{
    TRI_TRY(tri_heads_check(num_heads, num_kv_heads, ranks));
    struct tri_heads h = tri_heads_split(num_heads, num_kv_heads, ranks, rank);
    *out = (struct tri_sp_heads){.query_begin = h.query.begin,
                                 .query_count = h.query.count,
                                 .key_begin = h.key.begin,
                                 .key_count = h.key.count};
    return TRI_OK;
}

void tri_sp_positions(const int64_t *lengths, int64_t count, int64_t *positions)
{
    for (int64_t d = 0; d < count; d++)
        for (int64_t i = 0; i < lengths[d]; i++)
            *positions++ = i;
}

/* What each rank says of its batch, and whether it makes sense. */
enum { SAID_ROWS, SAID_TOKENS, SAID_CHUNK, SAID_LOCAL, SAID_POSITIONS, NUM_SAID };

static enum tri_status judge(const int64_t *first, const int64_t *said, int rank, int ranks)
{
    struct tri_sp_shape shape = {first[SAID_ROWS], first[SAID_TOKENS], first[SAID_CHUNK]};
    for (int i = SAID_ROWS; i <= SAID_CHUNK; i++)
        if (said[i] != first[i])
            return tri_fail(TRI_INVALID,
                            "rank %d of the sequence group has %lld rows of %lld tokens in chunks "
                            "of %lld, rank 0 has %lld of %lld in %lld: give all the same batch",
                            rank, (long long)said[SAID_ROWS], (long long)said[SAID_TOKENS],
                            (long long)said[SAID_CHUNK], (long long)shape.rows,
                            (long long)shape.tokens, (long long)shape.chunk);
    if (shape.rows < 1 || shape.tokens < 1 || shape.chunk < 0 ||
        shape.tokens > INT64_MAX / 64 / shape.rows)
        return tri_fail(TRI_INVALID, "a batch of %lld rows of %lld tokens in chunks of %lld",
                        (long long)shape.rows, (long long)shape.tokens, (long long)shape.chunk);
    int64_t local = tri_sp_local_tokens(&shape, ranks, rank);
    if (said[SAID_LOCAL] != local)
        return tri_fail(TRI_INVALID,
                        "rank %d of the sequence group holds %lld of the %lld tokens of a row, "
                        "in this layout it has %lld (tri_sp_local_tokens)",
                        rank, (long long)said[SAID_LOCAL], (long long)shape.tokens,
                        (long long)local);
    if (local > 0 && said[SAID_POSITIONS] == 0)
        return tri_fail(TRI_INVALID,
                        "rank %d of the sequence group has no position ids, and documents are "
                        "found by them: without packing they are 0 to S-1, packed ones restart "
                        "at each document (tri_sp_positions)",
                        rank);
    return TRI_OK;
}

static enum tri_status agree_on_shape(const struct tri_sp_batch *batch, int64_t local,
                                      bool positions)
{
    const struct tri_sp_shape *shape = &batch->shape;
    int64_t mine[NUM_SAID] = {shape->rows, shape->tokens, shape->chunk, local, positions};
    int64_t *all = malloc((size_t)(batch->layout.ranks * NUM_SAID) * sizeof *all);
    enum tri_status st = all != NULL ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for a batch");
    if (st == TRI_OK)
        st = tri_comm_gather(batch->sequence, mine, NUM_SAID, all);
    for (int r = 0; r < batch->layout.ranks && st == TRI_OK; r++)
        st = judge(all, all + r * NUM_SAID, r, batch->layout.ranks);
    free(all);
    return st;
}

/* ---- documents ---------------------------------------------------------------------------------
 *
 * A bit a token says whether it begins a document. Ranks set those of their own tokens, for which
 * they need one position of others: that of the token before each of their parts. */

struct search {
    const struct tri_sp_batch *batch;
    const int64_t *positions; /* (B, T) of this rank */
    int64_t chunks, words;    /* of a row */
    int64_t *last;            /* (B, chunks, P) position of the last token of each part */
    int64_t *bits;            /* (B, words) */
};

static int64_t *last_of(const struct search *s, int64_t row, int64_t chunk, int rank)
{
    return &s->last[(row * s->chunks + chunk) * s->batch->layout.ranks + rank];
}

static const int64_t *rows_of_chunk(const struct search *s, int64_t row, int64_t chunk)
{
    struct tri_range rows = tri_layout_rows(&s->batch->layout, chunk, s->batch->rank);
    return s->positions + row * s->batch->local + rows.begin;
}

/* Position of the token before part `rank` of a chunk; it is not the first of the row. */
static int64_t before(const struct search *s, int64_t row, int64_t chunk, int rank)
{
    const struct tri_layout *layout = &s->batch->layout;
    do {
        chunk -= rank == 0;
        rank = rank == 0 ? layout->ranks - 1 : rank - 1;
    } while (tri_layout_part(layout, chunk, rank).count == 0);
    return *last_of(s, row, chunk, rank);
}

/* The same rule as in data/batch.c, for the tokens of this rank. */
static void mark_begins(const struct search *s, int64_t row, int64_t chunk)
{
    int rank = s->batch->rank;
    struct tri_range part = tri_layout_part(&s->batch->layout, chunk, rank);
    const int64_t *positions = rows_of_chunk(s, row, chunk);
    for (int64_t i = 0; i < part.count; i++) {
        int64_t t = part.begin + i;
        uint64_t previous = t == 0  ? 0
                            : i > 0 ? (uint64_t)positions[i - 1]
                                    : (uint64_t)before(s, row, chunk, rank);
        if (t == 0 || (uint64_t)positions[i] != previous + 1)
            s->bits[row * s->words + t / 64] |= (int64_t)((uint64_t)1 << t % 64);
    }
}

/* Each element is set by one rank and zero on the others. */
static enum tri_status share(const struct tri_sp_batch *batch, int64_t *values, int64_t n)
{
    struct tri_comm *comm = batch->sequence;
    return comm != NULL ? comm->ops->reduce_host(comm, values, n, TRI_I64, TRI_SUM) : TRI_OK;
}

static enum tri_status search(const struct search *s)
{
    const struct tri_sp_batch *batch = s->batch;
    int64_t rows = batch->shape.rows;
    for (int64_t b = 0; b < rows; b++)
        for (int64_t i = 0; i < s->chunks; i++) {
            int64_t count = tri_layout_part(&batch->layout, i, batch->rank).count;
            if (count > 0)
                *last_of(s, b, i, batch->rank) = rows_of_chunk(s, b, i)[count - 1];
        }
    TRI_TRY(share(batch, s->last, rows * s->chunks * batch->layout.ranks));
    for (int64_t b = 0; b < rows; b++)
        for (int64_t i = 0; i < s->chunks; i++)
            mark_begins(s, b, i);
    return share(batch, s->bits, rows * s->words);
}

static void list_documents(struct tri_sp_batch *batch, const struct search *s)
{
    int64_t *begin = batch->documents;
    for (int64_t b = 0; b < batch->shape.rows; b++) {
        struct tri_batch *row = &batch->rows[b];
        *row = (struct tri_batch){.num_tokens = batch->shape.tokens, .doc_begin = begin};
        for (int64_t t = 0; t < batch->shape.tokens; t++)
            if ((uint64_t)s->bits[b * s->words + t / 64] >> t % 64 & 1)
                row->doc_begin[row->num_docs++] = t;
        row->doc_begin[row->num_docs] = batch->shape.tokens;
        begin += batch->shape.tokens + 1;
    }
}

static enum tri_status find_documents(struct tri_sp_batch *batch, const int64_t *positions)
{
    int64_t b = batch->shape.rows;
    struct search s = {.batch = batch,
                       .positions = positions,
                       .chunks = tri_layout_chunks(&batch->layout),
                       .words = (batch->shape.tokens + 63) / 64};
    s.last = calloc((size_t)(b * s.chunks * batch->layout.ranks), sizeof *s.last);
    s.bits = calloc((size_t)(b * s.words), sizeof *s.bits);
    batch->rows = calloc((size_t)b, sizeof *batch->rows);
    batch->documents = malloc((size_t)(b * (batch->shape.tokens + 1)) * sizeof *batch->documents);
    enum tri_status st = TRI_OK;
    if (s.last == NULL || s.bits == NULL || batch->rows == NULL || batch->documents == NULL)
        st = tri_fail(TRI_NOMEM, "no memory for the documents of %lld tokens",
                      (long long)(b * batch->shape.tokens));
    st = tri_comm_all_well(batch->sequence, st);
    if (st == TRI_OK)
        st = search(&s);
    if (st == TRI_OK)
        list_documents(batch, &s);
    free(s.last);
    free(s.bits);
    return st;
}

enum tri_status tri_sp_batch_open(struct tri_device *device, struct tri_comm *sequence,
                                  const struct tri_sp_shape *shape, int64_t local,
                                  const int64_t *positions, struct tri_sp_batch **out)
{
    int ranks = sequence != NULL ? sequence->size : 1;
    struct tri_sp_batch *batch = calloc(1, sizeof *batch);
    enum tri_status st = batch != NULL ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for a batch");
    st = tri_comm_all_well(sequence, st);
    if (st != TRI_OK) {
        free(batch);
        return st;
    }
    *batch = (struct tri_sp_batch){.device = device,
                                   .sequence = sequence,
                                   .shape = *shape,
                                   .layout = layout_of(shape, ranks),
                                   .rank = sequence != NULL ? sequence->rank : 0,
                                   .local = local};
    TRI_TRY_GOTO(st, agree_on_shape(batch, local, positions != NULL), close_batch);
    TRI_TRY_GOTO(st, find_documents(batch, positions), close_batch);
    *out = batch;
    return TRI_OK;

close_batch:
    tri_sp_batch_close(batch);
    return st;
}

void tri_sp_batch_close(struct tri_sp_batch *batch)
{
    if (batch == NULL)
        return;
    free(batch->rows);
    free(batch->documents);
    free(batch);
}

enum tri_status tri_sp_agree(struct tri_sp_batch *batch, const char *what, const int64_t *numbers,
                             int count)
{
    uint64_t hash = tri_hash_bytes(TRI_HASH_START, numbers, (size_t)count * sizeof *numbers);
    for (int i = 0; i < batch->num_agreed; i++)
        if (batch->agreed[i] == hash)
            return TRI_OK;
    if (batch->sequence != NULL)
        TRI_TRY(tri_comm_agree(batch->sequence, what, (int64_t)hash));
    batch->agreed[batch->num_agreed % TRI_SP_AGREED] = hash;
    if (batch->num_agreed < TRI_SP_AGREED)
        batch->num_agreed++;
    return TRI_OK;
}
