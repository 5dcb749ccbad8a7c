#include "unit/scratch.h"

#include <float.h>
#include <math.h>

#include "base/text.h"

static void int_is(const char *text, int64_t expected)
{
    int64_t value = -777;
    if (tri_text_int(text, &value) != TRI_OK)
        fail_msg("%s: %s", text, tri_error_text());
    if (value != expected)
        fail_msg("%s: got %lld", text, (long long)value);
}

static void int_fails(const char *text, const char *part)
{
    int64_t value = -777;
    if (tri_text_int(text, &value) != TRI_INVALID)
        fail_msg("'%s' was read as %lld", text, (long long)value);
    assert_int_equal(value, -777);
    assert_error_has(part);
}

static void reads_integers(void **state)
{
    (void)state;
    int_is("0", 0);
    int_is("-1", -1);
    int_is("+7", 7);
    int_is("007", 7);
    int_is("250_000", 250000);
    int_is("5e8", 500000000);
    int_is("1.5e3", 1500);
    int_is("2.50e1", 25);
    int_is("100.000", 100);
    int_is("2^20", 1048576);
    int_is("2^62", INT64_C(1) << 62);
    int_is("0^9999", 0);
    int_is("128k", 128000);
    int_is("128K", 128000);
    int_is("128ki", 131072);
    int_is("1.5ki", 1536);
    int_is("16M", 16000000);
    int_is("1mi", 1048576);
    int_is("2b", 2000000000);
    int_is("1g", 1000000000);
    int_is("1Gi", INT64_C(1) << 30);
    int_is("1ti", INT64_C(1) << 40);
    int_is("200%", 2);
    int_is("9223372036854775807", INT64_MAX);
    int_is("-9223372036854775807", -INT64_MAX);
    int_is("0e9999", 0);
    int_is("1000e-3", 1);
}

static void refuses_fractions(void **state)
{
    (void)state;
    int_fails("1.5", "whole number");
    int_fails("0.0001k", "whole number");
    int_fails("10%", "whole number");
    int_fails("1e-1", "whole number");
    int_fails("2^-1", "whole number");
}

static void refuses_overflow(void **state)
{
    (void)state;
    int_fails("9223372036854775808", "too large");
    int_fails("1e19", "too large");
    int_fails("1e9999", "too large");
    int_fails("2^63", "too large");
    int_fails("10^9999", "too large");
    int_fails("9000000ti", "too large");
    int_fails("184467440737095516170", "too large");
}

static void refuses_what_is_no_number(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     " 1",   "1 ",   "abc",     "1x",  "k",   "1kk",
                                        "1__0", "_1",   "1_",   "0x10",    "inf", "nan", "1e",
                                        "e5",   "1e+",  "--1",  "1.2.3",   ".",   "1bi", "1%%",
                                        "2^",   "-2^2", "2^3k", "1e99999", "5kib"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int_fails(texts[i], "is not a number");
        double value = -7;
        assert_int_equal(tri_text_number(texts[i], &value), TRI_INVALID);
        assert_true(value == -7);
    }
    char many[200];
    memset(many, '9', sizeof many);
    many[199] = '\0';
    int_fails(many, "too many digits");
}

static void number_is(const char *text, double expected)
{
    double value = -777;
    if (tri_text_number(text, &value) != TRI_OK)
        fail_msg("%s: %s", text, tri_error_text());
    if (value != expected)
        fail_msg("%s: got %.17g", text, value);
}

static void reads_numbers(void **state)
{
    (void)state;
    number_is("10%", 0.1);
    number_is("0.3", 0.3);
    number_is("1e-5", 1e-5);
    number_is("-2.5", -2.5);
    number_is(".5", 0.5);
    number_is("5.", 5);
    number_is("0.1k", 100);
    number_is("0.5ki", 512);
    number_is("2^-2", 0.25);
    number_is("1_000.5", 1000.5);
    number_is("0.000", 0);
    double value = 0;
    assert_int_equal(tri_text_number("1e400", &value), TRI_INVALID);
    assert_error_has("too large");
    assert_int_equal(tri_text_number("1e-400", &value), TRI_INVALID);
    assert_error_has("too small");
}

static void writes_numbers_that_read_back(void **state)
{
    (void)state;
    static const double values[] = {0,       1,       -1,      0.1,    1e-5,      1e-8,
                                    0.999,   1e6,     1e15,    1e16,   123456.75, 1e300,
                                    DBL_MIN, DBL_MAX, 1.0 / 3, 5e-324, 3.3e-05,   -2.5e-300};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[32];
        number_is(tri_number_text(values[i], text), values[i]);
    }
    char text[32];
    assert_string_equal(tri_number_text(1e-5, text), "1e-5");
    assert_string_equal(tri_number_text(0.1, text), "0.1");
    assert_string_equal(tri_number_text(1e6, text), "1000000");
    assert_string_equal(tri_number_text(1e20, text), "1e20");
}

static void writes_bytes(void **state)
{
    (void)state;
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {{0, "0 bytes"},
                 {1, "1 byte"},
                 {1023, "1023 bytes"},
                 {1024, "1.00 KiB"},
                 {640 * 0x1p10, "640 KiB"},
                 {0x1p20 - 1, "1.00 MiB"},
                 {12.345 * 0x1p20, "12.3 MiB"},
                 {0x1p30, "1.00 GiB"},
                 {1.5 * 0x1p30, "1.50 GiB"},
                 {123.4 * 0x1p30, "123 GiB"},
                 {5000 * 0x1p40, "5000 TiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(tri_bytes(cases[i].bytes).s, cases[i].text);
    assert_string_equal(tri_plural(1), "");
    assert_string_equal(tri_plural(0), "s");
    assert_string_equal(tri_plural(2), "s");
}

static void measures_distance(void **state)
{
    (void)state;
    assert_int_equal(tri_text_distance("", ""), 0);
    assert_int_equal(tri_text_distance("abc", ""), 3);
    assert_int_equal(tri_text_distance("abc", "abd"), 1);
    assert_int_equal(tri_text_distance("abc", "ab"), 1);
    assert_int_equal(tri_text_distance("abc", "acb"), 1);
    assert_int_equal(tri_text_distance("ABC", "abc"), 0);
    assert_int_equal(tri_text_distance("a-b", "a_b"), 0);
    assert_int_equal(tri_text_distance("kitten", "sitting"), 3);
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[199] = '\0';
    assert_int_equal(tri_text_distance(longer, longer), 0);
    assert_int_equal(tri_text_distance(longer, ""), 64);
}

static void finds_the_nearest_name(void **state)
{
    (void)state;
    static const char *const names[] = {"train", "eval", "check", "rehearse"};
    assert_int_equal(tri_text_nearest("trian", names, 4), 0);
    assert_int_equal(tri_text_nearest("evla", names, 4), 1);
    assert_int_equal(tri_text_nearest("rehears", names, 4), 3);
    assert_int_equal(tri_text_nearest("frobnicate", names, 4), -1);
    assert_int_equal(tri_text_nearest("x", names, 4), -1);
    assert_int_equal(tri_text_nearest("check", names, 0), -1);
}

static void knows_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes, bad; /* bad == bytes: valid */
    } cases[] = {
        {"", 0, 0},
        {"abc", 3, 3},
        {"a\xC3\xA9z", 4, 4},
        {"\xE2\x82\xAC", 3, 3},
        {"\xF0\x9F\x9A\xA2", 4, 4},
        {"\xF4\x8F\xBF\xBF", 4, 4},
        {"a\0b", 3, 1},
        {"ab\xFF", 3, 2},
        {"\xC0\x80", 2, 0},         /* long form of zero */
        {"\xE0\x9F\xBF", 3, 0},     /* long form */
        {"\xED\xA0\x80", 3, 0},     /* surrogate */
        {"\xF4\x90\x80\x80", 4, 0}, /* over 10FFFF */
        {"x\xE2\x82", 3, 1},        /* cut off */
        {"\x80", 1, 0},
        {"\xC3\x28", 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t at = cases[i].bytes;
        bool good = tri_text_is_utf8(cases[i].text, cases[i].bytes, &at);
        assert_int_equal(good, cases[i].bad == cases[i].bytes);
        assert_int_equal(at, cases[i].bad);
    }
}

static void grows(void **state)
{
    (void)state;
    struct tri_text text = {0};
    assert_string_equal(tri_text_data(&text), "");
    tri_text_add(&text, "", 0);
    assert_string_equal(tri_text_data(&text), "");
    for (int i = 0; i < 1000; i++)
        tri_text_printf(&text, "%d,", i % 10);
    assert_int_equal(text.bytes, 2000);
    assert_int_equal(strlen(text.data), 2000);
    assert_memory_equal(text.data + 1996, "8,9,", 4);
    assert_false(text.failed);
    tri_text_free(&text);
}

static void quotes(void **state)
{
    (void)state;
    struct tri_text text = {0};
    tri_text_add_quoted(&text, "a\"b\\c\nd\xE2\x80\xA8\xC3\xA9");
    assert_string_equal(text.data, "\"a\\\"b\\\\c\\u000Ad\\u2028\xC3\xA9\"");
    tri_text_free(&text);
    static const char *const words[][2] = {
        {"a.txt", "a.txt"},   {"/a/b-c", "/a/b-c"}, {"auto", "auto"},   {"true", "\"true\""},
        {"Null", "\"Null\""}, {"1e5", "\"1e5\""},   {"a b", "\"a b\""}, {"", "\"\""},
        {"a: b", "\"a: b\""}, {"-x", "\"-x\""},     {"~", "\"~\""},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        tri_text_add_yaml(&text, words[i][0]);
        assert_string_equal(text.data, words[i][1]);
        tri_text_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_integers),
        cmocka_unit_test(refuses_fractions),
        cmocka_unit_test(refuses_overflow),
        cmocka_unit_test(refuses_what_is_no_number),
        cmocka_unit_test(reads_numbers),
        cmocka_unit_test(writes_numbers_that_read_back),
        cmocka_unit_test(writes_bytes),
        cmocka_unit_test(measures_distance),
        cmocka_unit_test(finds_the_nearest_name),
        cmocka_unit_test(knows_utf8),
        cmocka_unit_test(grows),
        cmocka_unit_test(quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
