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

/* A command for the unpacked copies. */
static void in_cache(const char *command)
{
    char line[9000];
    snprintf(line, sizeof line, "cd '%s' && %s cache/*-a.jsonl", scratch, command);
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

/* The copy changes below a run: neither its length nor its time of modification tell. */
static void test_changed_copies(void **state)
{
    (void)state;
    char cache[4400];
    struct tri_batch batch;
    snprintf(cache, sizeof cache, "%s", in_scratch("cache"));
    options.cache_dir = cache;
    put_samples("a.jsonl", COUNT, LONGEST);
    compress("gzip", "a.jsonl");
    struct tri_dataset *dataset = must_open_data("a.jsonl.gz");
    assert_int_equal(tri_batch_open(4096, &batch), TRI_OK);

    in_cache("chmod u+x"); /* touched, and no more */
    in_cache("touch -d yesterday");
    for (int64_t i = 0; i < COUNT; i++) {
        tri_batch_clear(&batch);
        assert_int_equal(tri_dataset_read(dataset, 0, i, &batch), TRI_OK);
    }
    in_cache("sed -i s/1/2/g");
    in_cache("touch -d yesterday");
    tri_batch_clear(&batch);
    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_INVALID);
    assert_error_has("-a.jsonl, the unpacked copy of ");
    assert_error_has("has changed since training began: start again");
    tri_dataset_close(dataset);

    dataset = must_open_data("a.jsonl.gz"); /* unpacked anew */
    tri_batch_clear(&batch);
    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_OK);
    in_cache("rm");
    tri_batch_clear(&batch);
    assert_int_equal(tri_dataset_read(dataset, 0, 1, &batch), TRI_IO);
    assert_error_has("cannot read");
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

/* A .json file may be one list, or lines. */
static void test_json_files(void **state)
{
    (void)state;
    char cache[4400];
    int ids[3];
    snprintf(cache, sizeof cache, "%s", in_scratch("cache"));
    options.cache_dir = cache;
    options.shuffle = false;
    put_text(in_scratch("list.json"),
             "[\n  {\n    \"text\": \"aa\"\n  },\n  {\"text\": \"bb\"}\n]\n");
    put_text(in_scratch("lines.json"), "\n{\"text\": \"aa\"}\n{\"text\": \"bb\"}\n");
    compress("gzip -k", "list.json");
    compress("gzip -k", "lines.json");
    static const char *const names[] = {"list.json", "lines.json", "list.json.gz", "lines.json.gz"};
    for (size_t i = 0; i < 4; i++) {
        struct tri_dataset *dataset = must_open_data(names[i]);
        assert_int_equal(read_epoch(dataset, 0, ids, 3), 2);
        assert_int_equal(ids[0], 'a');
        assert_int_equal(ids[1], 'b');
        tri_dataset_close(dataset);
    }
    put_text(in_scratch("bad.json"), "[{\"text\": \"aa\"}, {\"text\": 5}]");
    assert_refused("bad.json", TRI_INVALID, "bad.json, element 2: \"text\" is an integer");
    put_text(in_scratch("cut.json"), "[{\"text\": \"aa\"}, {\"text\"");
    assert_refused("cut.json", TRI_FORMAT, "cut.json is no JSON list: it ends in the middle");
    put_text(in_scratch("none.json"), "[]");
    assert_refused("none.json", TRI_INVALID, "none.json: the file holds no sample");
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

static int count_of(const int *ids, int64_t count, int id)
{
    int found = 0;
    for (int64_t i = 0; i < count; i++)
        found += ids[i] == id;
    return found;
}

/* The counts of the first epoch are those of its sequences. */
static void assert_counts_of_epoch(struct tri_dataset *dataset)
{
    struct tri_batch batch;
    const struct tri_record_counts epoch = tri_dataset_epoch(dataset);
    int64_t documents = 0, trained = 0;
    assert_int_equal(tri_batch_open(tri_dataset_max_sequence(dataset), &batch), TRI_OK);
    for (int64_t i = 0; i < tri_dataset_sequences(dataset, 0); i++) {
        tri_batch_clear(&batch);
        assert_int_equal(tri_dataset_read(dataset, 0, i, &batch), TRI_OK);
        documents += batch.num_docs;
        trained += batch.num_trained;
    }
    tri_batch_close(&batch);
    assert_int_equal(epoch.documents, documents);
    assert_int_equal(epoch.trained, trained);
    assert_true(trained != tri_dataset_stats(dataset)->trained);
}

/* Sources of 10 and 20 samples with weights 2 and 0.25: an epoch has 20 and 5 of them, and after
 * four epochs every sample of the second was seen once. */
static void test_weights(void **state)
{
    (void)state;
    enum { A = 10, B = 20, EPOCH = 25 };
    char a[4400], b[4400], *weights[] = {(char *)(uintptr_t) "2", (char *)(uintptr_t) "25%"};
    int ids[EPOCH + 1], other[EPOCH + 1], seen[A + B] = {0};
    const struct tri_data_target target = {
        .tokenizer = tokenizer, .vocab = FIXTURE_VOCAB, .seed = 42};
    FILE *f = fopen(in_scratch("b.jsonl"), "w");
    assert_non_null(f);
    for (int i = 0; i < B; i++)
        fprintf(f, "{\"input_ids\":[%d,%d,%d]}\n", A + i, A + i, A + i);
    assert_int_equal(fclose(f), 0);
    put_samples("a.jsonl", A, LONGEST);
    snprintf(a, sizeof a, "%s", in_scratch("a.jsonl"));
    snprintf(b, sizeof b, "%s", in_scratch("b.jsonl"));
    options.weights = weights;
    options.num_weights = 2;

    uint64_t identity = 0;
    for (int pack = 0; pack < 2; pack++) {
        struct tri_dataset *dataset;
        options.pack_samples = pack;
        options.max_length = 40;
        if (tri_dataset_open(&options, (char *[]){a, b}, 2, &target, &dataset) != TRI_OK)
            fail_msg("%s", tri_error_text());
        assert_int_equal(tri_dataset_stats(dataset)->epoch_samples, EPOCH);
        assert_counts_of_epoch(dataset);
        memset(seen, 0, sizeof seen);
        for (int64_t epoch = 0; epoch < 4; epoch++) {
            assert_int_equal(read_epoch(dataset, epoch, ids, EPOCH + 1), EPOCH);
            for (int i = 0; i < A; i++)
                assert_int_equal(count_of(ids, EPOCH, i), 2);
            for (int i = 0; i < EPOCH; i++)
                seen[ids[i]]++;
        }
        for (int i = A; i < A + B; i++)
            assert_int_equal(seen[i], 1);
        /* Epoch 1 after the others, and in another run: the same. */
        assert_int_equal(read_epoch(dataset, 1, ids, EPOCH + 1), EPOCH);
        assert_true(identity != tri_dataset_identity(dataset));
        identity = tri_dataset_identity(dataset);
        tri_dataset_close(dataset);
        assert_int_equal(tri_dataset_open(&options, (char *[]){a, b}, 2, &target, &dataset),
                         TRI_OK);
        assert_int_equal(read_epoch(dataset, 1, other, EPOCH + 1), EPOCH);
        assert_memory_equal(ids, other, EPOCH * sizeof *ids);
        tri_dataset_close(dataset);
    }

    struct tri_dataset *dataset;
    weights[0] = (char *)(uintptr_t) "0";
    assert_int_equal(tri_dataset_open(&options, (char *[]){a, b}, 2, &target, &dataset),
                     TRI_INVALID);
    assert_error_has("data.weights: 0 is not above 0");
    weights[0] = (char *)(uintptr_t) "many";
    assert_int_equal(tri_dataset_open(&options, (char *[]){a, b}, 2, &target, &dataset),
                     TRI_INVALID);
    assert_error_has("data.weights: ");
    weights[0] = weights[1] = (char *)(uintptr_t) "1e-3";
    assert_int_equal(tri_dataset_open(&options, (char *[]){a, b}, 2, &target, &dataset),
                     TRI_INVALID);
    assert_error_has("data.weights leave some epoch without a sample");
    assert_int_equal(tri_dataset_open(&options, (char *[]){a}, 1, &target, &dataset), TRI_INVALID);
    assert_error_has("data.weights has 2 numbers and data.sources 1 sources");
}

/* Without shuffling, half of a source is its first half, and then its second. */
static void test_weights_in_order(void **state)
{
    (void)state;
    char *weights[] = {(char *)(uintptr_t) "0.5"};
    int ids[10];
    put_samples("a.jsonl", 10, LONGEST);
    options.weights = weights;
    options.num_weights = 1;
    options.shuffle = false;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    for (int64_t epoch = 0; epoch < 4; epoch++) {
        assert_int_equal(read_epoch(dataset, epoch, ids, 10), 5);
        for (int i = 0; i < 5; i++)
            assert_int_equal(ids[i], i + 5 * (epoch % 2));
    }
    tri_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_changed_copies),
        FIXTURE_TEST(test_compressed_files),
        FIXTURE_TEST(test_broken_compressed_files),
        FIXTURE_TEST(test_json_files),
        FIXTURE_TEST(test_bad_samples),
        FIXTURE_TEST(test_one_format_a_file),
        FIXTURE_TEST(test_weights),
        FIXTURE_TEST(test_weights_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
