#include "unit/scratch.h"

#include <math.h>

#include "base/option.h"

struct values {
    bool flag;
    int64_t count;
    double rate;
    char *name;
    char *word;
    int mode;
    char **list;
    int64_t num_list;
    char **words;
    int64_t num_words;
    double low, high;
    char *map;
};

static const struct tri_option options[] = {
    {.name = "flag",
     .type = TRI_OPTION_BOOL,
     .offset = offsetof(struct values, flag),
     .fallback = "true"},
    {.name = "count",
     .type = TRI_OPTION_INT,
     .offset = offsetof(struct values, count),
     .fallback = "2^10",
     .min = -1,
     .max = INFINITY},
    {.name = "rate",
     .type = TRI_OPTION_NUMBER,
     .offset = offsetof(struct values, rate),
     .fallback = "10%",
     .min = 0,
     .max = 1},
    {.name = "name", .type = TRI_OPTION_STRING, .offset = offsetof(struct values, name)},
    {.name = "word",
     .type = TRI_OPTION_STRING,
     .offset = offsetof(struct values, word),
     .fallback = "auto",
     .choices = "auto,sdpa=fused,*/*"},
    {.name = "mode",
     .type = TRI_OPTION_CHOICE,
     .offset = offsetof(struct values, mode),
     .fallback = "some",
     .choices = "full=true=yes,some,none=false"},
    {.name = "list",
     .type = TRI_OPTION_STRINGS,
     .offset = offsetof(struct values, list),
     .second = offsetof(struct values, num_list)},
    {.name = "range",
     .type = TRI_OPTION_PAIR,
     .offset = offsetof(struct values, low),
     .second = offsetof(struct values, high),
     .fallback = "0.9,0.999",
     .min = 0,
     .max = 1},
    {.name = "map", .type = TRI_OPTION_MAP, .offset = offsetof(struct values, map)},
    {.name = "words",
     .type = TRI_OPTION_STRINGS,
     .offset = offsetof(struct values, words),
     .second = offsetof(struct values, num_words),
     .choices = "one=ein,two"},
};
static const struct tri_option_table table = {"part", options, sizeof options / sizeof *options};

enum { FLAG, COUNT, RATE, NAME, WORD, MODE, LIST, RANGE, MAP, WORDS };

static int open_values(void **state)
{
    struct values *values = malloc(sizeof *values);
    if (values == NULL)
        return 1;
    memset(values, 0xA5, sizeof *values);
    *state = values;
    return tri_option_defaults(&table, values) != TRI_OK;
}

static int close_values(void **state)
{
    tri_option_clear(&table, *state);
    free(*state);
    return 0;
}

static void set(void **state, int which, const char *text)
{
    if (tri_option_set(&options[which], &text, 1, *state) != TRI_OK)
        fail_msg("%s", tri_error_text());
}

static void set_fails(void **state, int which, const char *text, const char *part)
{
    assert_int_equal(tri_option_set(&options[which], &text, 1, *state), TRI_INVALID);
    assert_error_has(part);
}

static void prints(void **state, int which, const char *expected)
{
    struct tri_text text = {0};
    tri_option_print(&options[which], *state, &text);
    assert_string_equal(text.data, expected);
    tri_text_free(&text);
}

static void type_is(int which, const char *expected)
{
    struct tri_text text = {0};
    tri_option_print_type(&options[which], &text);
    assert_string_equal(text.data, expected);
    tri_text_free(&text);
}

static void starts_with_defaults(void **state)
{
    const struct values *v = *state;
    assert_true(v->flag);
    assert_int_equal(v->count, 1024);
    assert_true(v->rate == 0.1);
    assert_null(v->name);
    assert_string_equal(v->word, "auto");
    assert_int_equal(v->mode, 1);
    assert_null(v->list);
    assert_int_equal(v->num_list, 0);
    assert_true(v->low == 0.9 && v->high == 0.999);
    assert_null(v->map);
}

static void sets_each_type(void **state)
{
    struct values *v = *state;
    set(state, FLAG, "Off");
    assert_false(v->flag);
    set(state, FLAG, "yes");
    assert_true(v->flag);
    set(state, COUNT, "128ki");
    assert_int_equal(v->count, 131072);
    set(state, RATE, "1e-5");
    assert_true(v->rate == 1e-5);
    set(state, NAME, "first");
    set(state, NAME, "second");
    assert_string_equal(v->name, "second");
    set(state, WORD, "FUSED");
    assert_string_equal(v->word, "sdpa");
    set(state, WORD, "org/kernel");
    assert_string_equal(v->word, "org/kernel");
    set(state, MODE, "true");
    assert_int_equal(v->mode, 0);
    set(state, MODE, "none");
    assert_int_equal(v->mode, 2);
    set(state, MAP, "{\"a\": [1]}");
    assert_string_equal(v->map, "{\"a\": [1]}");
    const char *three[] = {"a", "b", "c"};
    assert_int_equal(tri_option_set(&options[LIST], three, 3, v), TRI_OK);
    assert_int_equal(v->num_list, 3);
    assert_string_equal(v->list[2], "c");
    assert_int_equal(tri_option_set(&options[LIST], three, 1, v), TRI_OK);
    assert_int_equal(v->num_list, 1);
    const char *words[] = {"two", "EIN"};
    assert_int_equal(tri_option_set(&options[WORDS], words, 2, v), TRI_OK);
    assert_string_equal(v->words[1], "one");
    const char *pair[] = {"0.8", "90%"};
    assert_int_equal(tri_option_set(&options[RANGE], pair, 2, v), TRI_OK);
    assert_true(v->low == 0.8 && v->high == 0.9);
}

static void keeps_the_old_value_on_failure(void **state)
{
    struct values *v = *state;
    set_fails(state, FLAG, "maybe", "expected true or false, got 'maybe'");
    set_fails(state, COUNT, "-2", "expected an integer >= -1, got '-2'");
    set_fails(state, COUNT, "1.5", "whole number");
    set_fails(state, RATE, "1.1", "expected a number from 0 to 1, got '1.1'");
    set_fails(state, NAME, "", "empty");
    set_fails(state, WORDS, "three", "expected a list of one, two, got 'three'");
    set_fails(state, WORD, "spda", "expected one of auto, sdpa, or a name with a slash");
    set_fails(state, MODE, "ful", "expected one of full, some, none, got 'ful'");
    set_fails(state, MODE, "", "expected one of");
    set_fails(state, MAP, "[1]", "expected a mapping");
    set_fails(state, MAP, "{\"a\": 1, \"a\": 2}", "duplicate");
    set_fails(state, RANGE, "0.5", "two numbers");
    const char *pair[] = {"0.5", "2"};
    assert_int_equal(tri_option_set(&options[RANGE], pair, 2, v), TRI_INVALID);
    assert_int_equal(tri_option_set(&options[COUNT], pair, 2, v), TRI_INVALID);
    assert_error_has("expected one value");
    starts_with_defaults(state);
}

static void prints_what_it_reads(void **state)
{
    prints(state, FLAG, "true");
    prints(state, COUNT, "1024");
    prints(state, RATE, "0.1");
    prints(state, NAME, "null");
    prints(state, WORD, "auto");
    prints(state, MODE, "some");
    prints(state, LIST, "[]");
    prints(state, RANGE, "[0.9, 0.999]");
    prints(state, MAP, "null");
    set(state, MODE, "false");
    prints(state, MODE, "none");
    set(state, NAME, "with \"quotes\"");
    prints(state, NAME, "\"with \\\"quotes\\\"\"");
    const char *two[] = {"a.txt", "b c"};
    assert_int_equal(tri_option_set(&options[LIST], two, 2, *state), TRI_OK);
    prints(state, LIST, "[a.txt, \"b c\"]");
}

static void resets(void **state)
{
    struct values *v = *state;
    const char *two[] = {"a.txt", "b c"};
    assert_int_equal(tri_option_set(&options[LIST], two, 2, v), TRI_OK);
    set(state, NAME, "x");
    set(state, COUNT, "5");
    set(state, MODE, "full");
    for (size_t i = 0; i < table.count; i++)
        assert_int_equal(tri_option_reset(&options[i], v), TRI_OK);
    starts_with_defaults(state);
}

static void describes_types(void **state)
{
    (void)state;
    type_is(FLAG, "true or false");
    type_is(COUNT, "an integer >= -1");
    type_is(RATE, "a number from 0 to 1");
    type_is(NAME, "a text");
    type_is(MODE, "one of full, some, none");
    type_is(RANGE, "two numbers each from 0 to 1");
    struct tri_text text = {0};
    tri_option_print_name(&table, &options[RATE], &text);
    assert_string_equal(text.data, "part.rate");
    tri_text_free(&text);
}

static void finds_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(tri_option_find(&table, "mode"), &options[MODE]);
    assert_null(tri_option_find(&table, "mod"));
    assert_null(tri_option_find(&table, "part.mode"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(starts_with_defaults, open_values, close_values),
        cmocka_unit_test_setup_teardown(sets_each_type, open_values, close_values),
        cmocka_unit_test_setup_teardown(keeps_the_old_value_on_failure, open_values, close_values),
        cmocka_unit_test_setup_teardown(prints_what_it_reads, open_values, close_values),
        cmocka_unit_test_setup_teardown(resets, open_values, close_values),
        cmocka_unit_test(describes_types),
        cmocka_unit_test(finds_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
