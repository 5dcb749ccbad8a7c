/* Sequences: shuffling, packing, identity, and files far larger than memory should be. */
#include "unit/data/data_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { NUM_SAMPLES = 100, LONGEST = 20 };

/* One epoch as the id of each document, in order; every document whole and well-formed. */
static int64_t read_epoch(struct tri_dataset *dataset, int64_t epoch, int *ids)
{
    struct tri_batch batch;
    int64_t documents = 0;
    assert_int_equal(tri_batch_open(tri_dataset_max_sequence(dataset), &batch), TRI_OK);
    const int64_t sequences = tri_dataset_sequences(dataset, epoch);
    for (int64_t i = 0; i < sequences; i++) {
        tri_batch_clear(&batch);
        assert_int_equal(tri_dataset_read(dataset, epoch, i, &batch), TRI_OK);
        assert_true(batch.num_tokens <= tri_dataset_stats(dataset)->max_length);
        int64_t trained = 0;
        for (int64_t d = 0; d < batch.num_docs; d++) {
            const int64_t begin = batch.doc_begin[d];
            const int64_t length = batch.doc_begin[d + 1] - begin;
            const int id = batch.ids[begin];
            assert_int_equal(length, 2 + id * 7 % (LONGEST - 1));
            for (int64_t t = 0; t < length; t++) {
                assert_int_equal(batch.ids[begin + t], id);
                assert_int_equal(batch.labels[begin + t], t + 1 < length ? id : -100);
                assert_int_equal(batch.positions[begin + t], t);
            }
            trained += length - 1;
            assert_true(documents < NUM_SAMPLES);
            ids[documents++] = id;
        }
        assert_int_equal(batch.num_trained, trained);
    }
    tri_batch_close(&batch);
    return documents;
}

static void assert_each_once(const int *ids, int64_t count)
{
    bool seen[NUM_SAMPLES] = {false};
    assert_int_equal(count, NUM_SAMPLES);
    for (int64_t i = 0; i < count; i++) {
        assert_false(seen[ids[i]]);
        seen[ids[i]] = true;
    }
}

static void test_order_depends_on_seed_and_epoch_only(void **state)
{
    (void)state;
    int first[NUM_SAMPLES], again[NUM_SAMPLES], other[NUM_SAMPLES];
    put_samples("a.jsonl", NUM_SAMPLES, LONGEST);
    for (int pack = 0; pack < 2; pack++) {
        options.pack_samples = pack;
        options.max_length = pack ? 64 : 0;
        struct tri_dataset *dataset = must_open_data("a.jsonl");
        assert_each_once(first, read_epoch(dataset, 3, first));
        assert_each_once(other, read_epoch(dataset, 4, other));
        assert_memory_not_equal(first, other, sizeof first);
        assert_each_once(again, read_epoch(dataset, 3, again)); /* after another epoch */
        assert_memory_equal(first, again, sizeof first);
        tri_dataset_close(dataset);

        dataset = must_open_data("a.jsonl"); /* and in another run */
        read_epoch(dataset, 3, again);
        assert_memory_equal(first, again, sizeof first);
        tri_dataset_close(dataset);

        options.seed = 43;
        dataset = must_open_data("a.jsonl");
        assert_each_once(other, read_epoch(dataset, 3, other));
        assert_memory_not_equal(first, other, sizeof first);
        tri_dataset_close(dataset);

        options.seed = 42; /* given, or the run's: the same */
        dataset = must_open_data("a.jsonl");
        read_epoch(dataset, 3, again);
        assert_memory_equal(first, again, sizeof first);
        tri_dataset_close(dataset);
        options.seed = -1;
    }
}

static void test_without_shuffling_order_is_that_of_the_files(void **state)
{
    (void)state;
    int ids[NUM_SAMPLES];
    put_samples("a.jsonl", NUM_SAMPLES, LONGEST);
    options.shuffle = false;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    read_epoch(dataset, 7, ids);
    for (int i = 0; i < NUM_SAMPLES; i++)
        assert_int_equal(ids[i], i);
    tri_dataset_close(dataset);
}

static void test_packing(void **state)
{
    (void)state;
    put_samples("a.jsonl", NUM_SAMPLES, LONGEST);
    options.pack_samples = true;
    options.packing_strategy = TRI_PACKING_IN_ORDER;
    options.max_length = 64;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    const struct tri_data_stats *stats = tri_dataset_stats(dataset);
    assert_int_equal(tri_dataset_max_sequence(dataset), 64);
    assert_int_equal(tri_dataset_sequences(dataset, 0), stats->sequences);
    assert_true(stats->sequences >= (stats->tokens + 63) / 64);
    assert_true(stats->packing > 0.75 && stats->packing <= 1);
    assert_true(stats->packing == (double)stats->tokens / (double)(stats->sequences * 64));

    /* Greedy: the first document of a sequence would not have fitted into the one before. */
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(64, &batch), TRI_OK);
    int64_t before = 64;
    for (int64_t i = 0; i < stats->sequences; i++) {
        tri_batch_clear(&batch);
        assert_int_equal(tri_dataset_read(dataset, 0, i, &batch), TRI_OK);
        assert_true(before + batch.doc_begin[1] > 64);
        before = batch.num_tokens;
    }
    tri_batch_close(&batch);
    tri_dataset_close(dataset);

    /* Everything fits into one sequence: room for that is enough. */
    options.max_length = 1 << 20;
    dataset = must_open_data("a.jsonl");
    stats = tri_dataset_stats(dataset);
    assert_int_equal(stats->sequences, 1);
    assert_int_equal(tri_dataset_max_sequence(dataset), stats->tokens);
    int ids[NUM_SAMPLES];
    assert_each_once(ids, read_epoch(dataset, 0, ids));
    tri_dataset_close(dataset);
}

static void test_reading_appends(void **state)
{
    (void)state;
    struct tri_batch batch;
    put_text(in_scratch("a.jsonl"), "{\"text\":\"abc\"}\n{\"text\":\"de\"}\n");
    options.shuffle = false;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    assert_int_equal(tri_batch_open(5, &batch), TRI_OK);
    assert_int_equal(tri_dataset_read(dataset, 0, 1, &batch), TRI_OK);
    const uint64_t identity = batch.identity;
    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_OK);
    assert_int_equal(batch.num_docs, 2);
    assert_int_equal(batch.num_trained, 3);
    assert_memory_equal(batch.ids, ((int32_t[]){'d', 'e', 'a', 'b', 'c'}), 20);
    assert_memory_equal(batch.labels, ((int32_t[]){'e', -100, 'b', 'c', -100}), 20);
    assert_true(batch.identity != identity);

    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_INTERNAL); /* no room */
    assert_error_has("with room for 5 tokens");
    assert_int_equal(tri_dataset_read(dataset, 0, 2, &batch), TRI_INTERNAL);
    assert_int_equal(tri_dataset_read(dataset, -1, 0, &batch), TRI_INTERNAL);
    assert_int_equal(tri_dataset_read(dataset, 0, -1, &batch), TRI_INTERNAL);
    assert_int_equal(batch.num_tokens, 5);
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
}

static uint64_t identity_now(const char *name)
{
    struct tri_dataset *dataset = must_open_data(name);
    const uint64_t identity = tri_dataset_identity(dataset);
    tri_dataset_close(dataset);
    return identity;
}

static void test_identity(void **state)
{
    (void)state;
    char text[300];
    memset(text, 'a', sizeof text);
    put_file(in_scratch("a.txt"), text, sizeof text);
    const uint64_t identity = identity_now("a.txt");
    assert_true(identity == identity_now("a.txt"));

    assert_int_equal(tri_make_folder(in_scratch("elsewhere")), TRI_OK);
    put_file(in_scratch("elsewhere/a.txt"), text, sizeof text);
    assert_true(identity == identity_now("elsewhere/a.txt"));
    put_file(in_scratch("b.txt"), text, sizeof text);
    assert_true(identity != identity_now("b.txt"));

    for (size_t i = 0; i < sizeof text; i += 13) { /* the same size, one byte changed */
        text[i] = 'b';
        put_file(in_scratch("elsewhere/a.txt"), text, sizeof text);
        assert_true(identity != identity_now("elsewhere/a.txt"));
        text[i] = 'a';
    }

    options.seed = 7;
    assert_true(identity != identity_now("a.txt"));
    options.seed = -1;
    options.shuffle = false;
    assert_true(identity != identity_now("a.txt"));
    options.shuffle = true;
    options.add_eos = true;
    assert_true(identity != identity_now("a.txt"));
    options.add_eos = false;
    options.pack_samples = true;
    assert_true(identity != identity_now("a.txt"));
    options.pack_samples = false;
    options.max_length = 301;
    assert_true(identity != identity_now("a.txt"));
}

static void test_files_that_change_are_refused(void **state)
{
    (void)state;
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(64, &batch), TRI_OK);
    put_text(in_scratch("a.txt"), "before");
    struct tri_dataset *dataset = must_open_data("a.txt");
    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_OK);
    put_text(in_scratch("a.txt"), "b");
    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_INVALID);
    assert_error_has("a.txt has changed since training began");
    assert_int_equal(batch.num_tokens, 6);
    tri_dataset_close(dataset);
    tri_batch_close(&batch);
}

/* Highest resident size of this process so far, in bytes. */
static int64_t peak_resident(void)
{
    char line[256];
    long long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lld kB", &kib) == 1)
            break;
    fclose(f);
    assert_true(kib > 0);
    return (int64_t)kib * 1024;
}

static void test_a_large_file_needs_little_memory(void **state)
{
    (void)state;
    const int64_t bytes = INT64_C(1) << 29;
    const int64_t length = 1 << 16;
    const char *path = in_scratch("sparse.txt");
    const int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "begin", 5, 0), 5);
    assert_int_equal(pwrite(fd, "end", 3, bytes - 3), 3); /* a hole between: NUL is a character */
    close(fd);

    options.max_length = length;
    options.overlength = TRI_OVERLENGTH_SPLIT;
    options.shuffle = false;
    const int64_t before = peak_resident();
    struct tri_dataset *dataset = must_open_data("sparse.txt");
    const struct tri_data_stats *stats = tri_dataset_stats(dataset);
    assert_int_equal(stats->longest, bytes);
    assert_int_equal(stats->tokens, bytes);
    assert_int_equal(stats->sequences, bytes / length);

    struct tri_batch batch;
    assert_int_equal(tri_batch_open(length, &batch), TRI_OK);
    for (int64_t i = 0; i < stats->sequences; i += stats->sequences - 1) {
        tri_batch_clear(&batch);
        assert_int_equal(tri_dataset_read(dataset, 0, i, &batch), TRI_OK);
        assert_int_equal(batch.num_tokens, length);
        assert_int_equal(batch.ids[0], i == 0 ? 'b' : 0);
        assert_int_equal(batch.ids[length - 1], i == 0 ? 0 : 'd');
    }
    const int64_t grown = peak_resident() - before;
    if (grown > 48 << 20)
        fail_msg("512 MiB of text took %lld MiB of memory", (long long)(grown >> 20));
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
}

/* Many lines: the index grows, pages are let go, and the first and last sample are right. */
static void test_many_lines(void **state)
{
    (void)state;
    const int count = 300000;
    FILE *f = fopen(in_scratch("many.jsonl"), "w");
    assert_non_null(f);
    for (int i = 0; i < count; i++)
        fprintf(f, "{\"text\":\"%060d\"}\n", i);
    assert_int_equal(fclose(f), 0);
    options.shuffle = false;
    struct tri_dataset *dataset = must_open_data("many.jsonl");
    assert_int_equal(tri_dataset_stats(dataset)->samples, count);
    struct tri_batch batch;
    assert_int_equal(tri_batch_open(60, &batch), TRI_OK);
    for (int i = 0; i < count; i += count - 1) {
        char want[64];
        snprintf(want, sizeof want, "%060d", i);
        tri_batch_clear(&batch);
        assert_int_equal(tri_dataset_read(dataset, 0, i, &batch), TRI_OK);
        for (int t = 0; t < 60; t++)
            assert_int_equal(batch.ids[t], want[t]);
    }
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_a_large_file_needs_little_memory),
        FIXTURE_TEST(test_order_depends_on_seed_and_epoch_only),
        FIXTURE_TEST(test_without_shuffling_order_is_that_of_the_files),
        FIXTURE_TEST(test_packing),
        FIXTURE_TEST(test_reading_appends),
        FIXTURE_TEST(test_identity),
        FIXTURE_TEST(test_files_that_change_are_refused),
        FIXTURE_TEST(test_many_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
