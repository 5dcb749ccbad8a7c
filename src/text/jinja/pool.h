/* Memory of one template or one rendering: taken piece by piece, given back all at once, and never
 * more than a budget, so that a hostile template ends in an error instead of in swap. */
#ifndef TRI_TEXT_JINJA_POOL_H
#define TRI_TEXT_JINJA_POOL_H

#include <stddef.h>

#include "base/status.h"

struct tri_jinja_block;

struct tri_jinja_pool {
    struct tri_jinja_block *blocks; /* newest first */
    size_t used, capacity;          /* of the newest block */
    size_t taken;                   /* bytes of all blocks */
    size_t limit;                   /* of `taken` */
};

/* All pointers from the pool live until it is closed. */
void tri_jinja_pool_open(size_t limit, struct tri_jinja_pool *pool);
void tri_jinja_pool_close(struct tri_jinja_pool *pool);

/* `bytes` aligned for any object, zeroed. NULL when memory or the budget is out;
 * tri_jinja_pool_fail describes which. */
void *tri_jinja_pool_get(struct tri_jinja_pool *pool, size_t bytes);
enum tri_status tri_jinja_pool_fail(const struct tri_jinja_pool *pool, const char *what);

#endif
