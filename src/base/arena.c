#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

enum { COMMIT_STEP = 2 << 20 }; /* commit in whole huge pages */

struct entry {
    const char *name;
    size_t offset;
    size_t bytes;
};

struct tri_arena {
    const struct tri_memory *memory;
    void *base;
    size_t capacity;
    size_t committed;
    size_t used;
    size_t peak;
    uint64_t trace;
    int64_t fail_in;
    struct entry *entries; /* the live allocations, oldest first */
    size_t num_entries;
    size_t max_entries;
};

enum tri_status tri_arena_open(const struct tri_memory *memory, size_t capacity,
                               struct tri_arena **out)
{
    struct tri_arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        return tri_fail(TRI_NOMEM, "no memory for an arena");
    arena->memory = memory;
    arena->capacity = tri_round_up(capacity, COMMIT_STEP);
    arena->trace = TRI_HASH_START;
    enum tri_status st = memory->reserve(memory->ctx, arena->capacity, &arena->base);
    if (st != TRI_OK) {
        free(arena);
        return st;
    }
    *out = arena;
    return TRI_OK;
}

void tri_arena_close(struct tri_arena *arena)
{
    if (arena == NULL)
        return;
    arena->memory->release(arena->memory->ctx, arena->base, arena->capacity);
    free(arena->entries);
    free(arena);
}

static enum tri_status remember(struct tri_arena *arena, const char *name, size_t bytes)
{
    if (arena->num_entries == arena->max_entries) {
        size_t n = arena->max_entries == 0 ? 64 : 2 * arena->max_entries;
        struct entry *grown = realloc(arena->entries, n * sizeof *grown);
        if (grown == NULL)
            return tri_fail(TRI_NOMEM, "no memory for the arena's list");
        arena->entries = grown;
        arena->max_entries = n;
    }
    arena->entries[arena->num_entries++] =
        (struct entry){.name = name, .offset = arena->used, .bytes = bytes};
    return TRI_OK;
}

enum tri_status tri_arena_reserve(struct tri_arena *arena, size_t bytes)
{
    size_t target = tri_round_up(bytes, COMMIT_STEP);
    if (bytes > arena->capacity)
        return tri_fail(TRI_NOMEM, "%s asked of %s of %s memory", tri_bytes((double)bytes).s,
                        tri_bytes((double)arena->capacity).s, arena->memory->name);
    if (target > arena->committed) {
        TRI_TRY(arena->memory->commit(arena->memory->ctx, arena->base, arena->committed, target));
        arena->committed = target;
    }
    return TRI_OK;
}

enum tri_status tri_arena_alloc(struct tri_arena *arena, const char *name, size_t bytes, void **out)
{
    /* An empty allocation takes a place as well, so that every mark lies above or below it. */
    size_t end = arena->used;
    if (bytes > arena->capacity ||
        (end += tri_round_up(bytes > 0 ? bytes : 1, TRI_ARENA_ALIGN)) > arena->capacity ||
        (arena->fail_in > 0 && --arena->fail_in == 0))
        return tri_fail(TRI_NOMEM, "no room for '%s': %s asked, %s of %s of %s memory in use", name,
                        tri_bytes((double)bytes).s, tri_bytes((double)arena->used).s,
                        tri_bytes((double)arena->capacity).s, arena->memory->name);
    if (end > arena->committed) {
        size_t target = tri_round_up(end, COMMIT_STEP);
        enum tri_status st =
            arena->memory->commit(arena->memory->ctx, arena->base, arena->committed, target);
        if (st != TRI_OK) {
            tri_error_prefix("'%s', %s", name, tri_bytes((double)bytes).s);
            return st;
        }
        arena->committed = target;
    }
    TRI_TRY(remember(arena, name, bytes));
    arena->trace = tri_hash_word(tri_hash_bytes(arena->trace, name, strlen(name)), bytes);
    *out = (char *)arena->base + arena->used;
    arena->used = end;
    if (end > arena->peak)
        arena->peak = end;
    return TRI_OK;
}

size_t tri_arena_mark(const struct tri_arena *arena)
{
    return arena->used;
}

void tri_arena_release(struct tri_arena *arena, size_t mark)
{
    while (arena->num_entries > 0 && arena->entries[arena->num_entries - 1].offset >= mark)
        arena->num_entries--;
    arena->used = mark;
}

size_t tri_arena_used(const struct tri_arena *arena)
{
    return arena->used;
}

size_t tri_arena_peak(const struct tri_arena *arena)
{
    return arena->peak;
}

size_t tri_arena_committed(const struct tri_arena *arena)
{
    return arena->committed;
}

void tri_arena_reset_peak(struct tri_arena *arena)
{
    arena->peak = arena->used;
}

uint64_t tri_arena_trace(const struct tri_arena *arena)
{
    return arena->trace;
}

void tri_arena_restart_trace(struct tri_arena *arena)
{
    arena->trace = TRI_HASH_START;
}

void tri_arena_visit(const struct tri_arena *arena,
                     void (*visit)(void *ctx, const char *name, size_t bytes), void *ctx)
{
    for (size_t i = 0; i < arena->num_entries; i++)
        visit(ctx, arena->entries[i].name, arena->entries[i].bytes);
}

void tri_arena_fail_at(struct tri_arena *arena, int64_t nth)
{
    arena->fail_in = nth;
}
