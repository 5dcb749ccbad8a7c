#include "backend/dry/dry.h"

#include <stdlib.h>

#include "backend/dry/stream.h"

enum tri_status tri_dry_open(struct tri_backend *base, enum tri_dry_mode mode,
                             struct tri_backend **out)
{
    struct tri_dry *dry = calloc(1, sizeof *dry);
    if (dry == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a dry backend");
    dry->stream.base = base;
    dry->backend = *base;
    dry->backend.stream = &dry->stream;
    dry->backend.ctx = dry;
    if (mode == TRI_DRY_COUNT) {
        dry->backend.memory = &tri_counting_memory;
        tri_dry_count_ops(&dry->backend.ops);
    } else {
        tri_dry_rehearse_ops(&dry->backend.ops);
    }
    *out = &dry->backend;
    return TRI_OK;
}

void tri_dry_close(struct tri_backend *backend)
{
    if (backend != NULL)
        free(backend->ctx);
}
