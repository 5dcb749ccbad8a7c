/* Named tensors kept between uses, each with a home tier: the one mover of bytes between tiers.
 *
 * A slot is a tensor of `rows` rows that is written and read in ranges of rows (chunks). Users say
 * what they will do, never where the bytes are:
 *
 *     fill -> (write the rows) -> put  ...  prefetch -> get -> (read the rows) -> done
 *
 * Today there is one tier, the backend's own memory: fill and get give the slot itself, put,
 * prefetch and done cost nothing. Host and disk tiers give staging buffers behind the same calls.
 */
#ifndef TRI_STORE_STORE_H
#define TRI_STORE_STORE_H

#include "backend/backend.h"
#include "base/arena.h"

enum tri_tier { TRI_TIER_DEVICE };

struct tri_store;

/* A store takes its slots from `exec.arena` and lives as long as the run. */
enum tri_status tri_store_open(struct tri_exec exec, struct tri_store **out);
void tri_store_close(struct tri_store *store);

/* Forget all slots; their memory goes back with the arena mark that the caller took before. */
void tri_store_clear(struct tri_store *store);

/* Reserve a slot of (rows, cols); `name` is a literal. */
enum tri_status tri_store_add(struct tri_store *store, const char *name, enum tri_tier home,
                              enum tri_dtype dtype, int64_t rows, int64_t cols, int *slot);

/* Rows [begin, begin + count) to write; `put` says they are complete. */
enum tri_status tri_store_fill(struct tri_store *store, int slot, int64_t begin, int64_t count,
                               struct tri_view *rows);
enum tri_status tri_store_put(struct tri_store *store, int slot, int64_t begin, int64_t count);

/* Rows to read, in backend memory until `done`. `prefetch` starts their journey early. */
enum tri_status tri_store_prefetch(struct tri_store *store, int slot, int64_t begin, int64_t count);
enum tri_status tri_store_get(struct tri_store *store, int slot, int64_t begin, int64_t count,
                              struct tri_view *rows);
enum tri_status tri_store_done(struct tri_store *store, int slot, int64_t begin, int64_t count);

#endif
