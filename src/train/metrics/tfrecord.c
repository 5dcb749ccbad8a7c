#include "train/metrics/tfrecord.h"

uint32_t tri_crc32c(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint32_t crc = UINT32_MAX;
    /* Bit by bit: a row of metrics has a kilobyte. */
    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82F63B78) : 0);
    }
    return ~crc;
}

/* Stored checksums are masked, since a checksum of data that holds its own is a constant. */
static uint32_t masked(const void *data, size_t bytes)
{
    const uint32_t crc = tri_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + UINT32_C(0xA282EAD8);
}

/* Append the `count` low bytes of a word, the lowest first. */
static void add_word(struct tri_text *out, uint64_t word, int count)
{
    char bytes[8];
    for (int i = 0; i < count; i++)
        bytes[i] = (char)(unsigned char)(word >> 8 * i);
    tri_text_add(out, bytes, (size_t)count);
}

void tri_tfrecord_add(struct tri_text *out, const void *data, size_t bytes)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)bytes >> 8 * i);
    tri_text_add(out, (const char *)length, sizeof length);
    add_word(out, masked(length, sizeof length), 4);
    tri_text_add(out, data, bytes);
    add_word(out, masked(data, bytes), 4);
}
