/* tokenizer.json against what Hugging Face tokenizers made of the same texts. */
#include "unit/scratch.h"

#include <pthread.h>

#include "base/json.h"
#include "text/subword.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"
#include "unit/text/sha256.h"

static const struct tri_token_ids large = {.vocab = 151936, .bos = -1, .eos = -1, .pad = -1};

static const char *golden_path(const char *folder, const char *name)
{
    static char path[4400];
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s/%s", TEST_DATA, folder, name);
    return path;
}

/* The folder of a tokenizer: that of the references, or the scratch folder with the compressed one
 * unpacked. */
static const char *unpacked(const char *folder)
{
    static char path[4400];
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s", TEST_DATA, folder);
    if (tri_path_exists(golden_path(folder, "tokenizer.json")))
        return path;
    char command[9000];
    snprintf(command, sizeof command, "gzip -dc '%s/tokenizer.json.gz' >'%s/tokenizer.json'", path,
             scratch);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "cp '%s/tokenizer_config.json' '%s'", path, scratch);
    assert_int_equal(system(command), 0);
    return scratch;
}

static struct tri_tokenizer *must_open(const char *folder)
{
    struct tri_tokenizer *tokenizer;
    if (tri_tokenizer_open("auto", unpacked(folder), &large, &tokenizer) != TRI_OK)
        fail_msg("%s: %s", folder, tri_error_text());
    assert_string_equal(tokenizer->name, "tokenizer.json");
    return tokenizer;
}

/* The ids are those of a JSON list. */
static void assert_ids(const char *folder, int line, const int32_t *ids, int64_t count,
                       const json_t *want)
{
    if ((size_t)count != json_array_size(want))
        fail_msg("%s, line %d: %lld ids instead of %zu", folder, line, (long long)count,
                 json_array_size(want));
    for (size_t i = 0; i < json_array_size(want); i++)
        if (ids[i] != json_integer_value(json_array_get(want, i)))
            fail_msg("%s, line %d: id %zu is %d instead of %lld", folder, line, i, ids[i],
                     (long long)json_integer_value(json_array_get(want, i)));
}

static void check_line(const char *folder, int line, const struct tri_tokenizer *tokenizer,
                       const json_t *golden)
{
    const json_t *text = json_object_get(golden, "text");
    const json_t *want = json_object_get(golden, "ids_with_special");
    const json_t *decoded = json_object_get(golden, "decoded");
    const char *string = json_string_value(text);
    const size_t bytes = json_string_length(text);
    int64_t count;
    if (tokenizer->count(tokenizer, string, bytes, &count) != TRI_OK)
        fail_msg("%s, line %d: %s", folder, line, tri_error_text());
    const int64_t before = tokenizer->num_before, after = tokenizer->num_after;
    int32_t *ids = calloc((size_t)(before + count + after) + 1, sizeof *ids);
    assert_non_null(ids);
    assert_int_equal(tokenizer->encode(tokenizer, string, bytes, 0, count, ids + before), TRI_OK);
    assert_ids(folder, line, ids + before, count, json_object_get(golden, "ids"));
    for (int64_t i = 0; i < before; i++)
        ids[i] = tokenizer->before[i];
    for (int64_t i = 0; i < after; i++)
        ids[before + count + i] = tokenizer->after[i];
    assert_ids(folder, line, ids, before + count + after, want);

    struct tri_text out = {0};
    assert_int_equal(tokenizer->decode(tokenizer, ids + before, count, false, &out), TRI_OK);
    assert_int_equal(out.bytes, json_string_length(decoded));
    assert_memory_equal(tri_text_data(&out), json_string_value(decoded), out.bytes);
    tri_text_free(&out);
    free(ids);
}

static void check_lines(const char *folder, const struct tri_tokenizer *tokenizer)
{
    FILE *f = fopen(golden_path(folder, "golden.jsonl"), "r");
    assert_non_null(f);
    char *line = NULL;
    size_t room = 0;
    int number = 0;
    for (ssize_t bytes; (bytes = getline(&line, &room, f)) > 0;) {
        json_t *golden = json_loadb(line, (size_t)bytes, JSON_ALLOW_NUL, NULL);
        assert_non_null(golden);
        check_line(folder, ++number, tokenizer, golden);
        json_decref(golden);
    }
    assert_true(number > 100);
    free(line);
    fclose(f);
}

static char *read_corpus(size_t *bytes)
{
    char *text;
    assert_int_equal(tri_file_read(golden_path(".", "kjv_genesis.txt"), 1 << 20, &text, bytes),
                     TRI_OK);
    return text;
}

static void check_corpus(const char *folder, const struct tri_tokenizer *tokenizer)
{
    json_t *golden;
    assert_int_equal(tri_json_load(golden_path(folder, "golden_corpus.json"), &golden), TRI_OK);
    size_t bytes;
    char *text = read_corpus(&bytes);
    int64_t count;
    assert_int_equal(tokenizer->count(tokenizer, text, bytes, &count), TRI_OK);
    assert_int_equal(count, json_integer_value(json_object_get(golden, "tokens")));
    int32_t *ids = calloc((size_t)count, sizeof *ids);
    assert_int_equal(tokenizer->encode(tokenizer, text, bytes, 0, count, ids), TRI_OK);
    unsigned char *little = malloc(4 * (size_t)count);
    assert_non_null(little);
    for (size_t i = 0; i < 4 * (size_t)count; i++)
        little[i] = (unsigned char)((uint32_t)ids[i / 4] >> (8 * (i % 4)));
    char hash[65];
    sha256(little, 4 * (size_t)count, hash);
    assert_string_equal(
        hash, json_string_value(json_object_get(golden, "sha256_of_little_endian_u32_ids")));
    free(little);
    free(ids);
    free(text);
    json_decref(golden);
}

static void check_folder(const char *folder)
{
    struct tri_tokenizer *tokenizer = must_open(folder);
    check_lines(folder, tokenizer);
    check_corpus(folder, tokenizer);
    tri_tokenizer_close(tokenizer);
}

static void test_gpt2_style(void **state)
{
    (void)state;
    check_folder("gpt2_style");
}

static void test_llama3_style(void **state)
{
    (void)state;
    check_folder("llama3_style");
}

static void test_qwen_style(void **state)
{
    (void)state;
    check_folder("qwen_style");
}

static void test_llama2_style(void **state)
{
    (void)state;
    check_folder("llama2_style");
}

static void test_qwen3(void **state)
{
    (void)state;
    check_folder("qwen3");
}

static void test_special_ids(void **state)
{
    (void)state;
    static const struct {
        const char *folder;
        int64_t bos, eos, pad;
    } cases[] = {
        {"gpt2_style", -1, 0, -1},      {"llama3_style", 1500, 1504, -1},
        {"qwen_style", -1, 1502, 1500}, {"llama2_style", 1, 2, -1},
        {"qwen3", -1, 151645, 151643}, /* its bos_token is null, and model_max_length huge */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tri_tokenizer *tokenizer = must_open(cases[i].folder);
        assert_int_equal(tokenizer->bos, cases[i].bos);
        assert_int_equal(tokenizer->eos, cases[i].eos);
        assert_int_equal(tokenizer->pad, cases[i].pad);
        tri_tokenizer_close(tokenizer);
    }
}

/* Any range of a document gives the same as the whole, in any order, cached or not. */
static void test_ranges(void **state)
{
    (void)state;
    struct tri_tokenizer *tokenizer = must_open("llama2_style");
    size_t bytes;
    char *text = read_corpus(&bytes);
    int64_t count;
    assert_int_equal(tokenizer->count(tokenizer, text, bytes, &count), TRI_OK);
    int32_t *whole = calloc((size_t)count, sizeof *whole);
    int32_t *part = calloc((size_t)count, sizeof *part);
    assert_int_equal(tokenizer->encode(tokenizer, text, bytes, 0, count, whole), TRI_OK);
    for (int64_t piece = 7; piece < count; piece = 3 * piece + 1) {
        for (int64_t first = 0; first < count; first += 11 * piece) {
            const int64_t n = piece < count - first ? piece : count - first;
            assert_int_equal(tokenizer->encode(tokenizer, text, bytes, first, n, part), TRI_OK);
            assert_memory_equal(part, whole + first, (size_t)n * sizeof *part);
        }
    }
    assert_int_equal(tokenizer->encode(tokenizer, text, bytes, count, 1, part), TRI_INTERNAL);
    assert_int_equal(tokenizer->encode(tokenizer, text, bytes, -1, 1, part), TRI_INTERNAL);
    assert_int_equal(tokenizer->encode(tokenizer, text, bytes, count + 1, 0, part), TRI_INTERNAL);
    assert_int_equal(tokenizer->encode(tokenizer, text, bytes, 0, count + 1, part), TRI_INTERNAL);
    free(part);
    free(whole);
    free(text);
    tri_tokenizer_close(tokenizer);
}

static void test_decode(void **state)
{
    (void)state;
    struct tri_tokenizer *tokenizer = must_open("llama3_style");
    const int32_t ids[] = {1500, 39, 1504};
    struct tri_text out = {0};
    assert_int_equal(tokenizer->decode(tokenizer, ids, 3, false, &out), TRI_OK);
    assert_string_equal(tri_text_data(&out), "<|begin_of_text|>H<|eot_id|>");
    out.bytes = 0;
    assert_int_equal(tokenizer->decode(tokenizer, ids, 3, true, &out), TRI_OK);
    assert_string_equal(tri_text_data(&out), "H");
    const int32_t unknown = 1505;
    assert_int_equal(tokenizer->decode(tokenizer, &unknown, 1, true, &out), TRI_INVALID);
    assert_error_has("no token 1505");
    tri_text_free(&out);
    tri_tokenizer_close(tokenizer);
}

static void test_vocabulary_larger_than_the_embedding(void **state)
{
    (void)state;
    const struct tri_token_ids small = {.vocab = 1504, .bos = -1, .eos = -1, .pad = -1};
    const char *folder = unpacked("llama3_style");
    struct tri_tokenizer *tokenizer;
    assert_int_equal(tri_json_tokenizer_open(folder, &small, &tokenizer), TRI_INVALID);
    assert_error_has("the tokenizer has 1505 ids, the model's vocab_size is 1504");
    /* Tokenized data needs no tokenizer, so it is text that meets the error. */
    assert_int_equal(tri_tokenizer_open("auto", folder, &small, &tokenizer), TRI_OK);
    int64_t count;
    assert_int_equal(tokenizer->count(tokenizer, "a", 1, &count), TRI_INVALID);
    assert_error_has("the tokenizer has 1505 ids, the model's vocab_size is 1504");
    assert_error_has("data.tokenizer: bytes");
    tri_tokenizer_close(tokenizer);
}

static void test_broken_text_is_refused(void **state)
{
    (void)state;
    struct tri_tokenizer *tokenizer = must_open("gpt2_style");
    int64_t count;
    assert_int_equal(tokenizer->count(tokenizer, "ab\xFF", 3, &count), TRI_INVALID);
    assert_error_has("invalid UTF-8 at byte 2");
    assert_int_equal(tokenizer->count(tokenizer, "", 0, &count), TRI_OK);
    assert_int_equal(count, 0);
    tri_tokenizer_close(tokenizer);
}

/* Between characters that no merge joins, cutting changes nothing. */
static void test_cuts_change_nothing(void **state)
{
    (void)state;
    static const char *const folders[] = {"llama2_style", "gpt2_style"};
    size_t bytes;
    char *text = read_corpus(&bytes);
    for (size_t i = 0; i < 2; i++) {
        struct tri_tokenizer *tokenizer = must_open(folders[i]);
        struct tri_subword *subword = (struct tri_subword *)tokenizer;
        struct tri_ids cut = {.count = 0}, whole = {.count = 0};
        assert_true(subword->bpe.may_cut);
        assert_int_equal(tri_subword_encode(subword, text, bytes, &cut), TRI_OK);
        subword->bpe.may_cut = false;
        assert_int_equal(tri_subword_encode(subword, text, bytes, &whole), TRI_OK);
        assert_int_equal(cut.count, whole.count);
        assert_memory_equal(cut.data, whole.data, (size_t)cut.count * sizeof *cut.data);
        tri_ids_free(&cut);
        tri_ids_free(&whole);
        tri_tokenizer_close(tokenizer);
    }
    free(text);
}

enum { THREADS = 4, TEXTS = 200 };

struct caller {
    const struct tri_tokenizer *tokenizer;
    int64_t counts[TEXTS];
    bool failed;
};

/* Lengths of the same texts, in another order than the other threads take them. */
static void *count_all(void *ctx)
{
    struct caller *caller = ctx;
    const int step = 7 + 2 * (int)((uintptr_t)caller / sizeof *caller % 4);
    for (int i = 0; i < TEXTS; i++) {
        const int n = i * step % TEXTS;
        char text[64];
        const int bytes = snprintf(text, sizeof text, "And the number %d begat %d.", n, n * n);
        if (caller->tokenizer->count(caller->tokenizer, text, (size_t)bytes, &caller->counts[n]) !=
            TRI_OK)
            caller->failed = true;
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    static struct caller caller[THREADS + 1];
    pthread_t thread[THREADS];
    struct tri_tokenizer *tokenizer = must_open("gpt2_style");
    for (int i = 0; i <= THREADS; i++)
        caller[i].tokenizer = tokenizer;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count_all, &caller[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    tri_tokenizer_close(tokenizer);
    caller[THREADS].tokenizer = tokenizer = must_open("gpt2_style");
    (void)count_all(&caller[THREADS]);
    for (int i = 0; i <= THREADS; i++) {
        assert_false(caller[i].failed);
        assert_memory_equal(caller[i].counts, caller[THREADS].counts, sizeof caller[i].counts);
    }
    tri_tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2_style),
        cmocka_unit_test(test_llama3_style),
        cmocka_unit_test(test_qwen_style),
        cmocka_unit_test(test_llama2_style),
        SCRATCH_TEST(test_qwen3),
        SCRATCH_TEST(test_special_ids),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_vocabulary_larger_than_the_embedding),
        cmocka_unit_test(test_broken_text_is_refused),
        cmocka_unit_test(test_cuts_change_nothing),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
