/* A backend that pretends: the same calls, the same allocations, little or no work.
 *
 * COUNT does nothing at all over memory that must not be touched: what an arena over it reports is
 * what the real run will take. REHEARSE runs every op on its first tile only and touches every page
 * that it would have written to, so that a step at full length shows what it needs in little more
 * than the time in which the operating system gives the memory. Its numbers mean nothing. */
#ifndef TRI_BACKEND_DRY_DRY_H
#define TRI_BACKEND_DRY_DRY_H

#include "backend/backend.h"

enum tri_dry_mode { TRI_DRY_COUNT, TRI_DRY_REHEARSE };

/* `base` must outlive it and is not closed by it. */
enum tri_status tri_dry_open(struct tri_backend *base, enum tri_dry_mode mode,
                             struct tri_backend **out);
void tri_dry_close(struct tri_backend *backend);

#endif
