/* A 64-bit hash for traces, identities and seeds. Not cryptographic. */
#ifndef TRI_BASE_HASH_H
#define TRI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TRI_HASH_START UINT64_C(0x9E3779B97F4A7C15)

/* Mix a word into a running hash. */
static inline uint64_t tri_hash_word(uint64_t hash, uint64_t word)
{
    /* The finaliser of MurmurHash3 (public domain), applied to the sum. */
    hash = (hash ^ word) * UINT64_C(0xFF51AFD7ED558CCD);
    hash = (hash ^ hash >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return hash ^ hash >> 33;
}

/* Mix bytes into a running hash. Equal on every machine. */
static inline uint64_t tri_hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    uint64_t left = bytes;
    while (left > 0) {
        uint64_t word = 0;
        uint64_t n = left < 8 ? left : 8;
        for (uint64_t i = 0; i < n; i++)
            word |= (uint64_t)p[i] << (8 * i);
        hash = tri_hash_word(hash, word);
        p += n;
        left -= n;
    }
    return tri_hash_word(hash, bytes);
}

#endif
