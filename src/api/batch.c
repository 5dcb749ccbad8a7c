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

/* Position ids of whole rows from everybody's parts, then their documents. */
static enum tri_status find_documents(struct tri_sp_batch *batch, const int64_t *positions)
{
    int64_t s = batch->shape.tokens;
    int64_t b = batch->shape.rows;
    int64_t *all = calloc((size_t)(b * s), sizeof *all);
    int32_t *labels = calloc((size_t)s, sizeof *labels);
    batch->rows = calloc((size_t)b, sizeof *batch->rows);
    batch->documents = malloc((size_t)(b * (s + 1)) * sizeof *batch->documents);
    enum tri_status st = TRI_OK;
    if (all == NULL || labels == NULL || batch->rows == NULL || batch->documents == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory for the documents of %lld tokens", (long long)(b * s));
        goto free_all;
    }
    for (int64_t i = 0; i < b; i++)
        for (int64_t t = 0; t < batch->local; t++)
            all[i * s + tri_sp_token(&batch->shape, batch->layout.ranks, batch->rank, t)] =
                positions[i * batch->local + t];
    if (batch->sequence != NULL)
        TRI_TRY_GOTO(
            st, batch->sequence->ops->reduce_host(batch->sequence, all, b * s, TRI_I64, TRI_SUM),
            free_all);
    for (int64_t i = 0; i < b; i++) {
        struct tri_batch *row = &batch->rows[i];
        *row = (struct tri_batch){.num_tokens = s,
                                  .labels = labels,
                                  .positions = all + i * s,
                                  .doc_begin = batch->documents + i * (s + 1)};
        TRI_TRY_GOTO(st, tri_batch_finish(row), free_all);
        row->labels = NULL;
        row->positions = NULL;
    }
free_all:
    free(all);
    free(labels);
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
    st = tri_comm_all_well(sequence, find_documents(batch, positions));
    if (st != TRI_OK)
        goto close_batch;
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
