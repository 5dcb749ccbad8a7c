#include "text/utf8.h"

#include <stdint.h>
#include <string.h>

/* Length of the well-formed character at p, 0 if there is none within `left` bytes. */
static size_t character_bytes(const unsigned char *p, size_t left)
{
    const unsigned char lead = p[0];
    if (lead < 0x80)
        return 1;
    /* The range of the second byte is what excludes overlong forms and surrogates. */
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    size_t length;
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        if (lead == 0xE0)
            low = 0xA0;
        else if (lead == 0xED)
            high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        if (lead == 0xF0)
            low = 0x90;
        else if (lead == 0xF4)
            high = 0x8F;
    } else {
        return 0;
    }
    if (left < length || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

size_t tri_utf8_valid(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t at = 0;
    while (at < bytes) {
        /* Most text is ASCII: 32 bytes at a time. */
        while (bytes - at >= 32) {
            uint64_t word[4];
            memcpy(word, p + at, 32);
            if ((word[0] | word[1] | word[2] | word[3]) & UINT64_C(0x8080808080808080))
                break;
            at += 32;
        }
        /* Then characters, up to where the fast loop may find ASCII again. */
        const size_t stop = bytes - at < 32 ? bytes : at + 32;
        while (at < stop) {
            const size_t length = character_bytes(p + at, bytes - at);
            if (length == 0)
                return at;
            at += length;
        }
    }
    return at;
}
