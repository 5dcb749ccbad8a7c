/* Private to backend/dry: a stream that knows the backend it stands for. */
#ifndef TRI_BACKEND_DRY_STREAM_H
#define TRI_BACKEND_DRY_STREAM_H

#include "backend/backend.h"

struct tri_stream {
    struct tri_backend *base;
};

struct tri_dry {
    struct tri_backend backend;
    struct tri_stream stream;
};

void tri_dry_count_ops(struct tri_ops *ops);
void tri_dry_rehearse_ops(struct tri_ops *ops);

#endif
