/* A cache gives what the files give, goes on where a build was killed, and is not believed when it
 * is another one's or damaged. */
#include "unit/data/data_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <zlib.h>

#include "data/cache/cache.h"
#include "data/cache/part.h"
#include "data/files.h"
#include "data/formats/chat.h"

static char cache_dir[4400], home[4500];

static int open_all(void **state)
{
    const int rc = fixture_open(state);
    snprintf(cache_dir, sizeof cache_dir, "%s/cache", scratch);
    snprintf(home, sizeof home, "%s/tokens", cache_dir);
    options.cache_dir = cache_dir;
    return rc;
}

/* Texts, tokens with labels and documents, and text files: every shape that a sample has. */
static void put_data(void)
{
    assert_int_equal(tri_make_folder(in_scratch("data")), TRI_OK);
    FILE *f = fopen(in_scratch("data/a.jsonl"), "w");
    assert_non_null(f);
    for (int i = 0; i < 40; i++)
        fprintf(f, "{\"text\": \"%.*s\"}\n%s", 3 + i * 7 % 50,
                "It was the best of times, it was the worst of times, it was the age of wisdom",
                i % 9 == 0 ? "\n" : "");
    assert_int_equal(fclose(f), 0);
    put_text(in_scratch("data/b.jsonl"),
             "{\"input_ids\": [1, 2, 3, 4, 5, 6, 7], \"labels\": [-100, -100, 3, 4, -100, 6, 7]}\n"
             "{\"input_ids\": [9, 8, 7, 6, 5], \"position_ids\": [0, 1, 0, 1, 2]}\n"
             "{\"input_ids\": [1, 1, 1, 1, 1, 1, 1, 1], \"labels\": "
             "[1, 1, -100, 1, 1, 1, 1, 1], \"position_ids\": [0, 1, 2, 0, 1, 2, 3, 4]}\n");
    put_text(in_scratch("data/c.txt"), "a text file\nof two lines");
    put_text(in_scratch("data/d.txt"), "another");
}

static struct tri_dataset *open_with(int cache)
{
    options.cache = cache;
    return must_open_data("data");
}

/* Both datasets say and hold the same. */
static void assert_same_data(struct tri_dataset *a, struct tri_dataset *b)
{
    struct tri_batch x, y;
    const int64_t most = tri_dataset_max_sequence(a);
    assert_memory_equal(tri_dataset_stats(a), tri_dataset_stats(b), sizeof(struct tri_data_stats));
    assert_true(tri_dataset_identity(a) == tri_dataset_identity(b));
    assert_int_equal(tri_dataset_max_sequence(b), most);
    assert_int_equal(tri_batch_open(most, &x), TRI_OK);
    assert_int_equal(tri_batch_open(most, &y), TRI_OK);
    for (int64_t epoch = 0; epoch < 2; epoch++)
        for (int64_t i = 0; i < tri_dataset_sequences(a, epoch); i++) {
            tri_batch_clear(&x);
            tri_batch_clear(&y);
            assert_int_equal(tri_dataset_read(a, epoch, i, &x), TRI_OK);
            assert_int_equal(tri_dataset_read(b, epoch, i, &y), TRI_OK);
            assert_int_equal(x.num_tokens, y.num_tokens);
            assert_int_equal(x.num_docs, y.num_docs);
            assert_int_equal(x.num_trained, y.num_trained);
            assert_true(x.identity == y.identity);
            const size_t n = (size_t)x.num_tokens;
            assert_memory_equal(x.ids, y.ids, n * sizeof *x.ids);
            assert_memory_equal(x.labels, y.labels, n * sizeof *x.labels);
            assert_memory_equal(x.positions, y.positions, n * sizeof *x.positions);
            assert_memory_equal(x.doc_begin, y.doc_begin,
                                (size_t)(x.num_docs + 1) * sizeof *x.doc_begin);
        }
    tri_batch_close(&x);
    tri_batch_close(&y);
}

/* One cache serves every length, policy and packing. */
static void a_cache_gives_what_the_files_give(void **state)
{
    (void)state;
    put_data();
    tri_dataset_close(open_with(TRI_CACHE_BUILD));
    static const struct {
        int64_t max_length;
        int overlength;
        bool pack;
    } cases[] = {
        {0, TRI_OVERLENGTH_ERROR, false}, {64, TRI_OVERLENGTH_ERROR, true},
        {20, TRI_OVERLENGTH_SPLIT, true}, {4, TRI_OVERLENGTH_SPLIT, false},
        {20, TRI_OVERLENGTH_DROP, true},  {20, TRI_OVERLENGTH_TRUNCATE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options.max_length = cases[i].max_length;
        options.overlength = cases[i].overlength;
        options.pack_samples = cases[i].pack;
        struct tri_dataset *files = open_with(TRI_CACHE_OFF);
        struct tri_dataset *cache = open_with(TRI_CACHE_REQUIRE);
        assert_same_data(files, cache);
        tri_dataset_close(files);
        tri_dataset_close(cache);
    }
    options.max_length = 20;
    options.overlength = TRI_OVERLENGTH_ERROR;
    options.cache = TRI_CACHE_OFF;
    struct tri_dataset *none;
    assert_int_equal(open_data("data", &none), TRI_INVALID);
    char error[512];
    snprintf(error, sizeof error, "%s", tri_error_text());
    options.cache = TRI_CACHE_REQUIRE;
    assert_refused("data", TRI_INVALID, error);
    assert_int_equal(count_entries(home), 2); /* the cache and its lock */
}

/* ---- keys ------------------------------------------------------------------------------------
 */

static void another_one_is_not_used(void **state)
{
    (void)state;
    put_data();
    options.cache = TRI_CACHE_REQUIRE;
    assert_refused("data", TRI_INVALID, "run trireme data build");
    tri_dataset_close(open_with(TRI_CACHE_BUILD));
    tri_dataset_close(open_with(TRI_CACHE_REQUIRE));
    /* Other settings. */
    options.add_bos = true;
    assert_refused("data", TRI_INVALID, "others are, see above");
    struct tri_dataset *files = open_with(TRI_CACHE_OFF);
    struct tri_dataset *cache = open_with(TRI_CACHE_AUTO); /* reads the files */
    assert_same_data(files, cache);
    tri_dataset_close(files);
    tri_dataset_close(cache);
    options.add_bos = false;
    tri_dataset_close(open_with(TRI_CACHE_REQUIRE));
    /* Other contents of the same size, with the time of the old ones. */
    struct stat info;
    assert_int_equal(stat(in_scratch("data/d.txt"), &info), 0);
    put_text(in_scratch("data/d.txt"), "ANOTHER");
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, in_scratch("data/d.txt"), times, 0), 0);
    options.cache = TRI_CACHE_REQUIRE;
    assert_refused("data", TRI_INVALID, "is not there");
    tri_dataset_close(open_with(TRI_CACHE_BUILD));
    tri_dataset_close(open_with(TRI_CACHE_REQUIRE));
    assert_int_equal(count_entries(home), 4);
}

/* The only folder of caches that ends like a key. */
static const char *find_cache(void)
{
    static char path[4800];
    DIR *dir = opendir(home);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strlen(entry->d_name) == 16)
            snprintf(path, sizeof path, "%s/%s", home, entry->d_name);
    closedir(dir);
    return path;
}

static void damage_is_found(void **state)
{
    (void)state;
    char part[4900], card[4900];
    struct tri_map map;
    put_data();
    tri_dataset_close(open_with(TRI_CACHE_BUILD));
    snprintf(part, sizeof part, "%s/part-000000", find_cache());
    snprintf(card, sizeof card, "%s/cache.json", find_cache());
    assert_int_equal(tri_map_open(part, &map), TRI_OK);
    const size_t bytes = map.bytes;
    unsigned char *good = malloc(bytes), *bad = malloc(bytes);
    assert_non_null(good);
    assert_non_null(bad);
    memcpy(good, map.data, bytes);
    tri_map_close(&map);
    options.cache = TRI_CACHE_REQUIRE;
    /* A bit anywhere, even one that gives another possible token: in the header, the table, the
     * footer it is found at once; in a sample when that is read. Only padding may change. */
    int found = 0, found_later = 0, padding = 0;
    for (size_t at = 0; at < bytes; at += 13) {
        struct tri_dataset *dataset = NULL;
        const int found_before = found + found_later;
        memcpy(bad, good, bytes);
        bad[at] ^= 1;
        put_file(part, bad, bytes);
        if (open_data("data", &dataset) != TRI_OK) {
            found++;
            assert_true(tri_error_text()[0] != '\0');
        }
        struct tri_batch batch;
        for (int64_t i = 0; dataset && i < tri_dataset_sequences(dataset, 0); i++) {
            assert_int_equal(tri_batch_open(tri_dataset_max_sequence(dataset), &batch), TRI_OK);
            if (tri_dataset_read(dataset, 0, i, &batch) != TRI_OK) {
                assert_memory_equal(tri_error_text(), part, strlen(part)); /* not the data's file */
                assert_error_has("part-000000: sample ");
                assert_error_has(" is damaged: remove the folder and run trireme data build again");
                found_later++;
            }
            tri_batch_close(&batch);
        }
        tri_dataset_close(dataset);
        assert_true(found + found_later <= found_before + 1);
        if (found + found_later == found_before) { /* between arrays there is nothing but zeros */
            assert_int_equal(good[at], 0);
            padding++;
        }
    }
    assert_true(found > 20 && found_later > 100);
    assert_true(padding < found_later / 10);
    memcpy(bad, good, bytes);
    bad[8] = TRI_CACHE_VERSION + 1;
    put_file(part, bad, bytes);
    assert_refused("data", TRI_UNSUPPORTED, "the cache has version 3 and this is version 2");
    put_file(part, good, bytes - 8);
    assert_refused("data", TRI_FORMAT, "remove the folder and run trireme data build again");
    put_file(part, good, 8);
    assert_refused("data", TRI_FORMAT, "cut off");
    /* Without being asked for, a damaged cache is only mentioned. */
    struct tri_dataset *files = open_with(TRI_CACHE_OFF);
    struct tri_dataset *cache = open_with(TRI_CACHE_AUTO);
    assert_same_data(files, cache);
    tri_dataset_close(files);
    tri_dataset_close(cache);
    put_file(part, good, bytes);
    tri_dataset_close(open_with(TRI_CACHE_REQUIRE));
    free(good);
    free(bad);
}

/* A long sample is hashed in blocks: ranges without the damaged one are read. */
static void damage_in_a_long_sample(void **state)
{
    (void)state;
    enum { TOKENS = 200000, PIECE = 50000 };
    char part[4900];
    FILE *f = fopen(in_scratch("data.txt"), "w");
    assert_non_null(f);
    for (int i = 0; i < TOKENS; i++)
        fputc('a' + i % 26, f);
    assert_int_equal(fclose(f), 0);
    options.cache = TRI_CACHE_BUILD;
    options.max_length = PIECE;
    options.overlength = TRI_OVERLENGTH_SPLIT;
    tri_dataset_close(must_open_data("data.txt"));
    snprintf(part, sizeof part, "%s/part-000000", find_cache());
    struct tri_dataset *dataset = must_open_data("data.txt");
    assert_int_equal(tri_dataset_sequences(dataset, 0), TOKENS / PIECE);
    for (int bad = 0; bad < 2; bad++) {
        int refused = 0;
        struct tri_batch batch;
        for (int64_t i = 0; i < TOKENS / PIECE; i++) {
            assert_int_equal(tri_batch_open(PIECE, &batch), TRI_OK);
            if (tri_dataset_read(dataset, 0, i, &batch) != TRI_OK) {
                assert_error_has("sample 0 is damaged");
                refused++;
            }
            tri_batch_close(&batch);
        }
        assert_int_equal(refused, bad); /* token 199000 is in the last block and the last piece */
        f = fopen(part, "r+");
        assert_non_null(f);
        assert_int_equal(fseek(f, 24 + 4 * 199000, SEEK_SET), 0);
        assert_int_equal(fputc('z' + 1, f), 'z' + 1);
        assert_int_equal(fclose(f), 0);
    }
    tri_dataset_close(dataset);
}

/* Cut while it is mapped: refused, where touching what is gone would end the program. */
static void a_part_that_shrinks_is_refused(void **state)
{
    (void)state;
    char part[4900];
    struct tri_batch batch;
    put_data();
    tri_dataset_close(open_with(TRI_CACHE_BUILD));
    snprintf(part, sizeof part, "%s/part-000000", find_cache());
    struct tri_dataset *dataset = open_with(TRI_CACHE_REQUIRE);
    assert_int_equal(tri_batch_open(tri_dataset_max_sequence(dataset), &batch), TRI_OK);
    assert_int_equal(tri_dataset_read(dataset, 0, 0, &batch), TRI_OK);
    tri_batch_clear(&batch);
    assert_int_equal(truncate(part, 0), 0);
    assert_int_equal(tri_dataset_read(dataset, 0, 1, &batch), TRI_INVALID);
    assert_error_has("part-000000 has changed since it was opened: it has 0 bytes");
    assert_int_equal(unlink(part), 0);
    assert_int_equal(tri_dataset_read(dataset, 0, 1, &batch), TRI_IO);
    assert_error_has("part-000000 any more");
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
}

/* ---- building --------------------------------------------------------------------------------
 */

struct sources {
    struct tri_data_files files;
    struct tri_sample_rules rules;
    struct tri_chat_rules *chat;
    struct tri_cache_key key;
};

static void open_sources(struct sources *s)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/data", scratch);
    memset(s, 0, sizeof *s);
    assert_int_equal(tri_data_files_open((char *[]){path}, 1, &s->files), TRI_OK);
    assert_int_equal(tri_chat_rules_open(&options, NULL, &s->chat), TRI_OK);
    s->rules = (struct tri_sample_rules){.tokenizer = tokenizer,
                                         .vocab = FIXTURE_VOCAB,
                                         .train_inputs = !options.mask_inputs,
                                         .chat = s->chat};
    assert_int_equal(tri_cache_key(&s->files, &s->rules, &s->key), TRI_OK);
}

static void close_sources(struct sources *s)
{
    tri_data_files_close(&s->files);
    tri_chat_rules_close(s->chat);
}

/* Every write of a build fails once, as if it had been killed there; the next build goes on. */
static void a_killed_build_goes_on(void **state)
{
    (void)state;
    struct sources s;
    char building[4900];
    int kills = 0, most_kept = 0;
    put_data();
    open_sources(&s);
    snprintf(building, sizeof building, "%s/%016llx.building", home, (unsigned long long)s.key.key);
    for (int64_t n = 1;; n++) {
        tri_file_fail_at(n % 3 + 1); /* one to three parts further than what is there */
        const enum tri_status st = tri_cache_build(home, &s.key, &s.files, &s.rules, 700);
        tri_file_fail_at(0);
        if (st == TRI_OK)
            break;
        assert_true(n < 500);
        assert_int_equal(st, TRI_IO);
        assert_error_has("free space or choose another data.cache_dir");
        assert_false(tri_cache_exists(home, &s.key));
        kills++;
        const int kept = count_entries(building);
        assert_true(kept >= most_kept - 1); /* but for a torn one, nothing is lost */
        most_kept = kept > most_kept ? kept : most_kept;
    }
    assert_true(kills > 3 && most_kept > 4);
    assert_false(tri_path_exists(building));
    close_sources(&s);
    struct tri_dataset *files = open_with(TRI_CACHE_OFF);
    struct tri_dataset *cache = open_with(TRI_CACHE_REQUIRE);
    assert_same_data(files, cache);
    tri_dataset_close(files);
    tri_dataset_close(cache);
}

static void *build_in_thread(void *ctx)
{
    const struct sources *s = ctx;
    const enum tri_status st = tri_cache_build(home, &s->key, &s->files, &s->rules, 700);
    return (void *)(uintptr_t)st;
}

static void two_builders_make_one_cache(void **state)
{
    (void)state;
    struct sources s;
    pthread_t thread[2];
    void *status[2];
    put_data();
    open_sources(&s);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, build_in_thread, &s), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], &status[i]), 0);
        assert_true((enum tri_status)(uintptr_t)status[i] == TRI_OK);
    }
    close_sources(&s);
    tri_dataset_close(open_with(TRI_CACHE_REQUIRE));
}

static void bad_samples_are_named_while_building(void **state)
{
    (void)state;
    put_data();
    put_text(in_scratch("data/bad.jsonl"), "{\"text\": \"fine\"}\n\n{\"text\": 3}\n");
    options.cache = TRI_CACHE_BUILD;
    assert_refused("data", TRI_INVALID, "bad.jsonl:3: ");
    options.on_bad_sample = TRI_BAD_SKIP;
    struct tri_dataset *cache = open_with(TRI_CACHE_BUILD);
    assert_int_equal(tri_dataset_stats(cache)->bad, 1);
    struct tri_dataset *files = open_with(TRI_CACHE_OFF);
    assert_same_data(files, cache);
    tri_dataset_close(files);
    tri_dataset_close(cache);
}

/* A file of one sample, which becomes `mebibytes` of blanks. */
static void put_packed_blanks(const char *name, int mebibytes)
{
    enum { MEBIBYTE = 1 << 20 };
    static char blanks[MEBIBYTE];
    memset(blanks, ' ', sizeof blanks);
    gzFile file = gzopen(in_scratch(name), "wb1");
    assert_non_null(file);
    assert_int_equal(gzputs(file, "{\"text\": \"fine\"}\n"), 17);
    for (int i = 0; i < mebibytes; i++)
        assert_int_equal(gzwrite(file, blanks, MEBIBYTE), MEBIBYTE);
    assert_int_equal(gzclose(file), Z_OK);
}

/* Several ranks make a cache of much data, by its size when it is unpacked. */
static void ranks_make_a_cache_of_what_is_large_unpacked(void **state)
{
    (void)state;
    static const char *const names[] = {"small.jsonl.gz", "large.jsonl.gz"};
    const struct tri_data_target target = {
        .tokenizer = tokenizer, .vocab = FIXTURE_VOCAB, .seed = 42, .shared = true};
    put_packed_blanks(names[0], 1);
    put_packed_blanks(names[1], 65);
    options.cache = TRI_CACHE_AUTO;
    for (int i = 0; i < 2; i++) {
        struct tri_dataset *dataset;
        char source[4400];
        snprintf(source, sizeof source, "%s", in_scratch(names[i]));
        assert_int_equal(tri_dataset_open(&options, (char *[]){source}, 1, &target, &dataset),
                         TRI_OK);
        assert_int_equal(tri_dataset_stats(dataset)->samples, 1);
        tri_dataset_close(dataset);
        assert_true(tri_path_exists(home) == (i == 1));
    }
}

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, open_all, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(a_cache_gives_what_the_files_give),
        CACHE_TEST(another_one_is_not_used),
        CACHE_TEST(damage_is_found),
        CACHE_TEST(damage_in_a_long_sample),
        CACHE_TEST(a_part_that_shrinks_is_refused),
        CACHE_TEST(a_killed_build_goes_on),
        CACHE_TEST(two_builders_make_one_cache),
        CACHE_TEST(ranks_make_a_cache_of_what_is_large_unpacked),
        CACHE_TEST(bad_samples_are_named_while_building),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
