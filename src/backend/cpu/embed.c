/* Rows of the embedding table. */
#include <string.h>

#include "backend/cpu/stream.h"

static enum tri_status embed_forward(struct tri_stream *s, struct tri_view y, const int32_t *ids,
                                     struct tri_view table)
{
    if (y.dtype != TRI_F32 || table.dtype != TRI_F32)
        return s->cpu->reference.embed_forward(s, y, ids, table);
    const int64_t rows = y.dim[0];
    const int64_t cols = y.dim[1];
    float *to = y.data;
    const float *from = table.data;
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, rows *cols)) schedule(static)
    for (int64_t t = 0; t < rows; t++)
        memcpy(to + t * y.stride[0], from + ids[t] * table.stride[0], (size_t)cols * sizeof *to);
    return TRI_OK;
}

/* Threads own columns, so that a token that appears often is summed in the order of its rows. */
static enum tri_status embed_backward(struct tri_stream *s, struct tri_view dtable,
                                      const int32_t *ids, struct tri_view dy)
{
    if (dtable.dtype != TRI_F32 || dy.dtype != TRI_F32)
        return s->cpu->reference.embed_backward(s, dtable, ids, dy);
    enum { GRAIN = 16 };
    const int64_t rows = dy.dim[0];
    const int64_t cols = dy.dim[1];
    float *to = dtable.data;
    const float *from = dy.data;
    const int workers = tri_cpu_workers(s->cpu, rows * cols);
#pragma omp parallel for num_threads(workers) schedule(static)
    for (int worker = 0; worker < workers; worker++) {
        int64_t begin = tri_cpu_piece(cols, GRAIN, workers, worker);
        int64_t end = tri_cpu_piece(cols, GRAIN, workers, worker + 1);
        if (begin == end)
            continue;
        for (int64_t t = 0; t < rows; t++)
            s->cpu->simd->add(end - begin, to + ids[t] * dtable.stride[0] + begin,
                              from + t * dy.stride[0] + begin);
    }
    return TRI_OK;
}

void tri_cpu_fast_embed(struct tri_ops *ops)
{
    ops->embed_forward = embed_forward;
    ops->embed_backward = embed_backward;
}
