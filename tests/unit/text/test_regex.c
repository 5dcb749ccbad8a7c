/* Patterns: what is translated, what is refused, and which matches come in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/regex.h"
#include "text/unicode.h"

static void test_translation(void **state)
{
    (void)state;
    static const char *const same[] = {
        "'s|'t| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
        "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s*[\\r\\n]+",
        "(?i)a(?:b)(?=c)(?!d)(?<=e)(?<!f)(?>g)(h)",
        "a{2}b{2,}c{2,3}?d++e*+f?+[\\]\\-]\\A\\z\\.",
    };
    static const char *const changed[][2] = {
        {"[^a[bc]d]", "[^abcd]"},
        {"a{b}{", "a\\{b}\\{"},
        {"\\u00e9\\x41\\x{1F600}", "\\x{00e9}\\x{41}\\x{1F600}"},
        {"\\p{^L}\\P{^L}\\P{Lu}", "\\P{L}\\p{L}\\P{Lu}"},
        {"\\p{Han}", "\\p{sc:Han}"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct tri_text out = {0};
        assert_int_equal(tri_regex_translate(same[i], strlen(same[i]), &out), TRI_OK);
        assert_string_equal(tri_text_data(&out), same[i]);
        tri_text_free(&out);
    }
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        struct tri_text out = {0};
        assert_int_equal(tri_regex_translate(changed[i][0], strlen(changed[i][0]), &out), TRI_OK);
        assert_string_equal(tri_text_data(&out), changed[i][1]);
        tri_text_free(&out);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "\\b",
        "\\h",
        "\\v",
        "\\R",
        "\\X",
        "\\K",
        "\\G",
        "\\1",
        "\\k<a>",
        "\\",
        "[\\W]",
        "\\pL",
        "\\p{L",
        "\\p{Alpha}",
        "\\xC3",
        "\\x4",
        "\\x{110000000}",
        "\\u12",
        "[[:alpha:]]",
        "[a[^b]]",
        "[a&&b]",
        "[]a]",
        "[a",
        "[a-[b]]",
        "[[a]-b]",
        "a{,3}",
        "a{2}+",
        "a{2}?",
        "(?<name>a)",
        "(?m:a)",
        "(?x)a",
        "a(?i)b",
        "(*FAIL)",
        "(?#a)",
        "(",
        ")",
        "a**",
        "*",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct tri_regex *regex;
        if (tri_regex_open(patterns[i], strlen(patterns[i]), &regex) != TRI_UNSUPPORTED)
            fail_msg("%s was read", patterns[i]);
        assert_non_null(strstr(tri_error_text(), "the pattern is not"));
    }
}

static void assert_matches(const char *pattern, const char *text, const size_t *ends, size_t count)
{
    struct tri_regex *regex;
    struct tri_regex_work *work;
    if (tri_regex_open(pattern, strlen(pattern), &regex) != TRI_OK)
        fail_msg("%s: %s", pattern, tri_error_text());
    assert_int_equal(tri_regex_work_open(&work), TRI_OK);
    struct tri_regex_walk walk = {.text = text, .bytes = strlen(text)};
    bool found;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(tri_regex_next(regex, work, &walk, &found), TRI_OK);
        assert_true(found);
        assert_int_equal(walk.begin, ends[2 * i]);
        assert_int_equal(walk.end, ends[2 * i + 1]);
    }
    assert_int_equal(tri_regex_next(regex, work, &walk, &found), TRI_OK);
    assert_false(found);
    tri_regex_work_close(work);
    tri_regex_close(regex);
}

static void test_matches(void **state)
{
    (void)state;
    assert_matches("a+", "baab a", (size_t[]){1, 3, 5, 6}, 2);
    /* Empty matches count, but not right behind another. */
    assert_matches("a*",
                   "b\xC3\xA9"
                   "aa",
                   (size_t[]){0, 0, 1, 1, 3, 5}, 3);
    assert_matches("^.|.$", "ab\ncd", (size_t[]){0, 1, 1, 2, 3, 4, 4, 5}, 4);
    assert_matches("\\w+", "a_1 \xC2\xB2-\xE2\x92\xB6", (size_t[]){0, 3, 4, 6, 7, 10}, 3);
}

/* U+180E is white space to PCRE2 alone, U+2EBF0 a letter since Unicode 15.1. */
static void test_newer_characters(void **state)
{
    (void)state;
    char text[] = "a\xE1\xA0\x8E"
                  "b \xF0\xAE\xAF\xB0";
    assert_false(tri_text_is_classified_alike(text, strlen(text)));
    tri_text_classify_alike(text, strlen(text));
    assert_true(tri_text_is_classified_alike(text, strlen(text)));
    assert_int_equal(strlen(text), 10);
    assert_matches("\\s", text, (size_t[]){5, 6}, 1);
    assert_matches("\\p{L}+", text, (size_t[]){0, 1, 4, 5, 6, 10}, 3);
    assert_matches("\\p{Han}", text, (size_t[]){6, 10}, 1);
}

/* A megabyte of spaces neither overflows a stack nor takes forever. */
static void test_long_runs(void **state)
{
    (void)state;
    enum { RUN = 1 << 20 };
    char *text = malloc(RUN + 2);
    assert_non_null(text);
    memset(text, ' ', RUN);
    text[RUN] = 'x';
    text[RUN + 1] = '\0';
    assert_matches("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+|x", text,
                   (size_t[]){0, RUN - 1, RUN - 1, RUN, RUN, RUN + 1}, 3);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_translation), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_matches),     cmocka_unit_test(test_newer_characters),
        cmocka_unit_test(test_long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
