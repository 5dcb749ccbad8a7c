/* A backend that pretends: the same calls, the same allocations, little or no work.
 *
 * COUNT does nothing at all over memory that must not be touched: what an arena over it reports is
 * what the real run will take. REHEARSE runs token-wise ops for real and products and attention on
 * their first tile only, and touches every byte that they would have written, so that a step at
 * full length shows in seconds what it needs. */
#ifndef TRI_BACKEND_DRY_DRY_H
#define TRI_BACKEND_DRY_DRY_H

#include "backend/backend.h"

enum tri_dry_mode { TRI_DRY_COUNT, TRI_DRY_REHEARSE };

/* `base` must outlive it and is not closed by it. */
enum tri_status tri_dry_open(struct tri_backend *base, enum tri_dry_mode mode,
                             struct tri_backend **out);
void tri_dry_close(struct tri_backend *backend);

#endif
