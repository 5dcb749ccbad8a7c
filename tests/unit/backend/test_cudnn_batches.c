/* A call's batches cover every pair of query and key that the mask shows, once, and no other.
 * Needs no card and no library: nothing is queued. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/attn_cudnn_call.h"
#include "base/rng.h"

enum { TOKENS = 1400 };

static struct tri_cuda card;
static struct tri_stream stream;
static struct tri_cudnn_attn engine;

static int64_t draw(uint64_t round, uint64_t *next, int64_t sides)
{
    uint32_t words[4];
    tri_rng_words(72, round, (*next)++, words);
    return (int64_t)(words[0] % (uint32_t)sides);
}

struct cover {
    unsigned char *seen; /* (TOKENS, TOKENS): times that a pair is covered */
    bool *written;       /* (TOKENS): dq of the query holds something */
    struct tri_cudnn_pieces squares;
    int64_t slot; /* the first that is free */
    int batches, ragged;
};

/* Count the pairs of one entry, as its plan would see them. */
static void count(struct cover *cover, const struct tri_cudnn_batch *batch,
                  const struct tri_attn_piece *piece)
{
    int64_t shift = batch->bottom_right ? piece->k_rows - piece->q_rows : 0;
    for (int64_t i = 0; i < piece->q_rows; i++) {
        for (int64_t j = 0; j < piece->k_rows; j++) {
            bool shown =
                (!batch->causal || j <= i + shift) && (!batch->windowed || j + batch->window > i);
            cover->seen[(piece->q_row + i) * TOKENS + piece->k_row + j] += shown;
        }
        /* The first to write dq may overwrite, later ones must add. */
        assert_true(batch->aside || !cover->written[piece->q_row + i]);
        cover->written[piece->q_row + i] = true;
    }
}

static enum tri_status visit(struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                             void *ctx)
{
    struct cover *cover = ctx;
    cover->batches++;
    cover->ragged += batch->ragged;
    assert_true(batch->slot >= cover->slot && batch->slot % 4 == 0);
    if (batch->padded)
        cover->slot = batch->slot + batch->b + 1;
    assert_true(batch->count >= 1 && batch->count <= batch->b);
    if (!batch->square) {
        assert_true(batch->piece.q_rows <= batch->q_rows && batch->piece.k_rows <= batch->k_rows);
        count(cover, batch, &batch->piece);
        return TRI_OK;
    }
    assert_true(batch->ragged && batch->padded && batch->causal && !batch->bottom_right);
    if (batch->done == 0)
        tri_cudnn_pieces_begin(&cover->squares, c);
    for (int64_t i = 0; i < batch->count; i++) {
        struct tri_attn_piece piece;
        assert_true(tri_cudnn_pieces_next_square(&cover->squares, batch->q_rows, &piece));
        assert_true(piece.q_rows <= batch->q_rows);
        count(cover, batch, &piece);
    }
    return TRI_OK;
}

static bool sees(const struct tri_attn *op, const int64_t *doc_of, int64_t query, int64_t key)
{
    return doc_of[query] == doc_of[key] && key <= query &&
           (op->window == 0 || query - key < op->window);
}

static void check(struct tri_cudnn_call *c, struct cover *cover)
{
    int64_t doc_of[2 * TOKENS];
    memset(cover->seen, 0, (size_t)TOKENS * TOKENS);
    memset(cover->written, 0, TOKENS * sizeof(bool));
    cover->slot = 0;
    cover->batches = cover->ragged = 0;
    assert_int_equal(tri_cudnn_call_batches(c, visit, cover), TRI_OK);
    assert_true(c->slots >= cover->slot);
    for (int64_t d = 0; d < c->op->num_docs; d++)
        for (int64_t t = c->op->doc_begin[d]; t < c->op->doc_begin[d + 1] && t < 2 * TOKENS; t++)
            doc_of[t] = d;
    for (int64_t i = 0; i < c->q.dim[0]; i++)
        for (int64_t j = 0; j < c->k.dim[0]; j++)
            assert_int_equal(cover->seen[i * TOKENS + j],
                             sees(c->op, doc_of, c->op->q_begin + i, c->op->k_begin + j));
}

static void test_any_call(void **state)
{
    struct cover cover = {.seen = malloc((size_t)TOKENS * TOKENS),
                          .written = malloc(TOKENS * sizeof(bool))};
    int ragged = 0;
    (void)state;
    assert_non_null(cover.seen);
    assert_non_null(cover.written);
    for (uint64_t round = 0; round < 60; round++) {
        static int64_t docs[TOKENS + 1];
        uint64_t next = 0;
        int64_t num_docs = 0, longest = round % 4 == 0 ? TOKENS : round % 4 == 1 ? 20 : 700;
        docs[0] = 0;
        while (docs[num_docs] < TOKENS) {
            int64_t end = docs[num_docs] + 1 + draw(round, &next, longest);
            docs[++num_docs] = end < TOKENS ? end : TOKENS;
        }
        int64_t q_begin = draw(round, &next, TOKENS / 2), k_begin = draw(round, &next, 3) * 100;
        struct tri_attn op = {.q_begin = q_begin,
                              .k_begin = k_begin,
                              .window = round % 5 == 0 ? 1 + draw(round, &next, 200) : 0,
                              .doc_begin = docs,
                              .num_docs = num_docs,
                              .deterministic = round % 3 == 0};
        int64_t tq = TOKENS - q_begin - draw(round, &next, 300);
        int64_t tk = TOKENS - k_begin - draw(round, &next, 500);
        struct tri_cudnn_call c = {.engine = &engine,
                                   .s = &stream,
                                   .op = &op,
                                   .backward = round % 2 == 0,
                                   .accumulate_dq = round % 7 == 0,
                                   .q = {.dim = {tq, 8, 64}},
                                   .k = {.dim = {tk, 2, 64}},
                                   .group = 2,
                                   .chunk = tq,
                                   .most = 1 << 20};
        c.deterministic = c.backward && op.deterministic;
        if (c.deterministic)
            c.chunk = 64;
        check(&c, &cover);
        ragged += cover.ragged;
    }
    assert_true(ragged > 0);
    free(cover.seen);
    free(cover.written);
}

/* Backward of a chunk and its prefix is a full and a causal batch; forward is one. */
static void test_prefix(void **state)
{
    (void)state;
    static const int64_t docs[] = {0, TOKENS};
    struct cover cover = {.seen = malloc((size_t)TOKENS * TOKENS),
                          .written = malloc(TOKENS * sizeof(bool))};
    struct tri_attn op = {.q_begin = 1000, .doc_begin = docs, .num_docs = 1};
    struct tri_cudnn_call c = {.engine = &engine,
                               .s = &stream,
                               .op = &op,
                               .q = {.dim = {400, 8, 64}},
                               .k = {.dim = {1400, 2, 64}},
                               .group = 2,
                               .chunk = 400};
    assert_non_null(cover.seen);
    assert_non_null(cover.written);
    check(&c, &cover);
    assert_int_equal(cover.batches, 1);
    c.backward = true;
    check(&c, &cover);
    assert_int_equal(cover.batches, 2);
    assert_int_equal(cover.ragged, 0);
    free(cover.seen);
    free(cover.written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_call),
        cmocka_unit_test(test_prefix),
    };
    card.info.capability = 90;
    stream.cuda = &card;
    engine.api.version = 91900;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
