#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/utf8.h"

static void test_valid_text(void **state)
{
    (void)state;
    const char *texts[] = {"",
                           "plain",
                           "gr\xC3\xBC\xC3\x9F",
                           "\xE2\x82\xAC",
                           "\xF0\x9F\x9A\xA3",
                           "\xEF\xBF\xBF",
                           "\xED\x9F\xBF",
                           "\xEE\x80\x80",
                           "\xF4\x8F\xBF\xBF"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(tri_utf8_valid(texts[i], strlen(texts[i])), strlen(texts[i]));
    assert_int_equal(tri_utf8_valid("a\0b", 3), 3);
}

static void test_malformed_text(void **state)
{
    (void)state;
    const char *texts[] = {
        "\x80",             /* a continuation alone */
        "\xC0\x80",         /* overlong NUL */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xED\xA0\x80",     /* surrogate */
        "\xF4\x90\x80\x80", /* above U+10FFFF */
        "\xF5\x80\x80\x80",
        "\xFF",
        "\xC3",
        "\xC3(",    /* cut by an ASCII character */
        "\xE2\x82", /* cut by the end */
        "\xE2\x28\xA1",
        "\xF0\x9F\x9A",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        /* At every distance from the blocks of the fast path. */
        for (size_t before = 0; before < 70; before++) {
            char buffer[128];
            const size_t n = strlen(texts[i]);
            memset(buffer, 'x', sizeof buffer);
            memcpy(buffer + before, texts[i], n);
            const bool cut = strcmp(texts[i], "\xE2\x82") == 0 || strcmp(texts[i], "\xC3") == 0 ||
                             strcmp(texts[i], "\xF0\x9F\x9A") == 0;
            assert_int_equal(tri_utf8_valid(buffer, before + n + (cut ? 0 : 40)), before);
        }
    }
}

/* Every code point, encoded by the definition, is valid exactly if it is a scalar value. */
static void test_every_code_point(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x120000; c++) {
        char p[4];
        size_t n;
        if (c < 0x80) {
            p[0] = (char)c;
            n = 1;
        } else if (c < 0x800) {
            p[0] = (char)(0xC0 | c >> 6);
            p[1] = (char)(0x80 | (c & 63));
            n = 2;
        } else if (c < 0x10000) {
            p[0] = (char)(0xE0 | c >> 12);
            p[1] = (char)(0x80 | (c >> 6 & 63));
            p[2] = (char)(0x80 | (c & 63));
            n = 3;
        } else {
            p[0] = (char)(0xF0 | c >> 18);
            p[1] = (char)(0x80 | (c >> 12 & 63));
            p[2] = (char)(0x80 | (c >> 6 & 63));
            p[3] = (char)(0x80 | (c & 63));
            n = 4;
        }
        const bool scalar = c < 0xD800 || (c > 0xDFFF && c < 0x110000);
        if (tri_utf8_valid(p, n) != (scalar ? n : 0))
            fail_msg("U+%04X", c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_text),
        cmocka_unit_test(test_malformed_text),
        cmocka_unit_test(test_every_code_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
