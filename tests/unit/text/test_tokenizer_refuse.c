/* A hostile or unknown tokenizer.json: each is refused in one line that names what and where. */
#include "unit/scratch.h"

#include "base/json.h"
#include "base/text.h"
#include "text/tokenizer_json.h"

static const struct tri_token_ids model = {.vocab = 100, .bos = -1, .eos = -1, .pad = -1};

/* A small tokenizer that is fine, with one part replaced. */
static const char *const parts[][2] = {
    {"added_tokens", "[{\"id\": 6, \"content\": \"<s>\", \"special\": true}]"},
    {"normalizer", "null"},
    {"pre_tokenizer", "null"},
    {"post_processor", "null"},
    {"decoder", "null"},
    {"model", "{\"type\": \"BPE\", \"unk_token\": null, \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, "
              "\"ab\": 3, \"abc\": 4, \"\xC3\xA9\": 5}, \"merges\": [\"a b\", [\"ab\", \"c\"]]}"},
};

static enum tri_status open_with(const char *name, const char *value, const char *config,
                                 struct tri_tokenizer **out)
{
    struct tri_text text = {0};
    bool known = false;
    tri_text_printf(&text, "{\"version\": \"1.0\"");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const bool same = name && strcmp(parts[i][0], name) == 0;
        known = known || same;
        tri_text_printf(&text, ", \"%s\": %s", parts[i][0], same ? value : parts[i][1]);
    }
    if (name && !known)
        tri_text_printf(&text, ", \"%s\": %s", name, value);
    tri_text_printf(&text, "}");
    json_t *json = config ? json_loads(config, 0, NULL) : NULL;
    const enum tri_status st =
        tri_json_tokenizer_parse(text.data, text.bytes, json, NULL, &model, out);
    json_decref(json);
    tri_text_free(&text);
    return st;
}

static void test_the_tokenizer_is_fine(void **state)
{
    (void)state;
    struct tri_tokenizer *tokenizer;
    if (open_with(NULL, NULL, NULL, &tokenizer) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_int_equal(tokenizer->vocab, 7);
    int64_t count;
    int32_t ids[4];
    assert_int_equal(tokenizer->count(tokenizer, "cabc<s>ab", 9, &count), TRI_OK);
    assert_int_equal(count, 4);
    assert_int_equal(tokenizer->encode(tokenizer, "cabc<s>ab", 9, 0, 4, ids), TRI_OK);
    const int32_t want[] = {2, 4, 6, 3};
    assert_memory_equal(ids, want, sizeof want);
    tri_tokenizer_close(tokenizer);
}

static const struct {
    const char *name, *value, *error;
} cases[] = {
    {"foo", "1", "\"foo\" is not known"},
    {"added_tokens", "7", "\"added_tokens\" must be a list"},
    {"added_tokens", "[7]", "added_tokens[0]: this must be a JSON object"},
    {"added_tokens", "[{\"id\": 6}]", "added_tokens[0]: \"content\" is missing"},
    {"added_tokens", "[{\"id\": 6, \"content\": \"\"}]", "\"content\" has 0 bytes"},
    {"added_tokens", "[{\"id\": -1, \"content\": \"x\"}]", "\"id\" must be an integer from 0"},
    {"added_tokens", "[{\"id\": 99999999, \"content\": \"x\"}]", "\"id\" must be an integer"},
    {"added_tokens", "[{\"id\": 8, \"content\": \"x\"}]",
     "\"x\" has the id 8, Hugging Face tokenizers would give it 6"},
    {"added_tokens", "[{\"id\": 1, \"content\": \"a\"}]",
     "\"a\" has the id 1, Hugging Face tokenizers would give it 0"},
    {"added_tokens", "[{\"id\": 6, \"content\": \"x\"}, {\"id\": 7, \"content\": \"x\"}]",
     "two added tokens are looked for as \"x\""},
    {"added_tokens", "[{\"id\": 0, \"content\": \"a\"}, {\"id\": 0, \"content\": \"a\"}]",
     "have the same id"},
    {"added_tokens", "[{\"id\": 6, \"content\": \"x\", \"lstrip\": 1}]",
     "\"lstrip\" must be true or false"},
    {"added_tokens", "[{\"id\": 6, \"content\": \"x\", \"color\": 1}]", "\"color\" is not known"},
    {"normalizer", "{\"type\": \"StripAccents\"}", "normalizer: \"StripAccents\" is not read"},
    {"normalizer", "{\"type\": \"NFC\", \"form\": 2}", "normalizer: \"form\" is not known"},
    {"normalizer", "{\"type\": \"Prepend\"}", "normalizer: \"prepend\" is missing"},
    {"normalizer", "[]", "normalizer: \"\" is not read"},
    {"normalizer", "{\"type\": \"Replace\", \"pattern\": {}, \"content\": \"\"}",
     "\"pattern\" must have one member"},
    {"normalizer", "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\"}, \"content\": \"\"}",
     "an empty pattern"},
    {"pre_tokenizer", "{\"type\": \"BertPreTokenizer\"}",
     "pre_tokenizer: \"BertPreTokenizer\" is not read"},
    {"pre_tokenizer",
     "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, \"behavior\": "
     "\"Isolated\"}",
     "pre_tokenizer: the pattern is not valid: missing closing parenthesis"},
    {"pre_tokenizer",
     "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\\\\b\"}, \"behavior\": "
     "\"Isolated\"}",
     "not supported at byte 1"},
    {"pre_tokenizer",
     "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": "
     "\"Dropped\"}",
     "the behavior \"Dropped\" is not read"},
    {"pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"xy\"}",
     "\"replacement\" must be one character"},
    {"pre_tokenizer",
     "{\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": "
     "\"always\", \"add_prefix_space\": false}",
     "contradict each other"},
    {"pre_tokenizer",
     "{\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": "
     "\"often\"}",
     "the prepend_scheme \"often\" is not read"},
    {"post_processor", "{\"type\": \"Mystery\"}", "post_processor: \"Mystery\" is not read"},
    {"post_processor",
     "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
     "{\"id\": \"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}], "
     "\"special_tokens\": {\"<s>\": {\"ids\": [7]}}}",
     "post_processor: an id outside the vocabulary of 7"},
    {"post_processor",
     "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
     "{\"id\": \"<s>\"}}], \"special_tokens\": {}}",
     "\"<s>\" is not among its special_tokens"},
    {"post_processor", "{\"type\": \"TemplateProcessing\", \"single\": []}",
     "\"single\" must have the sequence A once"},
    {"decoder", "{\"type\": \"WordPiece\"}", "decoder: \"WordPiece\" is not read"},
    {"decoder", "{\"type\": \"Strip\", \"content\": \" \", \"start\": -1, \"stop\": 0}",
     "\"start\" must be an integer from 0"},
    {"model", "null", "model: a model of type \"\": only BPE is read"},
    {"model", "{\"type\": \"WordPiece\"}", "model of type \"WordPiece\": only BPE is read"},
    {"model", "{\"type\": \"BPE\", \"merges\": []}", "\"vocab\" must be an object"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {}}", "\"merges\" must be a list"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}",
     "the id of \"a\" in \"vocab\" must be an integer from 0"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 16777216}, \"merges\": []}",
     "the id of \"a\" in \"vocab\" must be an integer from 0 to 16777215"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 1.5}, \"merges\": []}", "must be an integer"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}",
     "\"a\" and \"b\" have the same id 0"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"a\": 1}, \"merges\": []}",
     "not valid JSON: duplicate object key"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}",
     "merges[0]: \"b\" is not in \"vocab\""},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": [\"a b\"]}",
     "merges[0]: \"ab\" is not in \"vocab\""},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"aa\"]}",
     "merges[0]: \"aa\" is not two tokens"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a a a\"]}",
     "is not two tokens"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [[\"a\"]]}",
     "neither a string nor a list of two strings"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [[\"a\", 3]]}",
     "neither a string nor a list of two strings"},
    {"model", "{\"type\": \"BPE\", \"dropout\": 0.1, \"vocab\": {}, \"merges\": []}",
     "\"dropout\" gives other tokens each time"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"temperature\": 1}",
     "\"temperature\" is not known"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"fuse_unk\": \"yes\"}",
     "\"fuse_unk\" must be true or false"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tri_tokenizer *tokenizer;
        if (open_with(cases[i].name, cases[i].value, NULL, &tokenizer) == TRI_OK)
            fail_msg("%s %s was read", cases[i].name, cases[i].value);
        assert_error_has("tokenizer.json");
        assert_error_has(cases[i].error);
    }
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *part, *list;
    } kinds[] = {{"normalizer", "normalizers"},
                 {"pre_tokenizer", "pretokenizers"},
                 {"post_processor", "processors"},
                 {"decoder", "decoders"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct tri_text value = {0};
        for (int n = 0; n < 100; n++)
            tri_text_printf(&value, "{\"type\": \"Sequence\", \"%s\": [", kinds[i].list);
        for (int n = 0; n < 100; n++)
            tri_text_printf(&value, "]}");
        struct tri_tokenizer *tokenizer;
        assert_int_equal(open_with(kinds[i].part, value.data, NULL, &tokenizer), TRI_UNSUPPORTED);
        assert_error_has("more than 8 Sequences inside each other");
        tri_text_free(&value);
    }
}

static void test_other_files_disagree(void **state)
{
    (void)state;
    static const struct {
        const char *config, *error;
    } disagree[] = {
        {"{\"bos_token\": \"<bos>\"}", "the bos_token \"<bos>\" is not in tokenizer.json"},
        {"{\"eos_token\": 7}", "\"eos_token\" must be a string"},
        {"{\"added_tokens_decoder\": {\"6\": {\"content\": \"<t>\"}}}", "the token 6 is \"<s>\""},
        {"{\"added_tokens_decoder\": {\"6\": {\"content\": \"<s>\"}, \"7\": {\"content\": "
         "\"<u>\"}}}",
         "tokenizer_config.json has the token 7, \"<u>\", and tokenizer.json has not"},
    };
    struct tri_tokenizer *tokenizer;
    for (size_t i = 0; i < sizeof disagree / sizeof *disagree; i++) {
        if (open_with(NULL, NULL, disagree[i].config, &tokenizer) == TRI_OK)
            fail_msg("%s was read", disagree[i].config);
        assert_error_has(disagree[i].error);
    }
}

/* The flags of tokenizer_config.json count, and change what is encoded and the identity. */
static void test_flags_of_the_other_file(void **state)
{
    (void)state;
    struct tri_tokenizer *plain, *stripping;
    assert_int_equal(open_with(NULL, NULL, NULL, &plain), TRI_OK);
    assert_int_equal(
        open_with(NULL, NULL,
                  "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"c\", "
                  "\"added_tokens_decoder\": {\"6\": {\"content\": \"<s>\", \"rstrip\": true}}}",
                  &stripping),
        TRI_OK);
    assert_int_equal(stripping->bos, 6);
    assert_int_equal(stripping->eos, 2);
    assert_true(plain->identity != stripping->identity);
    tri_tokenizer_close(plain);
    tri_tokenizer_close(stripping);
}

/* Without bytes to fall back on: the unknown token, or nothing, or an error. */
static void test_unknown_characters(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        int64_t count;
        enum tri_status status;
    } kinds[] = {
        {"\"unk_token\": null", 2, TRI_OK}, /* the reference leaves them out */
        {"\"unk_token\": \"u\"", 4, TRI_OK},
        {"\"unk_token\": \"u\", \"fuse_unk\": true", 3, TRI_OK},
        {"\"unk_token\": \"missing\"", 0, TRI_FORMAT},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char value[256];
        snprintf(value, sizeof value,
                 "{\"type\": \"BPE\", %s, \"vocab\": {\"a\": 0, \"u\": 1, \"b\": 2, \"e\": 3, "
                 "\"f\": 4, \"g\": 5}, \"merges\": []}",
                 kinds[i].options);
        struct tri_tokenizer *tokenizer;
        if (open_with("model", value, NULL, &tokenizer) != TRI_OK)
            fail_msg("%s", tri_error_text());
        int64_t count = 0;
        assert_int_equal(tokenizer->count(tokenizer,
                                          "ax\xC3\xA9"
                                          "b",
                                          5, &count),
                         kinds[i].status);
        assert_int_equal(count, kinds[i].count);
        tri_tokenizer_close(tokenizer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_tokenizer_is_fine),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_depth_is_bounded),        cmocka_unit_test(test_other_files_disagree),
        cmocka_unit_test(test_flags_of_the_other_file), cmocka_unit_test(test_unknown_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
