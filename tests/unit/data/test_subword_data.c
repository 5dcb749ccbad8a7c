/* Data sets read with a subword tokenizer: lengths, ranges, and no special token twice. */
#include "unit/data/data_fixture.h"

static struct tri_tokenizer *llama;

static int open_all(void **state)
{
    const struct tri_token_ids model = {.vocab = 2000, .bos = -1, .eos = -1, .pad = -1};
    const char *folder = TEST_DATA "/golden/tokenizers/llama2_style";
    if (tri_tokenizer_open("auto", folder, &model, &llama) != TRI_OK)
        return -1;
    return fixture_open(state);
}

static int close_all(void **state)
{
    tri_tokenizer_close(llama);
    return fixture_close(state);
}

static struct tri_dataset *open_with_llama(const char *name)
{
    struct tri_dataset *dataset;
    if (tri_dataset_open(&options, (char *[]){(char *)(uintptr_t)in_scratch(name)}, 1,
                         &(struct tri_data_target){.tokenizer = llama, .vocab = 2000, .seed = 42},
                         &dataset) != TRI_OK)
        fail_msg("%s: %s", name, tri_error_text());
    return dataset;
}

static void read_first(struct tri_dataset *dataset, struct tri_batch *batch)
{
    assert_int_equal(tri_batch_open(tri_dataset_max_sequence(dataset), batch), TRI_OK);
    assert_int_equal(tri_dataset_read(dataset, 0, 0, batch), TRI_OK);
}

static void test_special_tokens_are_there_once(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool add_bos, add_eos;
        int64_t tokens;
    } cases[] = {
        {"{\"text\": \"In the beginning\"}\n", true, true, 2},
        {"{\"text\": \"<s>In the beginning\"}\n", true, true, 2},
        {"{\"text\": \"In the beginning</s>\"}\n", true, true, 2},
        {"{\"text\": \"<s>In the beginning</s>\"}\n", true, true, 2},
        {"{\"text\": \"<s>In the beginning</s>\"}\n", false, false, 2},
        {"{\"text\": \"In the beginning\"}\n", true, false, 1},
        {"{\"text\": \"In the beginning\"}\n", false, true, 1},
        {"{\"text\": \"In the beginning\"}\n", false, false, 0},
    };
    int64_t plain;
    assert_int_equal(llama->count(llama, "In the beginning", 16, &plain), TRI_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(in_scratch("a.jsonl"), cases[i].text);
        options.add_bos = cases[i].add_bos;
        options.add_eos = cases[i].add_eos;
        struct tri_dataset *dataset = open_with_llama("a.jsonl");
        struct tri_batch batch;
        read_first(dataset, &batch);
        assert_int_equal(batch.num_tokens, plain + cases[i].tokens);
        if (cases[i].add_bos)
            assert_int_equal(batch.ids[0], 1);
        if (cases[i].add_eos)
            assert_int_equal(batch.ids[batch.num_tokens - 1], 2);
        tri_batch_close(&batch);
        tri_dataset_close(dataset);
    }
}

/* Many lines, tokenized ahead on all threads, and one document in pieces. */
static void test_lines_and_pieces(void **state)
{
    (void)state;
    enum { LINES = 5000, LIMIT = 50 };
    options.shuffle = false;
    FILE *f = fopen(in_scratch("lines.jsonl"), "w");
    assert_non_null(f);
    int64_t tokens = 0;
    for (int i = 0; i < LINES; i++) {
        char text[64];
        const int bytes = snprintf(text, sizeof text, "And the number %d begat another.", i * i);
        int64_t count;
        assert_int_equal(llama->count(llama, text, (size_t)bytes, &count), TRI_OK);
        tokens += count;
        fprintf(f, "{\"text\": \"%s\"}\n", text);
    }
    assert_int_equal(fclose(f), 0);
    struct tri_dataset *dataset = open_with_llama("lines.jsonl");
    assert_int_equal(tri_dataset_stats(dataset)->samples, LINES);
    assert_int_equal(tri_dataset_stats(dataset)->tokens, tokens);
    tri_dataset_close(dataset);

    char *text;
    size_t bytes;
    assert_int_equal(
        tri_file_read(TEST_DATA "/golden/tokenizers/kjv_genesis.txt", 1 << 20, &text, &bytes),
        TRI_OK);
    put_file(in_scratch("genesis.txt"), text, bytes);
    options.max_length = LIMIT;
    options.overlength = TRI_OVERLENGTH_SPLIT;
    dataset = open_with_llama("genesis.txt");
    assert_int_equal(tri_dataset_stats(dataset)->longest, 63972);
    int32_t *ids = calloc(63972, sizeof *ids);
    assert_non_null(ids);
    assert_int_equal(llama->encode(llama, text, bytes, 0, 63972, ids), TRI_OK);
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(LIMIT, &batch), TRI_OK);
    const int64_t pieces = tri_dataset_sequences(dataset, 0);
    assert_int_equal(pieces, (63972 + LIMIT - 1) / LIMIT);
    for (int64_t i = 0; i < pieces; i++) {
        tri_batch_clear(&batch);
        assert_int_equal(tri_dataset_read(dataset, 0, i, &batch), TRI_OK);
        assert_memory_equal(batch.ids, ids + i * LIMIT, (size_t)batch.num_tokens * sizeof *ids);
    }
    tri_batch_close(&batch);
    free(ids);
    free(text);
    tri_dataset_close(dataset);
}

/* The first bad line is the one that is named, however many are read ahead. */
static void test_the_first_bad_line_is_named(void **state)
{
    (void)state;
    put_text(in_scratch("bad.jsonl"), "{\"text\": \"fine\"}\n{\"text\": \"fine\"}\n{\"text\": 7}\n"
                                      "{\"text\": \"fine\"}\n{\"text\": \n");
    struct tri_dataset *dataset;
    const enum tri_status st = tri_dataset_open(
        &options, (char *[]){(char *)(uintptr_t)in_scratch("bad.jsonl")}, 1,
        &(struct tri_data_target){.tokenizer = llama, .vocab = 2000, .seed = 42}, &dataset);
    assert_int_equal(st, TRI_INVALID);
    assert_error_has("bad.jsonl:3: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_special_tokens_are_there_once, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_lines_and_pieces, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_the_first_bad_line_is_named, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
