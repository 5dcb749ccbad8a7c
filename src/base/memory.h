/* Where an arena's bytes come from: host memory here, device memory in backend/cuda.
 *
 * Memory is reserved once as a range of addresses and becomes real as it grows, so a pointer never
 * moves and nothing ever fragments. */
#ifndef TRI_BASE_MEMORY_H
#define TRI_BASE_MEMORY_H

#include <stddef.h>

#include "base/status.h"

struct tri_memory {
    const char *name; /* "host", "device": for messages */
    void *ctx;
    /* Reserve `bytes` of address space; nothing is usable yet. */
    enum tri_status (*reserve)(void *ctx, size_t bytes, void **base);
    /* Make [base + from, base + to) usable. Contents are undefined. TRI_NOMEM says how much was
     * asked for and how much there is. */
    enum tri_status (*commit)(void *ctx, void *base, size_t from, size_t to);
    /* Give the whole range back. */
    void (*release)(void *ctx, void *base, size_t bytes);
};

/* The next multiple of `step`: what is reserved, committed or mapped comes in whole pages. */
static inline size_t tri_round_up(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

/* Host memory by mmap. */
extern const struct tri_memory tri_host_memory;

/* Memory of nothing: addresses that must never be touched. An arena over it only counts. */
extern const struct tri_memory tri_counting_memory;

#endif
