/* A hash of file contents that keeps up with memory: four lanes, 32 bytes at a time. */
#ifndef TRI_DATA_FINGERPRINT_H
#define TRI_DATA_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

static inline uint64_t tri_fingerprint(uint64_t hash, const unsigned char *data, size_t bytes)
{
    const size_t blocks = bytes / 32;
    uint64_t lane[4] = {hash, hash + 1, hash + 2, hash + 3};
    for (size_t b = 0; b < blocks; b++) {
        for (int i = 0; i < 4; i++) {
            uint64_t word = 0; /* little-endian: equal on every machine */
            for (int k = 0; k < 8; k++)
                word |= (uint64_t)data[32 * b + 8 * (size_t)i + (size_t)k] << (8 * k);
            word ^= lane[i];
            lane[i] = (word << 29 | word >> 35) * UINT64_C(0x9E3779B97F4A7C15);
        }
    }
    for (int i = 0; i < 4; i++)
        hash = tri_hash_word(hash, lane[i]);
    return tri_hash_bytes(hash, data + 32 * blocks, bytes - 32 * blocks);
}

#endif
