#include "store/store.h"

#include <assert.h>
#include <stdlib.h>

enum { MAX_SLOTS = 4096 };

struct tri_store {
    struct tri_exec exec;
    int num_slots;
    struct tri_view slot[MAX_SLOTS];
};

enum tri_status tri_store_open(struct tri_exec exec, struct tri_store **out)
{
    struct tri_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a store");
    store->exec = exec;
    *out = store;
    return TRI_OK;
}

void tri_store_close(struct tri_store *store)
{
    free(store);
}

void tri_store_clear(struct tri_store *store)
{
    store->num_slots = 0;
}

enum tri_status tri_store_add(struct tri_store *store, const char *name, enum tri_tier home,
                              enum tri_dtype dtype, int64_t rows, int64_t cols, int *slot)
{
    if (home != TRI_TIER_DEVICE)
        return tri_fail(TRI_UNSUPPORTED, "'%s': there is no tier %d", name, (int)home);
    if (store->num_slots == MAX_SLOTS)
        return tri_fail(TRI_INTERNAL, "'%s': more than %d slots in a store", name, MAX_SLOTS);
    TRI_TRY(
        tri_exec_scratch(&store->exec, name, dtype, rows, cols, &store->slot[store->num_slots]));
    *slot = store->num_slots++;
    return TRI_OK;
}

static struct tri_view rows_of(const struct tri_store *store, int slot, int64_t begin,
                               int64_t count)
{
    assert(slot >= 0 && slot < store->num_slots);
    return tri_view_rows(store->slot[slot], begin, count);
}

enum tri_status tri_store_fill(struct tri_store *store, int slot, int64_t begin, int64_t count,
                               struct tri_view *rows)
{
    *rows = rows_of(store, slot, begin, count);
    return TRI_OK;
}

enum tri_status tri_store_put(struct tri_store *store, int slot, int64_t begin, int64_t count)
{
    (void)rows_of(store, slot, begin, count); /* checks the range */
    return TRI_OK;
}

enum tri_status tri_store_prefetch(struct tri_store *store, int slot, int64_t begin, int64_t count)
{
    (void)rows_of(store, slot, begin, count);
    return TRI_OK;
}

enum tri_status tri_store_get(struct tri_store *store, int slot, int64_t begin, int64_t count,
                              struct tri_view *rows)
{
    *rows = rows_of(store, slot, begin, count);
    return TRI_OK;
}

enum tri_status tri_store_done(struct tri_store *store, int slot, int64_t begin, int64_t count)
{
    (void)rows_of(store, slot, begin, count);
    return TRI_OK;
}
