/* The pieces of an attention mask together are the mask. Needs no card. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/attn_cudnn_pieces.h"
#include "base/rng.h"

static bool sees(const struct tri_attn *op, int64_t query, int64_t key)
{
    bool one_document = true;
    for (int64_t d = 1; d < op->num_docs; d++)
        one_document = one_document && (query >= op->doc_begin[d]) == (key >= op->doc_begin[d]);
    return one_document && key <= query && (op->window == 0 || query - key < op->window);
}

static bool shown(const struct tri_attn_piece *piece, int64_t row, int64_t column)
{
    int64_t i = row - piece->q_row, j = column - piece->k_row;
    if (piece->kind == TRI_PIECE_BLIND || j < 0 || j >= piece->k_rows)
        return false;
    bool causal = piece->kind == TRI_PIECE_FULL || j <= i + piece->k_rows - piece->q_rows;
    return causal && (piece->window == 0 || j + piece->window > i);
}

static int check(const struct tri_attn *op, int64_t num_queries, int64_t num_keys)
{
    struct tri_attn_walk walk;
    struct tri_attn_piece piece;
    int64_t next = 0;
    int pieces = 0;
    tri_attn_walk_begin(&walk, op, num_queries, num_keys);
    while (tri_attn_walk_next(&walk, &piece)) {
        assert_int_equal(piece.q_row, next);
        assert_true(piece.q_rows > 0);
        if (piece.kind != TRI_PIECE_BLIND) {
            assert_true(piece.k_row >= 0 && piece.k_rows > 0);
            assert_true(piece.k_row + piece.k_rows <= num_keys);
            assert_true(piece.kind == TRI_PIECE_FULL || piece.k_rows >= piece.q_rows);
        }
        for (int64_t row = piece.q_row; row < piece.q_row + piece.q_rows; row++) {
            bool any = false;
            for (int64_t column = 0; column < num_keys; column++) {
                bool want = sees(op, op->q_begin + row, op->k_begin + column);
                assert_int_equal(shown(&piece, row, column), want);
                any = any || want;
            }
            assert_int_equal(any, piece.kind != TRI_PIECE_BLIND);
        }
        next += piece.q_rows;
        pieces++;
    }
    assert_int_equal(next, num_queries);
    return pieces;
}

static void test_whole_sequence_is_one_piece(void **state)
{
    (void)state;
    const int64_t docs[] = {0, 40};
    struct tri_attn op = {.doc_begin = docs, .num_docs = 1};
    assert_int_equal(check(&op, 40, 40), 1);
    op.window = 7;
    assert_int_equal(check(&op, 40, 40), 1);
    op.q_begin = 30; /* a chunk against the whole prefix */
    assert_int_equal(check(&op, 10, 40), 1);
    assert_int_equal(check(&op, 10, 30), 2); /* the window leaves the keys behind */
}

static void test_empty(void **state)
{
    (void)state;
    const int64_t docs[] = {0, 40};
    struct tri_attn op = {.doc_begin = docs, .num_docs = 1};
    assert_int_equal(check(&op, 0, 0), 0);
    assert_int_equal(check(&op, 5, 0), 1);
}

struct dice {
    uint64_t round, next;
};

static int64_t draw(struct dice *dice, int64_t sides)
{
    uint32_t words[4];
    tri_rng_words(71, dice->round, dice->next++, words);
    return (int64_t)(words[0] % (uint32_t)sides);
}

static void test_any_documents_ranges_windows(void **state)
{
    (void)state;
    enum { TOKENS = 48, ROUNDS = 4000 };
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct dice dice = {.round = round};
        int64_t docs[TOKENS + 1] = {0}, num_docs = 0;
        while (docs[num_docs] < TOKENS && num_docs < TOKENS) {
            int64_t length = 1 + draw(&dice, round % 3 == 0 ? 3 : 24);
            int64_t end = docs[num_docs] + length;
            docs[++num_docs] = end < TOKENS ? end : TOKENS;
        }
        int64_t q_begin = draw(&dice, TOKENS), k_begin = draw(&dice, TOKENS);
        struct tri_attn op = {.q_begin = q_begin,
                              .k_begin = k_begin,
                              .window = round % 2 == 0 ? 1 + draw(&dice, 20) : 0,
                              .doc_begin = docs,
                              .num_docs = num_docs};
        int64_t num_queries = 1 + draw(&dice, TOKENS - q_begin);
        check(&op, num_queries, draw(&dice, TOKENS - k_begin + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_sequence_is_one_piece),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_any_documents_ranges_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
