#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data/sample.h"

static struct tri_tokenizer *tokenizer;
static struct tri_columns columns;
static struct tri_sample_rules rules;

static int setup(void **state)
{
    (void)state;
    const struct tri_token_ids model = {.vocab = 300, .bos = 256, .eos = 257, .pad = -1};
    if (tri_byte_tokenizer_open(&model, &tokenizer) != TRI_OK)
        return -1;
    columns.count = 0;
    rules = (struct tri_sample_rules){.tokenizer = tokenizer, .vocab = 300, .columns = &columns};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tri_tokenizer_close(tokenizer);
    return 0;
}

static enum tri_status from_line(const char *line, struct tri_sample *out)
{
    return tri_sample_from_line(&rules, line, strlen(line), out);
}

/* Tokens [first, first + count) of a line are these. */
static void assert_tokens(const char *line, int64_t first, int64_t count, const int32_t *ids,
                          const int32_t *labels, const int64_t *positions, int64_t documents,
                          int64_t trained)
{
    struct tri_sample sample;
    int32_t got_ids[16], got_labels[16];
    int64_t got_positions[16], got_documents, got_trained;
    if (from_line(line, &sample) != TRI_OK)
        fail_msg("%s: %s", line, tri_error_text());
    assert_int_equal(tri_sample_take(&sample, first, count, got_ids, got_labels, got_positions),
                     TRI_OK);
    assert_memory_equal(got_ids, ids, (size_t)count * sizeof *ids);
    assert_memory_equal(got_labels, labels, (size_t)count * sizeof *labels);
    assert_memory_equal(got_positions, positions, (size_t)count * sizeof *positions);
    tri_sample_measure(&sample, first, count, &got_documents, &got_trained);
    assert_int_equal(got_documents, documents);
    assert_int_equal(got_trained, trained);
    tri_sample_close(&sample);
}

static void test_text(void **state)
{
    (void)state;
    const int32_t ids[] = {'h', 'i', '\n', 0};
    assert_tokens("{\"text\": \"hi\\n\\u0000\"}", 0, 4, ids, ids, (int64_t[]){0, 1, 2, 3}, 1, 3);
    assert_int_equal(columns.count, 0);
}

static void test_text_between_bos_and_eos(void **state)
{
    (void)state;
    const char *line = "{\"text\": \"abc\"}";
    const int32_t whole[] = {256, 'a', 'b', 'c', 257};
    const int64_t positions[] = {0, 1, 2, 3, 4};
    rules.add_bos = rules.add_eos = true;
    for (int64_t first = 0; first < 5; first++)
        for (int64_t count = 1; first + count <= 5; count++)
            assert_tokens(line, first, count, whole + first, whole + first, positions, 1,
                          count - 1);
    rules.add_bos = false;
    assert_tokens(line, 0, 4, whole + 1, whole + 1, positions, 1, 3);
    rules.add_eos = false;
    assert_tokens(line, 0, 3, whole + 1, whole + 1, positions, 1, 2);
}

static void test_tokenized(void **state)
{
    (void)state;
    const int32_t ids[] = {5, 6, 7, 299};
    const int64_t positions[] = {0, 1, 2, 3};
    assert_tokens("{\"input_ids\":[5,6,7,299]}", 0, 4, ids, ids, positions, 1, 3);
    assert_tokens("{\"input_ids\":[5,6,7,299],\"labels\":null}", 1, 2, ids + 1, ids + 1, positions,
                  1, 1);
    const int32_t labels[] = {-100, -100, 7, 0};
    assert_tokens(" {\"labels\":[-100,-100,7,0], \"input_ids\":[5,6,7,299]} \r", 0, 4, ids, labels,
                  positions, 1, 2);
}

static void test_packed_documents(void **state)
{
    (void)state;
    const char *line = "{\"input_ids\":[1,2,3,4,5,6,7],\"position_ids\":[0,1,2,0,0,1,2],"
                       "\"labels\":[1,2,-100,4,5,6,7]}";
    const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7};
    const int32_t labels[] = {1, 2, -100, 4, 5, 6, 7};
    assert_tokens(line, 0, 7, ids, labels, (int64_t[]){0, 1, 2, 0, 0, 1, 2}, 3, 3);
    /* A cut begins a document of its own. */
    assert_tokens(line, 1, 4, ids + 1, labels + 1, (int64_t[]){0, 1, 0, 0}, 3, 0);
    assert_tokens(line, 5, 2, ids + 5, labels + 5, (int64_t[]){0, 1}, 1, 1);
}

static void test_lengths_cut_documents(void **state)
{
    (void)state;
    const int32_t ids[] = {1, 2, 3, 4, 5};
    const int64_t positions[] = {0, 1, 2, 0, 1};
    assert_tokens("{\"input_ids\":[1,2,3,4,5],\"seq_lengths\":[3,2]}", 0, 5, ids, ids, positions, 2,
                  3);
    /* Padding may be a document of its own in the lengths, or not. */
    assert_tokens("{\"input_ids\":[1,2,3,4,5,0,0],\"packed_sample_seqlens\":[3,2,2],"
                  "\"attention_mask\":[1,1,1,1,1,0,0]}",
                  0, 5, ids, ids, positions, 2, 3);
    assert_tokens("{\"input_ids\":[1,2,3,4,5,0,0],\"packed_sample_seqlens\":[3,2],"
                  "\"attention_mask\":[1,1,1,1,1,0,0]}",
                  0, 5, ids, ids, positions, 2, 3);
}

static void test_masks_say_what_is_trained(void **state)
{
    (void)state;
    const int32_t ids[] = {1, 2, 3, 4};
    const int32_t labels[] = {-100, -100, 3, -100};
    const int64_t positions[] = {0, 1, 2, 3};
    assert_tokens("{\"input_ids\":[1,2,3,4],\"completion_mask\":[0,0,1,0]}", 0, 4, ids, labels,
                  positions, 1, 1);
    assert_tokens("{\"input_ids\":[1,2,3,4],\"completion_mask\":[0,0,1,1],"
                  "\"assistant_masks\":[0,1,1,0]}",
                  0, 4, ids, labels, positions, 1, 1);
}

static void test_right_padding_is_stripped(void **state)
{
    (void)state;
    const char *line = "{\"input_ids\":[5,6,0,0],\"attention_mask\":[1,1,0,0],"
                       "\"labels\":[5,6,-100,-100],\"position_ids\":[0,1,1,1]}";
    const int32_t ids[] = {5, 6};
    assert_tokens(line, 0, 2, ids, ids, (int64_t[]){0, 1}, 1, 1);
    struct tri_sample sample;
    assert_int_equal(from_line(line, &sample), TRI_OK);
    assert_int_equal(sample.tokens, 2);
    tri_sample_close(&sample);
    assert_int_equal(from_line("{\"input_ids\":[5,6],\"attention_mask\":[1,1]}", &sample), TRI_OK);
    assert_int_equal(sample.tokens, 2);
    tri_sample_close(&sample);
}

static void test_other_columns_are_noted_once(void **state)
{
    (void)state;
    struct tri_sample sample;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            from_line("{\"text\":\"ab\",\"source\":\"x\",\"id\":7,\"meta\":{\"a\":[1]},"
                      "\"tags\":null,\"bad\\nname\":\"\"}",
                      &sample),
            TRI_OK);
        tri_sample_close(&sample);
    }
    assert_int_equal(columns.count, 4);
    assert_string_equal(columns.name[0], "source");
    assert_string_equal(columns.name[1], "id");
    assert_string_equal(columns.name[2], "meta");
    assert_string_equal(columns.name[3], "bad?name");
    char line[4096];
    for (int i = 0; i < 40; i++) { /* more names than are kept, and long ones */
        snprintf(line, sizeof line, "{\"text\":\"ab\",\"column %02d %0200d\":1}", i, 0);
        assert_int_equal(from_line(line, &sample), TRI_OK);
        tri_sample_close(&sample);
    }
    assert_int_equal(columns.count, 16);
    assert_int_equal(strlen(columns.name[15]), 39);
}

static void test_bad_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum tri_status status;
        const char *message;
    } cases[] = {
        {"{\"text\": \"a", TRI_FORMAT, "not valid JSON, column"},
        {"{\"text\": \"ab\"} {}", TRI_FORMAT, "not valid JSON"},
        {"{\"text\": \"ab\", \"text\": \"cd\"}", TRI_FORMAT, "duplicate"},
        {"{\"text\": \"\\ud800\"}", TRI_FORMAT, "not valid JSON"},
        {"\xEF\xBB\xBF{\"text\": \"ab\"}", TRI_INVALID, "byte order mark"},
        {"[1, 2]", TRI_INVALID, "the line is a list: it must be one JSON object"},
        {"{\"text\": \"a\xFF\"}", TRI_INVALID, "invalid UTF-8 at byte 11 of the line (0xFF)"},
        {"{}", TRI_INVALID, "no format that is read, of columns none"},
        {"{\"content\": \"ab\"}", TRI_INVALID, "of columns \"content\": give \"messages\""},
        {"{\"messages\": []}", TRI_INVALID, "\"messages\" is empty: remove the line"},
        {"{\"text\": \"ab\", \"input_ids\": [1, 2]}", TRI_INVALID,
         "both \"text\" and \"input_ids\""},
        {"{\"text\": 5}", TRI_INVALID, "\"text\" is an integer: it must be a string"},
        {"{\"text\": \"\"}", TRI_INVALID, "empty document"},
        {"{\"text\": \"ab\", \"labels\": [1, 2]}", TRI_INVALID,
         "\"labels\" goes with \"input_ids\""},
        {"{\"input_ids\": []}", TRI_INVALID, "empty document"},
        {"{\"input_ids\": \"1 2\"}", TRI_INVALID, "\"input_ids\" is a string: it must be a list"},
        {"{\"input_ids\": [1, 2.5]}", TRI_INVALID, "\"input_ids\"[1] is a number with a fraction"},
        {"{\"input_ids\": [[1, 2]]}", TRI_INVALID, "\"input_ids\"[0] is a list"},
        {"{\"input_ids\": [1, 300]}", TRI_INVALID,
         "\"input_ids\"[1] is 300, outside the vocabulary"},
        {"{\"input_ids\": [-1, 3]}", TRI_INVALID, "\"input_ids\"[0] is -1, outside the vocabulary"},
        {"{\"input_ids\": [99999999999999999999]}", TRI_FORMAT, "not valid JSON"},
        {"{\"input_ids\": [1, 2], \"labels\": [1]}", TRI_INVALID,
         "\"labels\" has 1 value and \"input_ids\" has 2"},
        {"{\"input_ids\": [1, 2], \"labels\": [1, 300]}", TRI_INVALID, "\"labels\"[1] is 300"},
        {"{\"input_ids\": [1, 2], \"labels\": [1, -1]}", TRI_INVALID,
         "\"labels\"[1] is -1: neither -100"},
        {"{\"input_ids\": [1, 2], \"labels\": [1, true]}", TRI_INVALID,
         "\"labels\"[1] is true or false"},
        {"{\"input_ids\": [1, 2], \"position_ids\": [0]}", TRI_INVALID,
         "\"position_ids\" has 1 value and"},
        {"{\"input_ids\": [1, 2], \"position_ids\": [1, 2]}", TRI_INVALID,
         "\"position_ids\"[0] is 1 after -1"},
        {"{\"input_ids\": [1, 2, 3], \"position_ids\": [0, 1, 5]}", TRI_INVALID,
         "\"position_ids\"[2] is 5 after 1"},
        {"{\"input_ids\": [1, 2], \"position_ids\": [0, -1]}", TRI_INVALID,
         "\"position_ids\"[1] is -1"},
        {"{\"input_ids\": [1, 2], \"attention_mask\": [1]}", TRI_INVALID,
         "\"attention_mask\" has 1 value and"},
        {"{\"input_ids\": [1, 2], \"attention_mask\": [0, 1]}", TRI_UNSUPPORTED,
         "only padding on the right"},
        {"{\"input_ids\": [1, 2, 3], \"attention_mask\": [1, 0, 1]}", TRI_UNSUPPORTED,
         "0 at token 1 and 1 at token 2"},
        {"{\"input_ids\": [1, 2], \"attention_mask\": [1, 2]}", TRI_UNSUPPORTED,
         "mark packed documents by \"position_ids\""},
        {"{\"input_ids\": [1, 2], \"attention_mask\": [0, 0]}", TRI_INVALID,
         "all of it is padding"},
        {"{\"input_ids\": [1, 2], \"attention_mask\": [1, 0], \"labels\": [1, 2]}", TRI_INVALID,
         "calls that token padding"},
        {"{\"input_ids\": [1, 2], \"router_mask\": [0, 1]}", TRI_UNSUPPORTED,
         "column \"router_mask\" (a list) is not read"},
        {"{\"input_ids\": [1, 2], \"completion_mask\": [0, 2]}", TRI_INVALID,
         "\"completion_mask\"[1] is 2: a mask is 0 or 1"},
        {"{\"input_ids\": [1, 2], \"assistant_masks\": [0, 1], \"labels\": [1, 2]}", TRI_INVALID,
         "both \"labels\" and \"assistant_masks\""},
        {"{\"input_ids\": [1, 2], \"seq_lengths\": [1, 1], \"position_ids\": [0, 0]}", TRI_INVALID,
         "both \"position_ids\" and \"seq_lengths\""},
        {"{\"input_ids\": [1, 2], \"seq_lengths\": [1, 2]}", TRI_INVALID,
         "\"seq_lengths\"[1] is 2 and 1 tokens are left"},
        {"{\"input_ids\": [1, 2], \"seq_lengths\": [2, 0]}", TRI_INVALID,
         "\"seq_lengths\"[1] is 0"},
        {"{\"input_ids\": [1, 2], \"packed_sample_seqlens\": [1]}", TRI_INVALID,
         "\"packed_sample_seqlens\" adds up to 1 and there are 2 tokens"},
        {"{\"text\": \"ab\", \"loss_weight\": 0.5}", TRI_UNSUPPORTED, "column \"loss_weight\""},
        {"{\"text\": \"ab\", \"history\": [1]}", TRI_UNSUPPORTED, "column \"history\" (a list)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tri_sample sample;
        const enum tri_status st = from_line(cases[i].line, &sample);
        if (st != cases[i].status || !strstr(tri_error_text(), cases[i].message) ||
            strchr(tri_error_text(), '\n'))
            fail_msg("%s: status %d, \"%s\" instead of %d, \"%s\"", cases[i].line, st,
                     tri_error_text(), cases[i].status, cases[i].message);
    }
}

/* Its bytes are not looked at, and need not be there. */
static void test_lines_have_a_limit(void **state)
{
    (void)state;
    struct tri_sample sample;
    assert_int_equal(tri_sample_from_line(&rules, "{", (size_t)1 << 31, &sample), TRI_UNSUPPORTED);
    assert_non_null(strstr(tri_error_text(), "a line of 2.00 GiB: lines are read up to 2 GiB"));
}

static void test_text_needs_a_tokenizer(void **state)
{
    (void)state;
    struct tri_sample sample;
    rules.tokenizer = NULL;
    assert_int_equal(from_line("{\"text\":\"ab\"}", &sample), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "there is no tokenizer"));
    assert_int_equal(from_line("{\"input_ids\":[1,2]}", &sample), TRI_OK);
    int32_t ids[3], labels[3];
    int64_t positions[3];
    assert_int_equal(tri_sample_take(&sample, 0, 3, ids, labels, positions), TRI_INTERNAL);
    tri_sample_close(&sample);
}

static void test_deep_nesting_is_refused(void **state)
{
    (void)state;
    static char line[200001];
    memset(line, '[', sizeof line - 1);
    struct tri_sample sample;
    assert_int_equal(tri_sample_from_line(&rules, line, sizeof line - 1, &sample), TRI_FORMAT);
    assert_non_null(strstr(tri_error_text(), "maximum parsing depth"));
}

#define RULES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULES_TEST(test_text),
        RULES_TEST(test_text_between_bos_and_eos),
        RULES_TEST(test_tokenized),
        RULES_TEST(test_packed_documents),
        RULES_TEST(test_lengths_cut_documents),
        RULES_TEST(test_masks_say_what_is_trained),
        RULES_TEST(test_right_padding_is_stripped),
        RULES_TEST(test_other_columns_are_noted_once),
        RULES_TEST(test_bad_lines),
        RULES_TEST(test_lines_have_a_limit),
        RULES_TEST(test_text_needs_a_tokenizer),
        RULES_TEST(test_deep_nesting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
