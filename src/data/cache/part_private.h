/* The ends of a part, for those who write and who read it. */
#ifndef TRI_DATA_CACHE_PART_PRIVATE_H
#define TRI_DATA_CACHE_PART_PRIVATE_H

#include <stddef.h>

#include "base/hash.h"
#include "data/cache/part.h"

#define TRI_PART_MAGIC UINT64_C(0x4548434143495254) /* "TRICACHE" */

struct tri_part_header {
    uint64_t magic, version, key;
};

struct tri_part_footer {
    uint64_t table; /* offset */
    int64_t count;
    struct tri_index_place place;
    uint64_t hash; /* of the table and of this up to here */
    uint64_t magic;
};

static inline size_t tri_part_padding(uint64_t bytes)
{
    return (size_t)((8 - bytes % 8) % 8);
}

static inline uint64_t tri_part_hash(const struct tri_cache_entry *entries,
                                     const struct tri_part_footer *footer)
{
    const uint64_t hash =
        tri_hash_bytes(TRI_HASH_START, entries, (size_t)footer->count * sizeof *entries);
    return tri_hash_bytes(hash, footer, offsetof(struct tri_part_footer, hash));
}

#endif
