#include "api/lm_batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more batch of `tokens`. */
static enum tri_status next_batch(struct tri_lm_batches *b, int64_t tokens, struct tri_batch **out)
{
    if (b->count == b->room) {
        int64_t room = b->room > 0 ? 2 * b->room : 8;
        struct tri_batch *list = realloc(b->list, (size_t)room * sizeof *list);
        if (list == NULL)
            return tri_fail(TRI_NOMEM, "no memory for %" PRId64 " micro-batches", room);
        memset(list + b->room, 0, (size_t)(room - b->room) * sizeof *list);
        b->list = list;
        b->room = room;
    }
    struct tri_batch *batch = &b->list[b->count];
    if (batch->max_tokens < tokens) {
        tri_batch_close(batch);
        TRI_TRY(tri_batch_open(tokens, batch));
    }
    tri_batch_clear(batch);
    *out = batch;
    return TRI_OK;
}

static enum tri_status check_shape(const struct tri_shard *shard, int ranks, int rank)
{
    const struct tri_sp_shape *s = &shard->shape;
    if (s->rows < 1 || s->tokens < 1 || s->chunk < 0 || s->tokens > INT64_MAX / 64 / s->rows ||
        shard->local != tri_sp_local_tokens(s, ranks, rank))
        return tri_fail(TRI_INVALID,
                        "a shard of %" PRId64 " x %" PRId64 " tokens with %" PRId64
                        " here: not the layout of rank %d of %d (tri_sp_local_tokens)",
                        s->rows, s->tokens, shard->local, rank, ranks);
    if (s->rows > 1 && s->chunk > 0 && s->chunk < s->tokens && s->tokens % s->chunk != 0)
        return tri_fail(TRI_UNSUPPORTED,
                        "%" PRId64 " rows of %" PRId64 " tokens in chunks of %" PRId64
                        ": with several rows a chunk must divide a row; use one row, or another "
                        "chunk",
                        s->rows, s->tokens, s->chunk);
    if (shard->input_ids == NULL || shard->shift_labels == NULL || shard->doc_begin == NULL ||
        shard->doc_position == NULL || shard->num_docs < 1 || shard->doc_begin[0] != 0 ||
        shard->doc_begin[shard->num_docs] != s->rows * s->tokens)
        return tri_fail(TRI_INVALID, "a shard needs input_ids, shift_labels, and documents that "
                                     "cover its tokens");
    return TRI_OK;
}

/* Documents, and positions of all tokens, which follow from them. */
static enum tri_status copy_documents(struct tri_batch *batch, const struct tri_shard *shard)
{
    for (int64_t d = 0; d < shard->num_docs; d++) {
        int64_t begin = shard->doc_begin[d];
        int64_t end = shard->doc_begin[d + 1];
        if (end <= begin || end > batch->num_tokens)
            return tri_fail(TRI_INVALID, "document %" PRId64 " of a shard ends at token %" PRId64,
                            d, end);
        for (int64_t t = begin; t < end; t++)
            batch->positions[t] = shard->doc_position[d] + (t - begin);
        batch->doc_begin[d] = begin;
    }
    batch->doc_begin[shard->num_docs] = batch->num_tokens;
    batch->num_docs = shard->num_docs;
    return TRI_OK;
}

static enum tri_status copy_tokens(struct tri_batch *batch, const struct tri_shard *shard,
                                   int64_t vocab, int ranks, int rank)
{
    for (int64_t t = 0; t < batch->num_tokens; t++) {
        batch->ids[t] = 0;
        batch->labels[t] = TRI_IGNORE_LABEL;
    }
    for (int64_t b = 0; b < shard->shape.rows; b++)
        for (int64_t t = 0; t < shard->local; t++) {
            int64_t token = tri_sp_token(&shard->shape, ranks, rank, t);
            int64_t to = b * shard->shape.tokens + token;
            int32_t id = shard->input_ids[b * shard->local + t];
            int32_t label = shard->shift_labels[b * shard->local + t];
            if (id < 0 || id >= vocab || label >= vocab)
                return tri_fail(TRI_INVALID,
                                "token %" PRId64 " of row %" PRId64 " has id %" PRId32
                                " and label %" PRId32 ", the vocabulary %" PRId64
                                " entries: another tokenizer?",
                                token, b, id, label, vocab);
            batch->ids[to] = id;
            batch->labels[to] = label < 0 ? TRI_IGNORE_LABEL : label;
        }
    return TRI_OK;
}

enum tri_status tri_lm_batches_add(struct tri_lm_batches *batches, const struct tri_shard *shard,
                                   int64_t vocab, int ranks, int rank)
{
    struct tri_batch *batch = NULL;
    const struct tri_sp_shape *s = &shard->shape;
    TRI_TRY(check_shape(shard, ranks, rank));
    TRI_TRY(next_batch(batches, s->rows * s->tokens, &batch));
    batch->num_tokens = s->rows * s->tokens;
    batch->num_trained = shard->trained;
    /* Each row is split by itself, so that a row, or a chunk of it, is a chunk of the batch. */
    batch->chunk = s->chunk > 0 && s->chunk < s->tokens ? s->chunk : s->tokens;
    TRI_TRY(copy_documents(batch, shard));
    TRI_TRY(copy_tokens(batch, shard, vocab, ranks, rank));
    batches->count++;
    return TRI_OK;
}

void tri_lm_batches_close(struct tri_lm_batches *batches)
{
    for (int64_t i = 0; i < batches->room; i++)
        tri_batch_close(&batches->list[i]);
    free(batches->list);
    *batches = (struct tri_lm_batches){.list = NULL};
}
