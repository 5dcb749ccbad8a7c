/* The alphabet of byte-level tokenizers: a printable character for each byte (as in GPT-2's
 * encoder.py). Bytes that print in Latin-1 stand for themselves, the other 68 for U+0100 onwards in
 * their order. */
#ifndef TRI_TEXT_BYTECHAR_H
#define TRI_TEXT_BYTECHAR_H

#include <stdbool.h>
#include <stdint.h>

static inline bool tri_byte_prints(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

static inline uint32_t tri_byte_char(unsigned char byte)
{
    if (tri_byte_prints(byte))
        return byte;
    if (byte <= 0x20)
        return 0x100 + byte;
    return byte <= 0xA0 ? 0x121 + (byte - 0x7Fu) : 0x143; /* 0x7F to 0xA0, then 0xAD */
}

/* The byte of a character, -1 when it stands for none. */
static inline int tri_char_byte(uint32_t c)
{
    if (c < 0x100)
        return tri_byte_prints(c) ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    if (c <= 0x142)
        return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

#endif
