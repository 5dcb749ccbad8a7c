/* Where bytes lie among tokens, against the offsets of Hugging Face tokenizers. */
#include "unit/scratch.h"

#include "base/json.h"
#include "text/tokenizer.h"

static const struct tri_token_ids large = {.vocab = 151936, .bos = -1, .eos = -1, .pad = -1};

static const char *golden_path(const char *folder, const char *name)
{
    static char path[4400];
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s%s%s", TEST_DATA, folder, *name ? "/" : "",
             name);
    return path;
}

static struct tri_tokenizer *must_open(const char *folder)
{
    struct tri_tokenizer *tokenizer;
    if (tri_tokenizer_open("auto", golden_path(folder, ""), &large, &tokenizer) != TRI_OK)
        fail_msg("%s: %s", folder, tri_error_text());
    return tokenizer;
}

static int64_t number(const json_t *list, size_t i)
{
    return json_integer_value(json_array_get(list, i));
}

/* U+0300 to U+036F: NFC may join it to what is before, and then there is no place between. */
static bool is_combining(const char *text)
{
    return (unsigned char)text[0] == 0xCC ||
           ((unsigned char)text[0] == 0xCD && (unsigned char)text[1] < 0xB0);
}

/* Every character of the text, and its end, against the tokens' offsets. */
static void check_line(const char *folder, int line, const struct tri_tokenizer *tokenizer,
                       const json_t *golden)
{
    const char *text = json_string_value(json_object_get(golden, "text"));
    const size_t bytes = json_string_length(json_object_get(golden, "text"));
    const json_t *begin = json_object_get(golden, "begin"), *end = json_object_get(golden, "end");
    struct tri_text_place *places = calloc(bytes + 1, sizeof *places);
    size_t count = 0;
    assert_non_null(places);
    for (size_t at = 0; at <= bytes; at++)
        if (at == bytes || !(((unsigned char)text[at] & 0xC0) == 0x80 || is_combining(text + at)))
            places[count++].offset = at;
    struct tri_ids ids = {.count = 0};
    if (tokenizer->encode_at(tokenizer, text, bytes, places, count, &ids) != TRI_OK)
        fail_msg("%s, line %d: %s", folder, line, tri_error_text());
    assert_int_equal(ids.count, json_array_size(begin));
    for (size_t i = 0, want = 0; i < count; i++) {
        const int64_t at = (int64_t)places[i].offset;
        while (want < json_array_size(end) && number(end, want) <= at)
            want++;
        const bool inside = want < json_array_size(end) && number(begin, want) < at;
        if (places[i].token != (int64_t)want || places[i].inside != inside)
            fail_msg("%s, line %d, byte %lld of \"%s\": token %lld%s instead of %zu%s", folder,
                     line, (long long)at, text, (long long)places[i].token,
                     places[i].inside ? " inside" : "", want, inside ? " inside" : "");
    }
    tri_ids_free(&ids);
    free(places);
}

static void check_folder(const char *folder)
{
    struct tri_tokenizer *tokenizer = must_open(folder);
    FILE *f = fopen(golden_path(folder, "golden_offsets.jsonl"), "r");
    assert_non_null(f);
    char *line = NULL;
    size_t room = 0;
    int lines = 0;
    for (ssize_t bytes; (bytes = getline(&line, &room, f)) > 0;) {
        json_t *golden = json_loadb(line, (size_t)bytes, JSON_ALLOW_NUL, NULL);
        assert_non_null(golden);
        check_line(folder, ++lines, tokenizer, golden);
        json_decref(golden);
    }
    assert_true(lines >= 20);
    free(line);
    fclose(f);
    tri_tokenizer_close(tokenizer);
}

static void test_offsets(void **state)
{
    (void)state;
    check_folder("gpt2_style");
    check_folder("llama2_style");
    check_folder("llama3_style");
    check_folder("qwen_style");
}

static void test_bytes_are_their_own_places(void **state)
{
    (void)state;
    struct tri_tokenizer *tokenizer;
    struct tri_text_place places[] = {{.offset = 1}, {.offset = 3}};
    struct tri_ids ids = {.count = 0};
    assert_int_equal(tri_byte_tokenizer_open(&large, &tokenizer), TRI_OK);
    assert_int_equal(tri_ids_push(&ids, 7), TRI_OK); /* ids are appended */
    assert_int_equal(tokenizer->encode_at(tokenizer, "abc", 3, places, 2, &ids), TRI_OK);
    assert_int_equal(ids.count, 4);
    assert_int_equal(ids.data[1], 'a');
    assert_int_equal(places[0].token, 2);
    assert_int_equal(places[1].token, 4);
    assert_false(places[0].inside);
    tri_ids_free(&ids);
    tri_tokenizer_close(tokenizer);
}

static void test_bad_places(void **state)
{
    (void)state;
    struct tri_tokenizer *tokenizer = must_open("llama3_style");
    struct tri_ids ids = {.count = 0};
    struct tri_text_place behind = {.offset = 4}, cut = {.offset = 1};
    struct tri_text_place back[] = {{.offset = 2}, {.offset = 0}};
    assert_int_equal(tokenizer->encode_at(tokenizer, "abc", 3, &behind, 1, &ids), TRI_INTERNAL);
    assert_int_equal(tokenizer->encode_at(tokenizer, "\xC3\xA9", 2, &cut, 1, &ids), TRI_INTERNAL);
    assert_int_equal(tokenizer->encode_at(tokenizer, "abc", 3, back, 2, &ids), TRI_INTERNAL);
    assert_int_equal(tokenizer->encode_at(tokenizer, "\xC3", 1, NULL, 0, &ids), TRI_INVALID);
    tri_ids_free(&ids);
    tri_tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_bytes_are_their_own_places),
        cmocka_unit_test(test_bad_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
