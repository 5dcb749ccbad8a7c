#include "unit/scratch.h"

#include "text/tokenizer.h"

static const struct tri_token_ids with_specials = {
    .vocab = 260, .bos = 256, .eos = 257, .pad = 258};

static void test_bytes(void **state)
{
    (void)state;
    struct tri_tokenizer *tokenizer;
    assert_int_equal(tri_byte_tokenizer_open(&with_specials, &tokenizer), TRI_OK);
    assert_string_equal(tokenizer->name, "bytes");
    assert_int_equal(tokenizer->vocab, 260);
    assert_int_equal(tokenizer->bos, 256);
    assert_int_equal(tokenizer->eos, 257);
    assert_int_equal(tokenizer->pad, 258);

    const char text[] = "a\xC3\xBC\0z";
    int64_t tokens;
    assert_int_equal(tokenizer->count(tokenizer, text, 5, &tokens), TRI_OK);
    assert_int_equal(tokens, 5);
    int32_t ids[5];
    const int32_t want[] = {'a', 0xC3, 0xBC, 0, 'z'};
    assert_int_equal(tokenizer->encode(tokenizer, text, 5, 0, 5, ids), TRI_OK);
    assert_memory_equal(ids, want, sizeof want);
    /* Any range gives the same as the whole. */
    for (int64_t first = 0; first <= 5; first++) {
        for (int64_t count = 0; first + count <= 5; count++) {
            assert_int_equal(tokenizer->encode(tokenizer, text, 5, first, count, ids), TRI_OK);
            assert_memory_equal(ids, want + first, (size_t)count * sizeof *ids);
        }
    }
    assert_int_equal(tokenizer->encode(tokenizer, text, 5, 3, 3, ids), TRI_INTERNAL);
    assert_int_equal(tokenizer->encode(tokenizer, text, 5, -1, 1, ids), TRI_INTERNAL);
    assert_int_equal(tokenizer->encode(tokenizer, text, 5, 6, 0, ids), TRI_INTERNAL);

    const int32_t broken[] = {'a', 256, 0xC3, 'b', 257};
    struct tri_text out = {0};
    assert_int_equal(tokenizer->decode(tokenizer, broken, 5, true, &out), TRI_OK);
    assert_string_equal(tri_text_data(&out), "a\xEF\xBF\xBD"
                                             "b");
    const int32_t outside = 260;
    assert_int_equal(tokenizer->decode(tokenizer, &outside, 1, true, &out), TRI_INVALID);
    tri_text_free(&out);
    tri_tokenizer_close(tokenizer);
    tri_tokenizer_close(NULL);
}

static void test_special_tokens_come_from_the_model(void **state)
{
    (void)state;
    static const struct {
        struct tri_token_ids model;
        int64_t bos, eos, pad;
    } cases[] = {
        {{256, -1, -1, -1}, -1, -1, -1}, /* bytes alone */
        {{259, 256, 257, 258}, 256, 257, 258},
        {{320, 300, 300, -1}, 300, 300, -1}, /* one token for both ends */
        {{32000, 1, 2, 0}, -1, -1, -1},      /* ids that are bytes here */
        {{259, 259, 258, 300}, -1, 258, -1}, /* ids outside the vocabulary */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tri_tokenizer *tokenizer;
        assert_int_equal(tri_byte_tokenizer_open(&cases[i].model, &tokenizer), TRI_OK);
        assert_int_equal(tokenizer->bos, cases[i].bos);
        assert_int_equal(tokenizer->eos, cases[i].eos);
        assert_int_equal(tokenizer->pad, cases[i].pad);
        tri_tokenizer_close(tokenizer);
    }
}

static void test_identity_follows_the_ids(void **state)
{
    (void)state;
    const struct tri_token_ids models[] = {
        {260, 256, 257, -1}, {320, 256, 257, 258}, {260, 257, 256, -1}, {260, -1, 257, -1}};
    uint64_t identity[4];
    for (int i = 0; i < 4; i++) {
        struct tri_tokenizer *tokenizer;
        assert_int_equal(tri_byte_tokenizer_open(&models[i], &tokenizer), TRI_OK);
        identity[i] = tokenizer->identity;
        tri_tokenizer_close(tokenizer);
    }
    assert_true(identity[0] == identity[1]); /* the same ids for every text */
    assert_true(identity[0] != identity[2]);
    assert_true(identity[0] != identity[3]);
}

static void test_small_vocabulary_refuses_text(void **state)
{
    (void)state;
    const struct tri_token_ids model = {.vocab = 96, .bos = -1, .eos = -1, .pad = -1};
    struct tri_tokenizer *tokenizer;
    assert_int_equal(tri_tokenizer_open("auto", NULL, &model, &tokenizer), TRI_OK);
    int64_t tokens;
    assert_int_equal(tokenizer->count(tokenizer, "a", 1, &tokens), TRI_INVALID);
    assert_error_has("vocab_size is 96");
    int32_t id;
    assert_int_equal(tokenizer->encode(tokenizer, "a", 1, 0, 1, &id), TRI_INVALID);
    tri_tokenizer_close(tokenizer);
}

static void test_unread_tokenizers_are_refused_when_they_meet_text(void **state)
{
    (void)state;
    struct tri_tokenizer *tokenizer;
    assert_int_equal(tri_tokenizer_open("auto", scratch, &with_specials, &tokenizer), TRI_OK);
    assert_string_equal(tokenizer->name, "bytes");
    tri_tokenizer_close(tokenizer);

    put_text(in_scratch("tokenizer.json"), "{\"model\": {\"type\": \"Unigram\"}}");
    assert_int_equal(tri_tokenizer_open(NULL, scratch, &with_specials, &tokenizer), TRI_OK);
    int64_t tokens;
    assert_int_equal(tokenizer->count(tokenizer, "a", 1, &tokens), TRI_UNSUPPORTED);
    assert_error_has("tokenizer.json: model: a model of type \"Unigram\": only BPE is read "
                     "(data.tokenizer: bytes and tokenized JSONL with input_ids do without)");
    int32_t id = 'a';
    assert_int_equal(tokenizer->encode(tokenizer, "a", 1, 0, 1, &id), TRI_UNSUPPORTED);
    struct tri_text out = {0};
    assert_int_equal(tokenizer->decode(tokenizer, &id, 1, true, &out), TRI_UNSUPPORTED);
    tri_tokenizer_close(tokenizer);

    assert_int_equal(unlink(in_scratch("tokenizer.json")), 0);
    put_text(in_scratch("tokenizer.model"), "");
    assert_int_equal(tri_tokenizer_open(NULL, scratch, &with_specials, &tokenizer), TRI_OK);
    assert_int_equal(tokenizer->count(tokenizer, "a", 1, &tokens), TRI_UNSUPPORTED);
    assert_error_has("there is only tokenizer.model");
    tri_tokenizer_close(tokenizer);

    assert_int_equal(tri_tokenizer_open("bytes", scratch, &with_specials, &tokenizer), TRI_OK);
    assert_string_equal(tokenizer->name, "bytes");
    tri_tokenizer_close(tokenizer);

    assert_int_equal(tri_tokenizer_open("words", scratch, &with_specials, &tokenizer), TRI_INVALID);
    assert_error_has("choose auto or bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_special_tokens_come_from_the_model),
        cmocka_unit_test(test_identity_follows_the_ids),
        cmocka_unit_test(test_small_vocabulary_refuses_text),
        SCRATCH_TEST(test_unread_tokenizers_are_refused_when_they_meet_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
