#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/batch.h"

/* Fill a batch from unshifted labels. */
static void fill(struct tri_batch *batch, int64_t n, const int32_t *labels,
                 const int64_t *positions)
{
    batch->num_tokens = n;
    for (int64_t t = 0; t < n; t++) {
        batch->ids[t] = (int32_t)(100 + t);
        batch->labels[t] = labels[t];
        batch->positions[t] = positions[t];
    }
}

static void test_shift_of_one_document(void **state)
{
    (void)state;
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(4, &batch), TRI_OK);
    fill(&batch, 4, (int32_t[]){10, 11, -100, 13}, (int64_t[]){0, 1, 2, 3});
    assert_int_equal(tri_batch_finish(&batch), TRI_OK);
    const int32_t want[] = {11, -100, 13, -100};
    assert_memory_equal(batch.labels, want, sizeof want);
    assert_int_equal(batch.num_docs, 1);
    assert_int_equal(batch.doc_begin[0], 0);
    assert_int_equal(batch.doc_begin[1], 4);
    assert_int_equal(batch.num_trained, 2);
    tri_batch_close(&batch);
    assert_null(batch.ids);
}

static void test_documents_do_not_predict_each_other(void **state)
{
    (void)state;
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(16, &batch), TRI_OK);
    /* Three documents: 3 tokens, 1 token, 2 tokens. */
    fill(&batch, 6, (int32_t[]){1, 2, 3, 4, 5, 6}, (int64_t[]){0, 1, 2, 0, 0, 1});
    assert_int_equal(tri_batch_finish(&batch), TRI_OK);
    const int32_t want[] = {2, 3, -100, -100, 6, -100};
    assert_memory_equal(batch.labels, want, sizeof want);
    const int64_t begin[] = {0, 3, 4, 6};
    assert_int_equal(batch.num_docs, 3);
    assert_memory_equal(batch.doc_begin, begin, sizeof begin);
    assert_int_equal(batch.num_trained, 3);
    tri_batch_close(&batch);
}

static void test_any_jump_of_positions_begins_a_document(void **state)
{
    (void)state;
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(6, &batch), TRI_OK);
    fill(&batch, 6, (int32_t[]){1, 2, 3, 4, 5, 6}, (int64_t[]){7, 8, 10, 11, 11, 12});
    assert_int_equal(tri_batch_finish(&batch), TRI_OK);
    const int64_t begin[] = {0, 2, 4, 6};
    assert_int_equal(batch.num_docs, 3);
    assert_memory_equal(batch.doc_begin, begin, sizeof begin);
    tri_batch_close(&batch);
}

static void test_labels_that_are_shifted_already(void **state)
{
    (void)state;
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(4, &batch), TRI_OK);
    fill(&batch, 4, (int32_t[]){2, -100, 4, -100}, (int64_t[]){0, 1, 0, 1});
    assert_int_equal(tri_batch_finish_shifted(&batch), TRI_OK);
    const int32_t want[] = {2, -100, 4, -100};
    assert_memory_equal(batch.labels, want, sizeof want);
    assert_int_equal(batch.num_docs, 2);
    assert_int_equal(batch.num_trained, 2);

    batch.labels[1] = 3; /* crosses from document 0 into document 1 */
    assert_int_equal(tri_batch_finish_shifted(&batch), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "document 0 (token 1)"));
    tri_batch_close(&batch);
}

static void test_sizes_are_checked(void **state)
{
    (void)state;
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(0, &batch), TRI_INVALID);
    assert_int_equal(tri_batch_open(INT64_MAX, &batch), TRI_INVALID);
    assert_int_equal(tri_batch_open(2, &batch), TRI_OK);
    assert_int_equal(tri_batch_finish(&batch), TRI_INVALID); /* empty */
    batch.num_tokens = 3;
    assert_int_equal(tri_batch_finish(&batch), TRI_INTERNAL); /* more than there is room for */
    tri_batch_close(&batch);
}

/* What attention does, pair by pair. */
static double pairs_one_by_one(const struct tri_batch *batch, int64_t window)
{
    double pairs = 0;
    for (int64_t d = 0; d < batch->num_docs; d++)
        for (int64_t q = batch->doc_begin[d]; q < batch->doc_begin[d + 1]; q++)
            for (int64_t k = batch->doc_begin[d]; k <= q; k++)
                pairs += window == 0 || q - k < window;
    return pairs;
}

static void test_attended_pairs(void **state)
{
    (void)state;
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(64, &batch), TRI_OK);
    batch.num_tokens = 64;
    for (int64_t t = 0; t < 64; t++) {
        batch.ids[t] = batch.labels[t] = 0;
        batch.positions[t] = t < 40 ? t : t < 41 ? 0 : t - 41; /* 40, 1 and 23 tokens */
    }
    assert_int_equal(tri_batch_finish(&batch), TRI_OK);
    assert_int_equal(batch.num_docs, 3);
    for (int64_t window = 0; window <= 65; window++)
        assert_true(tri_batch_attended_pairs(&batch, window) == pairs_one_by_one(&batch, window));
    tri_batch_close(&batch);

    /* Two documents of 2^40 tokens: no array of tokens is looked at, and nothing overflows. */
    int64_t begin[] = {0, INT64_C(1) << 40, INT64_C(1) << 41};
    struct tri_batch huge = {.num_tokens = begin[2], .doc_begin = begin, .num_docs = 2};
    const double n = (double)begin[1];
    assert_true(tri_batch_attended_pairs(&huge, 0) == n * (n + 1));
    assert_true(tri_batch_attended_pairs(&huge, 4) == 2 * (10 + (n - 4) * 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shift_of_one_document),
        cmocka_unit_test(test_documents_do_not_predict_each_other),
        cmocka_unit_test(test_any_jump_of_positions_begins_a_document),
        cmocka_unit_test(test_labels_that_are_shifted_already),
        cmocka_unit_test(test_sizes_are_checked),
        cmocka_unit_test(test_attended_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
