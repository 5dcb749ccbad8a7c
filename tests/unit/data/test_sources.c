/* Sources that are compressed, weighted, or have bad samples in them. */
#include "unit/data/data_fixture.h"

enum { COUNT = 60, LONGEST = 17 };

/* The ids of all documents of an epoch, in order. */
static int64_t read_epoch(struct tri_dataset *dataset, int64_t epoch, int *ids, int64_t most)
{
    struct tri_batch batch;
    int64_t count = 0;
    assert_int_equal(tri_batch_open(4096, &batch), TRI_OK);
    for (int64_t i = 0; i < tri_dataset_sequences(dataset, epoch); i++) {
        tri_batch_clear(&batch);
        if (tri_dataset_read(dataset, epoch, i, &batch) != TRI_OK)
            fail_msg("%s", tri_error_text());
        for (int64_t d = 0; d < batch.num_docs; d++) {
            assert_true(count < most);
            ids[count++] = batch.ids[batch.doc_begin[d]];
        }
    }
    tri_batch_close(&batch);
    return count;
}

static void compress(const char *command, const char *name)
{
    char line[9000];
    snprintf(line, sizeof line, "cd '%s' && %s '%s'", scratch, command, name);
    assert_int_equal(system(line), 0);
}

/* A compressed file gives what the file itself gives, in every epoch. */
static void test_compressed_files(void **state)
{
    (void)state;
    char cache[4400];
    int plain[COUNT], packed[COUNT];
    snprintf(cache, sizeof cache, "%s", in_scratch("cache"));
    options.cache_dir = cache;
    put_samples("a.jsonl", COUNT, LONGEST);
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    assert_int_equal(read_epoch(dataset, 1, plain, COUNT), COUNT);
    tri_dataset_close(dataset);

    compress("gzip -k", "a.jsonl");
    dataset = must_open_data("a.jsonl.gz");
    assert_int_equal(read_epoch(dataset, 1, packed, COUNT), COUNT);
    assert_memory_equal(plain, packed, sizeof plain);
    const uint64_t identity = tri_dataset_identity(dataset);
    tri_dataset_close(dataset);

    dataset = must_open_data("a.jsonl.gz"); /* from the copy */
    assert_int_equal(tri_dataset_identity(dataset), identity);
    assert_int_equal(read_epoch(dataset, 1, packed, COUNT), COUNT);
    assert_memory_equal(plain, packed, sizeof plain);

    /* The file changes: noticed though the copy does not. */
    compress("printf x >>", "a.jsonl.gz");
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(4096, &batch), TRI_OK);
    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_INVALID);
    assert_error_has("a.jsonl.gz has changed since training began");
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
}

static void test_broken_compressed_files(void **state)
{
    (void)state;
    char cache[4400];
    snprintf(cache, sizeof cache, "%s", in_scratch("cache"));
    options.cache_dir = cache;
    put_samples("a.jsonl", COUNT, LONGEST);
    compress("gzip", "a.jsonl");
    compress("truncate -s -20", "a.jsonl.gz");
    assert_refused("a.jsonl.gz", TRI_FORMAT, "a.jsonl.gz ends in the middle, after");
    put_text(in_scratch("b.txt.zst"), "not compressed");
    assert_refused("b.txt.zst", TRI_FORMAT, "b.txt.zst is broken near byte");
}

/* Bad samples stop with their line, or are counted; what is left is what a file without them
 * gives. */
static void test_bad_samples(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"text\": \"b\xFF\"}", "{\"text\": ", "{\"input_ids\": [1, 900]}", "[]",
        "{\"text\": \"x\"}",
    };
    int good[4], left[4];
    char text[1000] = "";
    put_text(in_scratch("good.jsonl"),
             "{\"text\": \"aa\"}\n{\"text\": \"bb\"}\n{\"text\": \"cc\"}\n");
    struct tri_dataset *dataset = must_open_data("good.jsonl");
    assert_int_equal(read_epoch(dataset, 0, good, 4), 3);
    tri_dataset_close(dataset);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[200], place[40];
        snprintf(line, sizeof line, "{\"text\": \"aa\"}\n%s\n{\"text\": \"bb\"}\n", bad[i]);
        put_text(in_scratch("one.jsonl"), line);
        assert_refused("one.jsonl", i == 1 ? TRI_FORMAT : TRI_INVALID, "one.jsonl:2: ");
        snprintf(line, sizeof line, "%s\n", bad[i]);
        strcat(text, line);
        snprintf(place, sizeof place, "{\"text\": \"%c%c\"}\n", "abcab"[i], "abcab"[i]);
        if (i < 3)
            strcat(text, place);
    }
    put_text(in_scratch("bad.jsonl"), text);
    options.on_bad_sample = TRI_BAD_SKIP;
    dataset = must_open_data("bad.jsonl");
    assert_int_equal(tri_dataset_stats(dataset)->bad, 5);
    assert_int_equal(tri_dataset_stats(dataset)->samples, 3);
    assert_int_equal(read_epoch(dataset, 0, left, 4), 3);
    assert_memory_equal(good, left, 3 * sizeof *good);
    tri_dataset_close(dataset);

    put_text(in_scratch("all.jsonl"), "{\"text\": 5}\n[]\n");
    assert_refused("all.jsonl", TRI_INVALID, "no sample is left: all 2 are bad");
    assert_refused("absent.jsonl", TRI_IO, "absent.jsonl"); /* a file is not a sample */

    assert_int_equal(tri_make_folder(in_scratch("texts")), TRI_OK);
    put_text(in_scratch("texts/a.txt"), "fine");
    put_text(in_scratch("texts/b.txt"), "line\nbro\xFFken");
    dataset = must_open_data("texts");
    assert_int_equal(tri_dataset_stats(dataset)->bad, 1);
    assert_int_equal(tri_dataset_stats(dataset)->tokens, 4);
    tri_dataset_close(dataset);
    options.on_bad_sample = TRI_BAD_ERROR;
    assert_refused("texts", TRI_INVALID, "b.txt:2: invalid UTF-8 at byte 8 of the file (0xFF)");
}

/* The first line of a file says what all of them are. */
static void test_one_format_a_file(void **state)
{
    (void)state;
    put_text(in_scratch("mixed.jsonl"), "{\"text\": \"aa\"}\n\n{\"input_ids\": [1, 2]}\n");
    assert_refused("mixed.jsonl", TRI_INVALID,
                   "mixed.jsonl:3: this line is of the format tokenized, the first of this file of "
                   "text");
    options.on_bad_sample = TRI_BAD_SKIP;
    struct tri_dataset *dataset = must_open_data("mixed.jsonl");
    assert_int_equal(tri_dataset_stats(dataset)->bad, 1);
    tri_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_compressed_files),
        FIXTURE_TEST(test_broken_compressed_files),
        FIXTURE_TEST(test_bad_samples),
        FIXTURE_TEST(test_one_format_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
