/* Private to backend/dry: a stream that knows the backend it stands for. */
#ifndef TRI_BACKEND_DRY_STREAM_H
#define TRI_BACKEND_DRY_STREAM_H

#include "backend/backend.h"

enum tri_dry_product { TRI_DRY_FORWARD, TRI_DRY_BACKWARD_X, TRI_DRY_BACKWARD_W };

enum { TRI_DRY_PRODUCTS = 3, TRI_DRY_TOUCHED = 1024 };

struct tri_stream {
    struct tri_backend *base;
    /* REHEARSE: the largest matrix of each product so far; views touched last. */
    int64_t largest[TRI_DRY_PRODUCTS];
    struct tri_view touched[TRI_DRY_TOUCHED];
};

struct tri_dry {
    struct tri_backend backend;
    struct tri_stream stream;
};

void tri_dry_count_ops(struct tri_ops *ops);
void tri_dry_rehearse_ops(struct tri_ops *ops);

/* Write to every page of a view, which may be absent. */
enum tri_status tri_dry_touch(struct tri_stream *s, struct tri_view v);

#endif
