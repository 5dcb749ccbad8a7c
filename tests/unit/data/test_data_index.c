/* What is found before step 1: counts, the over-length policies, and every bad input by name. */
#include "unit/data/data_fixture.h"

static const struct tri_data_stats *stats_of(const struct tri_dataset *dataset)
{
    return tri_dataset_stats(dataset);
}

/* Sequence 0 of epoch 0, `count` tokens. */
static void assert_sequence(struct tri_dataset *dataset, int64_t index, int64_t count,
                            const int32_t *ids, const int32_t *labels, const int64_t *positions)
{
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(tri_dataset_max_sequence(dataset), &batch), TRI_OK);
    assert_int_equal(tri_dataset_read(dataset, 0, index, &batch), TRI_OK);
    assert_int_equal(batch.num_tokens, count);
    assert_memory_equal(batch.ids, ids, (size_t)count * sizeof *ids);
    assert_memory_equal(batch.labels, labels, (size_t)count * sizeof *labels);
    assert_memory_equal(batch.positions, positions, (size_t)count * sizeof *positions);
    tri_batch_close(&batch);
}

static void test_counts(void **state)
{
    (void)state;
    assert_int_equal(tri_make_folder(in_scratch("d")), TRI_OK);
    options.add_bos = options.add_eos = true;
    put_text(in_scratch("d/a.txt"), "abc");
    put_text(in_scratch("d/b.jsonl"), "{\"input_ids\":[256,7,257]}\n"
                                      "  \r\n"
                                      "{\"input_ids\":[1,2,3,4,5,6],\"position_ids\":[0,1,2,0,1,2],"
                                      "\"labels\":[-100,2,3,4,5,-100]}");
    struct tri_dataset *dataset = must_open_data("d");
    const struct tri_data_stats *stats = stats_of(dataset);
    assert_int_equal(stats->files, 2);
    assert_int_equal(stats->samples, 3);
    assert_int_equal(stats->pieces, 3);
    assert_int_equal(stats->documents, 4);
    assert_int_equal(stats->tokens, 5 + 3 + 6);
    assert_int_equal(stats->trained, 4 + 2 + 3);
    assert_int_equal(stats->longest, 6);
    assert_int_equal(stats->longest_piece, 6);
    assert_int_equal(stats->max_length, 6); /* of the longest, since none is set */
    assert_int_equal(stats->sequences, 3);
    assert_int_equal(stats->overlong + stats->tokens_lost + stats->trained_lost, 0);
    assert_int_equal(tri_dataset_max_sequence(dataset), 6);
    tri_dataset_close(dataset);
}

static void test_overlength_error_is_the_default(void **state)
{
    (void)state;
    put_text(in_scratch("a.jsonl"), "{\"text\":\"abc\"}\n\n{\"text\":\"abcdefghi\"}\n"
                                    "{\"text\":\"abcdefghijk\"}\n");
    options.max_length = 8;
    assert_refused("a.jsonl", TRI_INVALID,
                   "a.jsonl:3: this sample has 9 tokens, data.max_length is 8 (2 of 3 samples are "
                   "longer, the longest has 11): raise data.max_length, or set data.overlength to "
                   "drop, truncate or split");
    options.max_length = 11;
    tri_dataset_close(must_open_data("a.jsonl"));
}

static void test_overlength_drop(void **state)
{
    (void)state;
    put_text(in_scratch("a.jsonl"), "{\"text\":\"abcdefghi\"}\n{\"text\":\"abc\"}\n");
    options.max_length = 8;
    options.overlength = TRI_OVERLENGTH_DROP;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    const struct tri_data_stats *stats = stats_of(dataset);
    assert_int_equal(stats->overlong, 1);
    assert_int_equal(stats->tokens_lost, 9);
    assert_int_equal(stats->trained_lost, 8);
    assert_int_equal(stats->tokens, 3);
    assert_int_equal(stats->pieces, 1);
    const int32_t ids[] = {'a', 'b', 'c'};
    assert_sequence(dataset, 0, 3, ids, (int32_t[]){'b', 'c', -100}, (int64_t[]){0, 1, 2});
    tri_dataset_close(dataset);

    options.max_length = 2;
    assert_refused("a.jsonl", TRI_INVALID, "no sample is left: all 2 are longer");
    assert_refused("a.jsonl", TRI_INVALID, "data.overlength: split");
    options.max_length = 1; /* pieces of one token train nothing */
    options.overlength = TRI_OVERLENGTH_SPLIT;
    assert_refused("a.jsonl", TRI_INVALID, "raise data.max_length");
}

static void test_overlength_truncate(void **state)
{
    (void)state;
    put_text(in_scratch("a.jsonl"), "{\"text\":\"abcdefghi\"}\n");
    options.max_length = 4;
    options.overlength = TRI_OVERLENGTH_TRUNCATE;
    options.add_bos = options.add_eos = true;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    const struct tri_data_stats *stats = stats_of(dataset);
    assert_int_equal(stats->longest, 11);
    assert_int_equal(stats->longest_piece, 4);
    assert_int_equal(stats->tokens_lost, 7);
    assert_int_equal(stats->trained_lost, 7);
    assert_int_equal(stats->trained, 3);
    const int32_t ids[] = {256, 'a', 'b', 'c'};
    assert_sequence(dataset, 0, 4, ids, (int32_t[]){'a', 'b', 'c', -100}, (int64_t[]){0, 1, 2, 3});
    tri_dataset_close(dataset);

    /* Truncation that takes every target away is an error, not a loss of 0. */
    put_text(in_scratch("b.jsonl"), "{\"input_ids\":[1,2]}\n{\"input_ids\":[1,2,3,4,5],"
                                    "\"labels\":[-100,-100,-100,-100,5]}\n");
    assert_refused("b.jsonl", TRI_INVALID,
                   "b.jsonl:2: truncated from 5 to data.max_length 4 tokens, this sample has no "
                   "trained token");
}

static void test_overlength_split(void **state)
{
    (void)state;
    put_text(in_scratch("a.jsonl"), "{\"text\":\"abcdefgh\"}\n");
    options.max_length = 4;
    options.overlength = TRI_OVERLENGTH_SPLIT;
    options.shuffle = false;
    options.add_bos = options.add_eos = true;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    const struct tri_data_stats *stats = stats_of(dataset);
    assert_int_equal(stats->samples, 1);
    assert_int_equal(stats->pieces, 3);
    assert_int_equal(stats->documents, 3);
    assert_int_equal(stats->tokens, 10);
    assert_int_equal(stats->tokens_lost, 0);
    assert_int_equal(stats->trained, 3 + 3 + 1);
    assert_int_equal(stats->trained_lost, 2); /* one at each cut */
    assert_sequence(dataset, 0, 4, (int32_t[]){256, 'a', 'b', 'c'},
                    (int32_t[]){'a', 'b', 'c', -100}, (int64_t[]){0, 1, 2, 3});
    assert_sequence(dataset, 1, 4, (int32_t[]){'d', 'e', 'f', 'g'},
                    (int32_t[]){'e', 'f', 'g', -100}, (int64_t[]){0, 1, 2, 3});
    assert_sequence(dataset, 2, 2, (int32_t[]){'h', 257}, (int32_t[]){257, -100},
                    (int64_t[]){0, 1});
    tri_dataset_close(dataset);

    /* A piece that trains nothing is left out and counted: here "e", and the masked prompt. */
    options.add_bos = options.add_eos = false;
    put_text(in_scratch("b.jsonl"), "{\"input_ids\":[7,7,7,7,7]}\n{\"input_ids\":[1,2,3,4,5,6],"
                                    "\"labels\":[-100,-100,-100,-100,5,6]}\n");
    dataset = must_open_data("b.jsonl");
    stats = stats_of(dataset);
    assert_int_equal(stats->pieces, 2);
    assert_int_equal(stats->tokens, 4 + 2);
    assert_int_equal(stats->tokens_lost, 1 + 4);
    assert_int_equal(stats->trained, 3 + 1);
    assert_int_equal(stats->trained_lost, 1 + 1);
    assert_sequence(dataset, 1, 2, (int32_t[]){5, 6}, (int32_t[]){6, -100}, (int64_t[]){0, 1});
    tri_dataset_close(dataset);
}

static void test_split_of_packed_documents(void **state)
{
    (void)state;
    put_text(in_scratch("a.jsonl"),
             "{\"input_ids\":[1,2,3,4,5,6,7],\"position_ids\":[0,1,2,3,4,0,1]}\n");
    options.max_length = 4;
    options.overlength = TRI_OVERLENGTH_SPLIT;
    options.shuffle = false;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    assert_int_equal(stats_of(dataset)->documents, 3);
    assert_int_equal(stats_of(dataset)->trained, 3 + 0 + 1);
    assert_int_equal(stats_of(dataset)->trained_lost, 1);
    assert_sequence(dataset, 1, 3, (int32_t[]){5, 6, 7}, (int32_t[]){-100, 7, -100},
                    (int64_t[]){0, 0, 1});
    tri_dataset_close(dataset);
}

static void test_bad_files(void **state)
{
    (void)state;
    put_text(in_scratch("empty.txt"), "");
    assert_refused("empty.txt", TRI_INVALID, "empty.txt:1: empty document: remove it");
    put_text(in_scratch("one.txt"), "a");
    assert_refused("one.txt", TRI_INVALID, "one.txt:1: this sample has no trained token (1 token)");
    put_text(in_scratch("blank.txt"), " \n\t\r\n");
    assert_refused("blank.txt", TRI_INVALID,
                   "blank.txt:1: the document is nothing but white space: remove it");
    put_text(in_scratch("mark.txt"), "\xEF\xBB\xBFtext");
    assert_refused("mark.txt", TRI_INVALID, "mark.txt:1: the text begins with a byte order mark");
    put_text(in_scratch("latin.txt"), "first\nsecond\nna\xEFve\n");
    assert_refused("latin.txt", TRI_INVALID,
                   "latin.txt:3: invalid UTF-8 at byte 15 of the file (0xEF)");
    put_text(in_scratch("cut.txt"), "euro \xE2\x82");
    assert_refused("cut.txt", TRI_INVALID, "cut.txt:1: invalid UTF-8 at byte 5");

    put_text(in_scratch("empty.jsonl"), "\n \n");
    assert_refused("empty.jsonl", TRI_INVALID, "empty.jsonl: the file holds no sample");
    put_text(in_scratch("mark.jsonl"), "\xEF\xBB\xBF{\"text\":\"ab\"}\n");
    assert_refused("mark.jsonl", TRI_INVALID, "(U+FEFF): remove it, at the start of a file by sed");
    put_text(in_scratch("bad.jsonl"), "{\"text\":\"ab\"}\n\n{\"text\":\"\xC3(\"}\n");
    assert_refused("bad.jsonl", TRI_INVALID, "bad.jsonl:3: invalid UTF-8 at byte 9 of the line");
    put_text(in_scratch("json.jsonl"), "{\"text\":\"ab\"}\n{\"text\":\"a\n");
    assert_refused("json.jsonl", TRI_FORMAT, "json.jsonl:2: not valid JSON");
    put_text(in_scratch("ids.jsonl"), "{\"input_ids\":[1,2,300]}");
    assert_refused("ids.jsonl", TRI_INVALID,
                   "ids.jsonl:1: \"input_ids\"[2] is 300, outside the vocabulary of 300");
    put_text(in_scratch("mask.jsonl"), "{\"input_ids\":[1,2],\"labels\":[1,-100]}\n");
    assert_refused("mask.jsonl", TRI_INVALID, "mask.jsonl:1: this sample has no trained token");
    /* The only label is that of a document's first token, which nothing predicts. */
    put_text(in_scratch("first.jsonl"),
             "{\"input_ids\":[1,2,3],\"labels\":[-100,-100,3],\"position_ids\":[0,1,0]}\n");
    assert_refused("first.jsonl", TRI_INVALID, "first.jsonl:1: this sample has no trained token");
    assert_refused("absent.jsonl", TRI_IO, "absent.jsonl");
}

static void test_bad_options(void **state)
{
    (void)state;
    put_text(in_scratch("a.txt"), "abc");
    options.max_length = -1;
    assert_refused("a.txt", TRI_INVALID, "data.max_length is -1");
    options.max_length = 0;
    struct tri_dataset *dataset;
    char *sources[] = {scratch};
    assert_int_equal(
        tri_dataset_open(&options, sources, 1,
                         &(struct tri_data_target){.tokenizer = tokenizer, .vocab = 299}, &dataset),
        TRI_INVALID);
    assert_error_has("the tokenizer (bytes) has 300 ids and the model");
    assert_int_equal(tri_dataset_open(&options, sources, 1,
                                      &(struct tri_data_target){.vocab = INT64_C(1) << 31},
                                      &dataset),
                     TRI_INVALID);
    assert_int_equal(
        tri_dataset_open(&options, sources, 1, &(struct tri_data_target){.vocab = 300}, &dataset),
        TRI_INVALID);
    assert_error_has("a.txt:1: this is text, and there is no tokenizer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_counts),           FIXTURE_TEST(test_overlength_error_is_the_default),
        FIXTURE_TEST(test_overlength_drop),  FIXTURE_TEST(test_overlength_truncate),
        FIXTURE_TEST(test_overlength_split), FIXTURE_TEST(test_split_of_packed_documents),
        FIXTURE_TEST(test_bad_files),        FIXTURE_TEST(test_bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
