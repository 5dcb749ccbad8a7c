/* Characters of UTF-8 text, and the properties that tokenizers ask of them.
 *
 * The reference is Hugging Face tokenizers 0.23, whose parts follow different editions of Unicode:
 * its regular expressions (Oniguruma) 16.0, its normal forms 9.0. Libraries of other editions are
 * brought in line here, because one reclassified character gives other token ids. */
#ifndef TRI_TEXT_UNICODE_H
#define TRI_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character that begins at p, in text that tri_utf8_valid() has accepted. */
static inline uint32_t tri_char_at(const char *p, size_t *bytes)
{
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] < 0x80) {
        *bytes = 1;
        return u[0];
    }
    if (u[0] < 0xE0) {
        *bytes = 2;
        return (uint32_t)(u[0] & 0x1F) << 6 | (u[1] & 0x3F);
    }
    if (u[0] < 0xF0) {
        *bytes = 3;
        return (uint32_t)(u[0] & 0x0F) << 12 | (uint32_t)(u[1] & 0x3F) << 6 | (u[2] & 0x3F);
    }
    *bytes = 4;
    return (uint32_t)(u[0] & 0x07) << 18 | (uint32_t)(u[1] & 0x3F) << 12 |
           (uint32_t)(u[2] & 0x3F) << 6 | (u[3] & 0x3F);
}

/* Bytes of the character that ends just before text + at, at > 0. */
size_t tri_char_before(const char *text, size_t at);

/* Write a character as UTF-8; returns its bytes. */
size_t tri_char_put(uint32_t c, char out[4]);

bool tri_char_is_space(uint32_t c);   /* White_Space */
bool tri_char_is_word(uint32_t c);    /* \w of Unicode TS 18 */
bool tri_char_is_numeric(uint32_t c); /* general category N */

/* Does a regular expression library of any edition since 14.0 classify all of this text as the
 * reference does? */
bool tri_text_is_classified_alike(const char *text, size_t bytes);

/* If not: overwrite each character that differs by one of the same length that both agree on and
 * that has the reference's category. Matches in the changed text lie where they would in the
 * original. */
void tri_text_classify_alike(char *text, size_t bytes);

/* Is this character one that the reference's edition does not normalise, though later ones do? */
bool tri_char_is_never_normalized(uint32_t c);

#endif
