/* Normal forms: the short cut agrees with utf8proc on every character, and later editions of
 * Unicode change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utf8proc.h>

#include "text/normalizer.h"
#include "text/unicode.h"

static const enum tri_normalizer_kind forms[] = {TRI_NORMALIZE_NFC, TRI_NORMALIZE_NFD,
                                                 TRI_NORMALIZE_NFKC, TRI_NORMALIZE_NFKD};

static void assert_form(enum tri_normalizer_kind form, const char *text, const char *want)
{
    struct tri_text out = {0};
    bool same;
    assert_int_equal(tri_normal_form(form, text, strlen(text), &out, &same), TRI_OK);
    assert_string_equal(same ? text : tri_text_data(&out), want);
    tri_text_free(&out);
}

/* Between a letter that composes and marks of all kinds. */
static void test_every_character(void **state)
{
    (void)state;
    for (uint32_t c = 1; c < 0x110000; c++) {
        if ((c >= 0xD800 && c < 0xE000) || tri_char_is_never_normalized(c))
            continue;
        char text[64] = "e", character[4];
        const size_t bytes = tri_char_put(c, character);
        memcpy(text + 1, character, bytes);
        strcpy(text + 1 + bytes, "\xCC\x81\xCC\xA7"); /* an accent, a cedilla */
        memcpy(text + strlen(text), character, bytes);
        utf8proc_uint8_t *want[] = {
            utf8proc_NFC((utf8proc_uint8_t *)text), utf8proc_NFD((utf8proc_uint8_t *)text),
            utf8proc_NFKC((utf8proc_uint8_t *)text), utf8proc_NFKD((utf8proc_uint8_t *)text)};
        for (size_t i = 0; i < 4; i++) {
            assert_non_null(want[i]);
            assert_form(forms[i], text, (const char *)want[i]);
            free(want[i]);
        }
    }
}

static void test_forms(void **state)
{
    (void)state;
    assert_form(TRI_NORMALIZE_NFC, "plain", "plain");
    assert_form(TRI_NORMALIZE_NFC, "re\xCC\x81sume\xCC\x81!", "r\xC3\xA9sum\xC3\xA9!");
    assert_form(TRI_NORMALIZE_NFD, "\xC3\xA9", "e\xCC\x81");
    assert_form(TRI_NORMALIZE_NFKC, "\xEF\xAC\x81", "fi");
    assert_form(TRI_NORMALIZE_NFC, "\xEF\xAC\x81", "\xEF\xAC\x81");
    assert_form(TRI_NORMALIZE_NFC, "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81");
    assert_form(TRI_NORMALIZE_NFC, "", "");
}

/* U+0898 has a combining class since Unicode 14.0, U+11938 is composed since 13.0. */
static void test_later_editions(void **state)
{
    (void)state;
    assert_form(TRI_NORMALIZE_NFD, "a\xE0\xA2\x98\xCC\xB4", "a\xE0\xA2\x98\xCC\xB4");
    assert_form(TRI_NORMALIZE_NFC, "a\xE0\xA2\x98\xCC\x81", "a\xE0\xA2\x98\xCC\x81");
    assert_form(TRI_NORMALIZE_NFC, "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0",
                "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0");
    assert_form(TRI_NORMALIZE_NFD, "\xF0\x91\xA4\xB8", "\xF0\x91\xA4\xB8");
    assert_form(TRI_NORMALIZE_NFKC, "\xE3\x8B\xBF", "\xE3\x8B\xBF"); /* U+32FF, of 2019 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_later_editions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
