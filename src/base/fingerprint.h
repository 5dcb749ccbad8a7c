/* A hash of file contents that keeps up with memory: four lanes, 32 bytes at a time. 64 bits, not
 * cryptographic: it finds damage, not malice. Every step is one to one in what it mixes in, so a
 * change within one aligned word of 8 bytes is found for certain. Equal on every machine. */
#ifndef TRI_BASE_FINGERPRINT_H
#define TRI_BASE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/* Mix bytes into a running hash. The same bytes in other pieces give another hash. */
uint64_t tri_fingerprint(uint64_t hash, const void *data, size_t bytes);

/* The same hash of bytes that come in pieces, however they are cut. */
struct tri_fingerprinter {
    uint64_t start;
    uint64_t lane[4];
    unsigned char tail[32]; /* bytes that wait for their block to be full */
    size_t used;            /* of the tail */
};
void tri_fingerprinter_begin(struct tri_fingerprinter *f, uint64_t hash);
void tri_fingerprinter_add(struct tri_fingerprinter *f, const void *data, size_t bytes);
uint64_t tri_fingerprinter_end(const struct tri_fingerprinter *f);

#endif
