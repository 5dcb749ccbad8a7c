#include "data/batch.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

enum tri_status tri_batch_open(int64_t max_tokens, struct tri_batch *out)
{
    if (max_tokens < 1 || (uint64_t)max_tokens > SIZE_MAX / sizeof(int64_t) - 1)
        return tri_fail(TRI_INVALID, "a batch of %" PRId64 " tokens cannot be made: at least 1",
                        max_tokens);
    struct tri_batch batch = {.max_tokens = max_tokens};
    const size_t n = (size_t)max_tokens;
    batch.ids = malloc(n * sizeof *batch.ids);
    batch.labels = malloc(n * sizeof *batch.labels);
    batch.positions = malloc(n * sizeof *batch.positions);
    batch.doc_begin = malloc((n + 1) * sizeof *batch.doc_begin);
    if (!batch.ids || !batch.labels || !batch.positions || !batch.doc_begin) {
        tri_batch_close(&batch);
        return tri_fail(TRI_NOMEM,
                        "no memory for a batch of %" PRId64 " tokens (%s): lower "
                        "data.max_length or micro_batch_size",
                        max_tokens, tri_bytes((double)max_tokens * 24).s);
    }
    batch.doc_begin[0] = 0;
    tri_batch_clear(&batch);
    *out = batch;
    return TRI_OK;
}

void tri_batch_close(struct tri_batch *batch)
{
    free(batch->ids);
    free(batch->labels);
    free(batch->positions);
    free(batch->doc_begin);
    memset(batch, 0, sizeof *batch);
}

void tri_batch_clear(struct tri_batch *batch)
{
    batch->num_tokens = 0;
    batch->num_docs = 0;
    batch->num_trained = 0;
    batch->identity = TRI_HASH_START;
}

/* The one definition of a document's first token. Unsigned, since positions may be anything. */
static bool begins_document(const int64_t *positions, int64_t t)
{
    return t == 0 || (uint64_t)positions[t] != (uint64_t)positions[t - 1] + 1;
}

/* Find the documents among the tokens from `from`, after `num_docs` that are known. */
static void find_documents(struct tri_batch *batch, int64_t from)
{
    for (int64_t t = from; t < batch->num_tokens; t++)
        if (begins_document(batch->positions, t))
            batch->doc_begin[batch->num_docs++] = t;
    batch->doc_begin[batch->num_docs] = batch->num_tokens;
}

static void count_trained(struct tri_batch *batch, int64_t from)
{
    for (int64_t t = from; t < batch->num_tokens; t++)
        batch->num_trained += batch->labels[t] >= 0;
}

static enum tri_status check_size(const struct tri_batch *batch)
{
    if (batch->num_tokens < 1)
        return tri_fail(TRI_INVALID, "a batch needs at least one token, this one has %" PRId64,
                        batch->num_tokens);
    if (batch->max_tokens > 0 && batch->num_tokens > batch->max_tokens)
        return tri_fail(TRI_INTERNAL, "batch of %" PRId64 " tokens in room for %" PRId64,
                        batch->num_tokens, batch->max_tokens);
    return TRI_OK;
}

enum tri_status tri_batch_extend(struct tri_batch *batch, int64_t count)
{
    const int64_t from = batch->num_tokens;
    const int64_t first_doc = batch->num_docs;
    if (count < 1 || (batch->max_tokens > 0 && count > batch->max_tokens - from))
        return tri_fail(TRI_INTERNAL,
                        "%" PRId64 " tokens were added to a batch of %" PRId64 " with room for "
                        "%" PRId64,
                        count, from, batch->max_tokens);
    if (!begins_document(batch->positions, from))
        return tri_fail(TRI_INTERNAL,
                        "position %" PRId64 " of an added sequence continues the one before",
                        batch->positions[from]);
    batch->num_tokens += count;
    find_documents(batch, from);
    for (int64_t d = first_doc; d < batch->num_docs; d++) {
        const int64_t begin = batch->doc_begin[d];
        const int64_t last = batch->doc_begin[d + 1] - 1;
        memmove(batch->labels + begin, batch->labels + begin + 1,
                (size_t)(last - begin) * sizeof *batch->labels);
        batch->labels[last] = TRI_IGNORE_LABEL;
    }
    count_trained(batch, from);
    return TRI_OK;
}

enum tri_status tri_batch_finish(struct tri_batch *batch)
{
    TRI_TRY(check_size(batch));
    const int64_t count = batch->num_tokens;
    batch->num_tokens = batch->num_docs = batch->num_trained = 0;
    return tri_batch_extend(batch, count);
}

enum tri_status tri_batch_finish_shifted(struct tri_batch *batch)
{
    TRI_TRY(check_size(batch));
    batch->num_docs = batch->num_trained = 0;
    find_documents(batch, 0);
    for (int64_t d = 0; d < batch->num_docs; d++) {
        const int64_t last = batch->doc_begin[d + 1] - 1;
        if (batch->labels[last] >= 0)
            return tri_fail(TRI_INVALID,
                            "the last token of document %" PRId64 " (token %" PRId64
                            ") has label %" PRId32
                            ", but it predicts nothing: are these labels not shifted yet?",
                            d, last, batch->labels[last]);
    }
    count_trained(batch, 0);
    return TRI_OK;
}

double tri_batch_attended_pairs(const struct tri_batch *batch, int64_t window)
{
    double pairs = 0;
    for (int64_t d = 0; d < batch->num_docs; d++) {
        const int64_t length = batch->doc_begin[d + 1] - batch->doc_begin[d];
        /* Query i sees min(i + 1, window) keys: a triangle, then a band. */
        const int64_t ramp = window > 0 && window < length ? window : length;
        pairs += (double)ramp * (double)(ramp + 1) / 2 + (double)(length - ramp) * (double)ramp;
    }
    return pairs;
}
