#include "unit/scratch.h"

#include "base/json.h"

static void parse_fails(const char *text, const char *part)
{
    json_t *value = NULL;
    assert_int_equal(tri_json_parse("x.json", text, strlen(text), &value), TRI_FORMAT);
    assert_null(value);
    assert_error_has("x.json, line ");
    assert_error_has(part);
}

static void parses(void **state)
{
    (void)state;
    json_t *value = NULL;
    /* Not NUL-terminated: the byte after the end must not be looked at. */
    const char text[] = {'{', '"', 'a', '"', ':', '1', '}', '#'};
    assert_int_equal(tri_json_parse("x", text, 7, &value), TRI_OK);
    assert_int_equal(json_integer_value(json_object_get(value, "a")), 1);
    json_decref(value);
}

static void refuses_malformed_text(void **state)
{
    (void)state;
    parse_fails("", "not valid JSON");
    parse_fails("{\"a\": 1,\n \"b\" 2}", "line 2");
    parse_fails("{\"a\": 1, \"a\": 2}", "duplicate object key");
    parse_fails("{\"a\": NaN}", "not valid JSON");
    parse_fails("{\"a\": 1} x", "end of file");
    parse_fails("{\"a\": 99999999999999999999}", "too big integer");
    parse_fails("{\"a\": \"\xFF\"}", "unable to decode byte 0xff");
    parse_fails("{\"a\": \"one\ntwo\"}", "unexpected newline");
    parse_fails("{\"a\": \"one\ttwo\"}", "control character");
    parse_fails("{\"a\\u0000b\": 1}", "\\u0000");
}

/* Hostile nesting must not exhaust the stack. */
static void refuses_deep_nesting(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    char *text = malloc(DEPTH);
    assert_non_null(text);
    memset(text, '[', DEPTH);
    json_t *value = NULL;
    assert_int_equal(tri_json_parse("x.json", text, DEPTH, &value), TRI_FORMAT);
    assert_error_has("maximum parsing depth");
    free(text);
}

static void loads_and_saves_files(void **state)
{
    (void)state;
    put_text(in_scratch("a.json"),
             "{\"z\": 1e-05, \"a\": [0.1, 500000.0, \"\xC3\xA4\"], \"n\": null}");
    json_t *value = NULL;
    assert_int_equal(tri_json_load(in_scratch("a.json"), &value), TRI_OK);
    assert_int_equal(tri_json_save(in_scratch("b.json"), value), TRI_OK);
    assert_file_is(in_scratch("b.json"), "{\n  \"z\": 1e-5,\n  \"a\": [\n    0.1,\n    500000.0,\n"
                                         "    \"\xC3\xA4\"\n  ],\n  \"n\": null\n}\n");
    json_decref(value);
    assert_int_equal(tri_json_load(in_scratch("none.json"), &value), TRI_IO);
    assert_error_has("none.json");
}

/* Numbers that 15 digits do not hold come back exactly too. */
static void keeps_every_bit_of_numbers(void **state)
{
    (void)state;
    static const double numbers[] = {0.1 + 0.2, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        json_array_append_new(list, json_real(numbers[i]));
    assert_int_equal(tri_json_save(in_scratch("n.json"), list), TRI_OK);
    json_decref(list);
    assert_int_equal(tri_json_load(in_scratch("n.json"), &list), TRI_OK);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double back = json_real_value(json_array_get(list, i));
        assert_memory_equal(&back, &numbers[i], sizeof back);
    }
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(parses),
        SCRATCH_TEST(refuses_malformed_text),
        SCRATCH_TEST(refuses_deep_nesting),
        SCRATCH_TEST(loads_and_saves_files),
        SCRATCH_TEST(keeps_every_bit_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
