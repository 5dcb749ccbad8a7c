#include "verify/proof/pieces.h"

#include <inttypes.h>
#include <string.h>

#include "base/minmax.h"

/* The share of all tokens that each document gets at most: uneven, so that replicas and
 * micro-batches have different numbers of trained tokens. */
static const double shares[TRI_SUBJECT_DOCS] = {0.4, 0.3, 0.2, 0.1};

/* Where to begin in a document with labels (S): at its first token, or so late that half of `most`
 * tokens are trained if they can be. False if nothing is trained. */
static bool find_begin(const int32_t *labels, int64_t tokens, int64_t most, int64_t *begin)
{
    int64_t first = 0;
    while (first < tokens && labels[first] < 0)
        first++;
    if (first == tokens)
        return false;
    *begin = first < most / 2 ? 0 : first - most / 2;
    return true;
}

/* A batch of tokens [begin, begin + count) of a document, positions from 0. */
static enum tri_status copy_piece(const struct tri_batch *from, int64_t begin, int64_t count,
                                  struct tri_batch *out)
{
    struct tri_batch piece;
    TRI_TRY(tri_batch_open(count, &piece));
    piece.num_tokens = count;
    memcpy(piece.ids, from->ids + begin, (size_t)count * sizeof *piece.ids);
    memcpy(piece.labels, from->labels + begin, (size_t)count * sizeof *piece.labels);
    piece.labels[count - 1] = TRI_IGNORE_LABEL;
    for (int64_t i = 0; i < count; i++)
        piece.positions[i] = i;
    enum tri_status st = tri_batch_finish_shifted(&piece);
    if (st != TRI_OK) {
        tri_batch_close(&piece);
        return st;
    }
    *out = piece;
    return TRI_OK;
}

/* Take what a document has to give, if that can be trained. */
static enum tri_status take_document(struct tri_subject *s, const struct tri_batch *batch,
                                     int64_t doc, int64_t tokens, int *taken)
{
    int64_t at = batch->doc_begin[doc];
    int64_t length = batch->doc_begin[doc + 1] - at;
    int64_t most = (int64_t)(shares[*taken] * (double)tokens);
    int64_t begin;
    struct tri_batch piece;
    if (length < 2 || !find_begin(batch->labels + at, length, most, &begin))
        return TRI_OK;
    int64_t count = tri_min(length - begin, most);
    TRI_TRY(copy_piece(batch, at + begin, count, &piece));
    if (piece.num_trained == 0) {
        tri_batch_close(&piece);
        return TRI_OK;
    }
    s->shortened += count < length;
    s->docs[(*taken)++] = piece;
    return TRI_OK;
}

/* The longest document in two halves, of which the first takes its place. */
static enum tri_status cut_longest(struct tri_subject *s, int *taken)
{
    int longest = 0;
    struct tri_batch first, second;
    for (int i = 1; i < *taken; i++)
        if (s->docs[i].num_tokens > s->docs[longest].num_tokens)
            longest = i;
    const struct tri_batch *doc = &s->docs[longest];
    int64_t half = doc->num_tokens / 2;
    if (half < 2)
        return tri_fail(TRI_INVALID, "verify: the first documents of the data have too few tokens "
                                     "to divide among ranks: give longer ones");
    TRI_TRY(copy_piece(doc, 0, half, &first));
    enum tri_status st = copy_piece(doc, half, doc->num_tokens - half, &second);
    if (st != TRI_OK) {
        tri_batch_close(&first);
        return st;
    }
    tri_batch_close(&s->docs[longest]);
    s->docs[longest] = first;
    s->docs[(*taken)++] = second;
    s->shortened++;
    return TRI_OK;
}

enum tri_status tri_pieces_take(struct tri_subject *s, int64_t tokens)
{
    int taken = 0;
    /* Steps go on across epochs for ever: a small set of data gives its documents again. */
    for (int step = 0; step < TRI_SUBJECT_DOCS && taken < TRI_SUBJECT_DOCS; step++) {
        struct tri_step_data data;
        if (tri_loader_position(s->run->loader).epoch > 0)
            break;
        TRI_TRY(tri_loader_next(s->run->loader, &data));
        for (int64_t b = 0; b < data.num_batches; b++)
            for (int64_t d = 0; d < data.batches[b].num_docs && taken < TRI_SUBJECT_DOCS; d++)
                TRI_TRY(take_document(s, &data.batches[b], d, tokens, &taken));
    }
    if (taken == 0)
        return tri_fail(TRI_INVALID, "verify: the first steps of the data have no document of two "
                                     "tokens with one to train on");
    while (taken < TRI_SUBJECT_DOCS)
        TRI_TRY(cut_longest(s, &taken));
    for (int i = 0; i < TRI_SUBJECT_DOCS; i++)
        s->tokens += s->docs[i].num_tokens;
    return TRI_OK;
}

enum tri_status tri_subject_batch(const struct tri_subject *s, int first, int count,
                                  struct tri_batch *out)
{
    struct tri_batch batch;
    int64_t tokens = 0;
    for (int i = first; i < first + count; i++)
        tokens += s->docs[i].num_tokens;
    TRI_TRY(tri_batch_open(tokens, &batch));
    for (int i = first; i < first + count; i++) {
        const struct tri_batch *doc = &s->docs[i];
        size_t n = (size_t)doc->num_tokens;
        memcpy(batch.ids + batch.num_tokens, doc->ids, n * sizeof *batch.ids);
        memcpy(batch.labels + batch.num_tokens, doc->labels, n * sizeof *batch.labels);
        memcpy(batch.positions + batch.num_tokens, doc->positions, n * sizeof *batch.positions);
        batch.num_tokens += doc->num_tokens;
    }
    enum tri_status st = tri_batch_finish_shifted(&batch);
    if (st != TRI_OK) {
        tri_batch_close(&batch);
        return st;
    }
    *out = batch;
    return TRI_OK;
}
