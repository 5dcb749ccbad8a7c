#include "text/jinja/pool.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16 << 10, ALIGN = alignof(max_align_t) };

struct tri_jinja_block {
    struct tri_jinja_block *next;
    alignas(max_align_t) unsigned char data[];
};

void tri_jinja_pool_open(size_t limit, struct tri_jinja_pool *pool)
{
    *pool = (struct tri_jinja_pool){.limit = limit};
}

void tri_jinja_pool_close(struct tri_jinja_pool *pool)
{
    while (pool->blocks != NULL) {
        struct tri_jinja_block *next = pool->blocks->next;
        free(pool->blocks);
        pool->blocks = next;
    }
    *pool = (struct tri_jinja_pool){0};
}

void *tri_jinja_pool_get(struct tri_jinja_pool *pool, size_t bytes)
{
    if (bytes > pool->limit)
        return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > pool->capacity - pool->used) {
        /* Blocks grow with what is in use, so that a large rendering asks rarely. */
        size_t capacity = pool->taken / 4 > BLOCK_BYTES ? pool->taken / 4 : BLOCK_BYTES;
        if (capacity > pool->limit - pool->taken)
            capacity = pool->limit - pool->taken;
        if (capacity < bytes)
            capacity = bytes;
        if (capacity > pool->limit - pool->taken)
            return NULL;
        struct tri_jinja_block *block = malloc(sizeof *block + capacity);
        if (block == NULL)
            return NULL;
        block->next = pool->blocks;
        pool->blocks = block;
        pool->used = 0;
        pool->capacity = capacity;
        pool->taken += capacity;
    }
    void *piece = pool->blocks->data + pool->used;
    pool->used += bytes;
    return memset(piece, 0, bytes);
}

enum tri_status tri_jinja_pool_fail(const struct tri_jinja_pool *pool, const char *what)
{
    return tri_fail(TRI_NOMEM, "%s: no memory (%zu bytes in use, the limit is %zu)", what,
                    pool->taken, pool->limit);
}
