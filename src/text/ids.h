/* A list of token ids that grows. All zero is an empty one. */
#ifndef TRI_TEXT_IDS_H
#define TRI_TEXT_IDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

struct tri_ids {
    int32_t *data;
    int64_t count;
    int64_t capacity;
};

/* Make room for `more` ids behind those there are. */
static inline enum tri_status tri_ids_reserve(struct tri_ids *ids, int64_t more)
{
    if (more <= ids->capacity - ids->count)
        return TRI_OK;
    int64_t capacity = ids->capacity + ids->capacity / 2;
    if (capacity < ids->count + more)
        capacity = ids->count + more;
    if (capacity < 256)
        capacity = 256;
    int32_t *data = (int32_t *)realloc(ids->data, (size_t)capacity * sizeof *data);
    if (!data)
        return tri_fail(TRI_NOMEM, "no memory for %lld tokens", (long long)capacity);
    ids->data = data;
    ids->capacity = capacity;
    return TRI_OK;
}

static inline enum tri_status tri_ids_push(struct tri_ids *ids, int32_t id)
{
    if (ids->count == ids->capacity)
        TRI_TRY(tri_ids_reserve(ids, 1));
    ids->data[ids->count++] = id;
    return TRI_OK;
}

static inline enum tri_status tri_ids_append(struct tri_ids *ids, const int32_t *more,
                                             int64_t count)
{
    if (count == 0)
        return TRI_OK;
    TRI_TRY(tri_ids_reserve(ids, count));
    memcpy(ids->data + ids->count, more, (size_t)count * sizeof *more);
    ids->count += count;
    return TRI_OK;
}

static inline void tri_ids_free(struct tri_ids *ids)
{
    free(ids->data);
    memset(ids, 0, sizeof *ids);
}

#endif
