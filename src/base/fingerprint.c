#include "base/fingerprint.h"

#include <string.h>

enum { LANES = 4, BLOCK_BYTES = 8 * LANES };

/* Little-endian, wherever it lies. */
static inline uint64_t load_word(const unsigned char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint64_t mix(uint64_t lane, uint64_t word)
{
    word ^= lane;
    return (word << 29 | word >> 35) * UINT64_C(0x9E3779B97F4A7C15);
}

/* The lanes in registers: a loop over an array of them is not kept there by every compiler. */
static void mix_blocks(uint64_t lane[LANES], const unsigned char *data, size_t blocks)
{
    uint64_t a = lane[0], b = lane[1], c = lane[2], d = lane[3];
    for (; blocks > 0; blocks--, data += BLOCK_BYTES) {
        a = mix(a, load_word(data));
        b = mix(b, load_word(data + 8));
        c = mix(c, load_word(data + 16));
        d = mix(d, load_word(data + 24));
    }
    lane[0] = a;
    lane[1] = b;
    lane[2] = c;
    lane[3] = d;
}

void tri_fingerprinter_begin(struct tri_fingerprinter *f, uint64_t hash)
{
    f->start = hash;
    for (uint64_t i = 0; i < LANES; i++)
        f->lane[i] = hash + i;
    f->used = 0;
}

void tri_fingerprinter_add(struct tri_fingerprinter *f, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    if (f->used > 0) {
        size_t room = BLOCK_BYTES - f->used;
        size_t piece = bytes < room ? bytes : room;
        memcpy(f->tail + f->used, p, piece);
        f->used += piece;
        p += piece;
        bytes -= piece;
        if (f->used < BLOCK_BYTES)
            return;
        mix_blocks(f->lane, f->tail, 1);
    }
    mix_blocks(f->lane, p, bytes / BLOCK_BYTES);
    f->used = bytes % BLOCK_BYTES;
    if (f->used > 0)
        memcpy(f->tail, p + bytes - f->used, f->used);
}

uint64_t tri_fingerprinter_end(const struct tri_fingerprinter *f)
{
    uint64_t hash = f->start;
    for (int i = 0; i < LANES; i++)
        hash = tri_hash_word(hash, f->lane[i]);
    return tri_hash_bytes(hash, f->tail, f->used);
}

uint64_t tri_fingerprint(uint64_t hash, const void *data, size_t bytes)
{
    struct tri_fingerprinter f;
    tri_fingerprinter_begin(&f, hash);
    tri_fingerprinter_add(&f, data, bytes);
    return tri_fingerprinter_end(&f);
}
