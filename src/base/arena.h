/* A stack of named allocations inside one reserved range of addresses.
 *
 * Invariants
 * 1. Allocation is a bump of an offset; release goes back to a mark. Nothing is freed one by one,
 *    nothing fragments, pointers stay valid until their mark is released.
 * 2. Every allocation is aligned to TRI_ARENA_ALIGN bytes.
 * 3. The sequence of (name, bytes) is hashed into a trace: two runs with equal traces asked for the
 *    same memory in the same order. `plan`, `rehearse` and `train` share it.
 * 4. Over tri_counting_memory an arena only counts: its pointers must not be touched.
 */
#ifndef TRI_BASE_ARENA_H
#define TRI_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

enum { TRI_ARENA_ALIGN = 256 };

struct tri_arena;

/* Reserve `capacity` bytes of address space in `memory` (which must outlive the arena). */
enum tri_status tri_arena_open(const struct tri_memory *memory, size_t capacity,
                               struct tri_arena **out);
void tri_arena_close(struct tri_arena *arena);

/* Get `bytes` (0 is allowed) under a name that lives as long as the arena (a literal).
 * Contents are undefined. TRI_NOMEM leaves the arena as it was. */
enum tri_status tri_arena_alloc(struct tri_arena *arena, const char *name, size_t bytes,
                                void **out);

/* Make the first `bytes` usable now (and touch nothing), so that no later allocation up to there
 * can fail for want of memory. */
enum tri_status tri_arena_reserve(struct tri_arena *arena, size_t bytes);

/* Everything allocated after a mark is given back by releasing it. */
size_t tri_arena_mark(const struct tri_arena *arena);
void tri_arena_release(struct tri_arena *arena, size_t mark);

size_t tri_arena_used(const struct tri_arena *arena);
size_t tri_arena_peak(const struct tri_arena *arena); /* highest `used` since the last reset */
size_t tri_arena_committed(const struct tri_arena *arena);
void tri_arena_reset_peak(struct tri_arena *arena);

/* Hash of all (name, bytes) asked for since the last restart of the trace. */
uint64_t tri_arena_trace(const struct tri_arena *arena);
void tri_arena_restart_trace(struct tri_arena *arena);

/* Call `visit` with each live allocation, oldest first. */
void tri_arena_visit(const struct tri_arena *arena,
                     void (*visit)(void *ctx, const char *name, size_t bytes), void *ctx);

/* Make the `nth` allocation from now (1: the next one) fail with TRI_NOMEM; 0 turns it off.
 * Fault injection goes through the same door as production. */
void tri_arena_fail_at(struct tri_arena *arena, int64_t nth);

#endif
