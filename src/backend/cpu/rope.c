/* Rotary positions. */
#include "backend/cpu/stream.h"

static enum tri_status rope_table(struct tri_stream *s, struct tri_view table, const int64_t *pos,
                                  const double *inv_freq, double scale)
{
    if (table.dtype != TRI_F32)
        return s->cpu->reference.rope_table(s, table, pos, inv_freq, scale);
    const int64_t rows = table.dim[0];
    const int64_t half = table.dim[1] / 2;
    float *data = table.data;
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, 8 * rows * half)) schedule(static)
    for (int64_t t = 0; t < rows; t++)
        s->cpu->simd->rope_table(half, data + t * table.stride[0], pos[t], inv_freq, scale);
    return TRI_OK;
}

static enum tri_status rope(struct tri_stream *s, bool inverse, struct tri_view y,
                            struct tri_view x, struct tri_view table)
{
    if (x.dtype != TRI_F32 || y.dtype != TRI_F32 || table.dtype != TRI_F32)
        return s->cpu->reference.rope(s, inverse, y, x, table);
    const int64_t rows = x.dim[0];
    const int64_t half = table.dim[1] / 2;
    float *to = y.data;
    const float *from = x.data;
    const float *angles = table.data;
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, tri_view_count(x))) schedule(static)
    for (int64_t t = 0; t < rows; t++)
        for (int64_t h = 0; h < x.dim[1]; h++)
            s->cpu->simd->rope(
                half, x.dim[2], inverse ? -1.0f : 1.0f, to + t * y.stride[0] + h * y.stride[1],
                from + t * x.stride[0] + h * x.stride[1], angles + t * table.stride[0]);
    return TRI_OK;
}

void tri_cpu_fast_rope(struct tri_ops *ops)
{
    ops->rope_table = rope_table;
    ops->rope = rope;
}
