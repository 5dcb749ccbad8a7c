/* A Megatron dataset as the data of a run. */
#include "unit/data/data_fixture.h"

/* Documents of the given lengths whose tokens count up from 10 on, as uint16. */
static void put_set(const char *prefix, const int *lengths, int count, int first_id)
{
    char name[64];
    unsigned char index[1024], tokens[1024];
    size_t at = 34, token_bytes = 0;
    memset(index, 0, sizeof index);
    memcpy(index, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\10", 18);
    index[18] = (unsigned char)count;
    index[26] = (unsigned char)(count + 1);
    for (int i = 0; i < count; i++, at += 4)
        index[at] = (unsigned char)lengths[i];
    for (int i = 0; i < count; at += 8, i++) {
        index[at] = (unsigned char)token_bytes;
        for (int t = 0; t < lengths[i]; t++, token_bytes += 2) {
            tokens[token_bytes] = (unsigned char)(first_id + (int)token_bytes / 2);
            tokens[token_bytes + 1] = 0;
        }
    }
    for (int i = 0; i <= count; i++, at += 8)
        index[at] = (unsigned char)i;
    snprintf(name, sizeof name, "%s.idx", prefix);
    put_file(in_scratch(name), index, at);
    snprintf(name, sizeof name, "%s.bin", prefix);
    put_file(in_scratch(name), tokens, token_bytes);
}

static const int lengths[] = {3, 0, 1, 4};

static void expect_set(struct tri_dataset *dataset)
{
    struct tri_batch batch;
    static const int32_t ids[] = {10, 11, 12, 14, 15, 16, 17};
    static const int32_t labels[] = {11, 12, -100, 15, 16, 17, -100};
    assert_int_equal(tri_dataset_sequences(dataset, 0), 2);
    assert_int_equal(tri_dataset_stats(dataset)->trained, 5);
    assert_int_equal(tri_batch_open(16, &batch), TRI_OK);
    for (int64_t i = 0; i < 2; i++)
        assert_int_equal(tri_dataset_read(dataset, 0, i, &batch), TRI_OK);
    assert_int_equal(batch.num_tokens, 7);
    assert_memory_equal(batch.ids, ids, sizeof ids);
    assert_memory_equal(batch.labels, labels, sizeof labels);
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
}

static void documents_are_samples(void **state)
{
    (void)state;
    options.shuffle = false;
    put_set("set", lengths, 4, 10);
    expect_set(must_open_data("set.idx"));
    expect_set(must_open_data("set")); /* the prefix, as Megatron's tools name a set */
}

static void folders_have_sets(void **state)
{
    (void)state;
    options.shuffle = false;
    assert_int_equal(tri_make_folder(in_scratch("sets")), TRI_OK);
    put_set("sets/a", lengths, 4, 10);
    expect_set(must_open_data("sets"));
}

static void long_documents_follow_the_policy(void **state)
{
    (void)state;
    put_set("set", lengths, 4, 10);
    options.max_length = 3;
    assert_refused("set.idx", TRI_INVALID, "set.idx:3: this sample has 4 tokens");
    options.overlength = TRI_OVERLENGTH_SPLIT;
    struct tri_dataset *dataset = must_open_data("set.idx");
    assert_int_equal(tri_dataset_stats(dataset)->tokens, 6);
    tri_dataset_close(dataset);
}

static void bad_sets_are_named(void **state)
{
    (void)state;
    static const int empty[] = {1, 0};
    put_set("set", lengths, 4, 250); /* ids to 257, and 300 are possible */
    tri_dataset_close(must_open_data("set.idx"));
    put_set("set", lengths, 4, 10);
    put_text(in_scratch("set.bin"), "\1\0\1");
    assert_refused("set.idx", TRI_FORMAT, "do not belong together");
    assert_int_equal(unlink(in_scratch("set.bin")), 0);
    assert_refused("set.idx", TRI_IO, "set.idx needs ");
    put_set("none", empty, 2, 10);
    assert_refused("none", TRI_INVALID, "no document of two tokens");
    put_text(in_scratch("text.idx"), "some text that is no index of anything");
    put_text(in_scratch("text.bin"), "x");
    assert_refused("text.idx", TRI_FORMAT, "does not begin with MMIDIDX");
    assert_refused("text.bin", TRI_UNSUPPORTED, "name the .idx file");
}

static void a_set_that_changes_is_refused(void **state)
{
    (void)state;
    struct tri_batch batch;
    put_set("set", lengths, 4, 10);
    struct tri_dataset *dataset = must_open_data("set");
    FILE *f = fopen(in_scratch("set.bin"), "ab"); /* it grows, and keeps its old bytes */
    assert_non_null(f);
    assert_int_equal(fputc(0, f), 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(tri_batch_open(16, &batch), TRI_OK);
    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_INVALID);
    assert_error_has("has changed");
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(documents_are_samples),
        FIXTURE_TEST(folders_have_sets),
        FIXTURE_TEST(long_documents_follow_the_policy),
        FIXTURE_TEST(bad_sets_are_named),
        FIXTURE_TEST(a_set_that_changes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
