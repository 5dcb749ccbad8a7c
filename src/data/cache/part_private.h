/* The ends of a part, for those who write and who read it. */
#ifndef TRI_DATA_CACHE_PART_PRIVATE_H
#define TRI_DATA_CACHE_PART_PRIVATE_H

#include <stddef.h>

#include "base/hash.h"
#include "data/cache/part.h"
#include "base/fingerprint.h"

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

enum { TRI_PART_BLOCK = 1 << 16 }; /* tokens that share a hash */

static inline int64_t tri_part_blocks(int64_t tokens)
{
    return (tokens + TRI_PART_BLOCK - 1) / TRI_PART_BLOCK;
}

/* Of tokens [first, first + count) of a sample; labels and begins may be NULL. */
static inline uint64_t tri_part_block_hash(const int32_t *ids, const int32_t *labels,
                                           const void *begins, int64_t first, int64_t count)
{
    const size_t n = (size_t)count;
    uint64_t hash = tri_fingerprint(TRI_HASH_START, (const unsigned char *)(ids + first), 4 * n);
    if (labels)
        hash = tri_fingerprint(hash, (const unsigned char *)(labels + first), 4 * n);
    if (begins)
        hash = tri_fingerprint(hash, (const unsigned char *)begins + first, n);
    return hash;
}

static inline size_t tri_part_padding(uint64_t bytes)
{
    return (size_t)((8 - bytes % 8) % 8);
}

/* Where the arrays of a sample are, in bytes from its ids, and where it ends. */
struct tri_part_layout {
    uint64_t labels, begins, hashes, end;
};

/* False: it cannot have so many tokens. */
static inline bool tri_part_lay_out(const struct tri_cache_entry *entry,
                                    struct tri_part_layout *out)
{
    if (entry->tokens < 1 || entry->tokens > INT64_MAX / 16)
        return false;
    const uint64_t bytes = (uint64_t)entry->tokens;
    const uint64_t words = 4 * bytes + tri_part_padding(4 * bytes);
    out->labels = words;
    out->begins = out->labels + (entry->flags & TRI_CACHE_LABELS ? words : 0);
    out->hashes =
        out->begins + (entry->flags & TRI_CACHE_BEGINS ? bytes + tri_part_padding(bytes) : 0);
    out->end = out->hashes + sizeof(uint64_t) * (uint64_t)tri_part_blocks(entry->tokens);
    return true;
}

static inline uint64_t tri_part_hash(const struct tri_cache_entry *entries,
                                     const struct tri_part_footer *footer)
{
    const uint64_t hash =
        tri_hash_bytes(TRI_HASH_START, entries, (size_t)footer->count * sizeof *entries);
    return tri_hash_bytes(hash, footer, offsetof(struct tri_part_footer, hash));
}

#endif
