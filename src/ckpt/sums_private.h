/* Sums, for those who take and who compare them. */
#ifndef TRI_CKPT_SUMS_PRIVATE_H
#define TRI_CKPT_SUMS_PRIVATE_H

#include <string.h>

#include "base/fingerprint.h"
#include "ckpt/sums.h"

#define TRI_SUMS_FILE "trireme_checksums.json"

/* As text: JSON numbers of other readers end at 2^53. */
enum { TRI_SUMS_TEXT = 17 };

struct tri_sum {
    char *name;
    uint64_t bytes;
    uint64_t *block; /* (num_blocks) hashes */
    bool *right;     /* (num_blocks) reading: these were compared */
    int64_t num_blocks, room;
    struct tri_fingerprinter open; /* writing: the block that is not full yet */
};

struct tri_sums {
    struct tri_sum **file;
    int64_t count;
    bool failed; /* memory was out */
};

static inline const char *tri_sum_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static inline int64_t tri_sum_blocks(uint64_t bytes)
{
    return (int64_t)(bytes / TRI_SUMS_BLOCK + (bytes % TRI_SUMS_BLOCK != 0));
}

#endif
