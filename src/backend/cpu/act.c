/* Activations, gated or not. */
#include "backend/cpu/stream.h"
#include "base/minmax.h"

enum { CHUNK = 4096 }; /* elements of one piece of work */

/* Row `r`, column `col`; NULL for an absent view. */
static float *at(struct tri_view v, int64_t r, int64_t col)
{
    return v.data == NULL ? NULL : (float *)v.data + r * v.stride[0] + col;
}

static bool plain(struct tri_view v)
{
    return v.data == NULL || (v.dtype == TRI_F32 && v.num_dims == 2);
}

static enum tri_status act_forward(struct tri_stream *s, enum tri_activation act, struct tri_view y,
                                   struct tri_view gate, struct tri_view up)
{
    if (!plain(y) || !plain(gate) || !plain(up))
        return s->cpu->reference.act_forward(s, act, y, gate, up);
    const int64_t chunks = (y.dim[1] + CHUNK - 1) / CHUNK;
    const int64_t pieces = y.dim[0] * chunks;
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, 4 * tri_view_count(y)))               \
    schedule(static)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t r = piece / chunks;
        int64_t col = piece % chunks * CHUNK;
        int64_t n = tri_min(y.dim[1] - col, CHUNK);
        s->cpu->simd->act_forward(act, n, at(y, r, col), at(gate, r, col), at(up, r, col));
    }
    return TRI_OK;
}

static enum tri_status act_backward(struct tri_stream *s, enum tri_activation act,
                                    struct tri_view dgate, struct tri_view dup, struct tri_view dy,
                                    struct tri_view gate, struct tri_view up)
{
    if (!plain(dgate) || !plain(dup) || !plain(dy) || !plain(gate) || !plain(up))
        return s->cpu->reference.act_backward(s, act, dgate, dup, dy, gate, up);
    const int64_t chunks = (dy.dim[1] + CHUNK - 1) / CHUNK;
    const int64_t pieces = dy.dim[0] * chunks;
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, 8 * tri_view_count(dy)))              \
    schedule(static)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t r = piece / chunks;
        int64_t col = piece % chunks * CHUNK;
        int64_t n = tri_min(dy.dim[1] - col, CHUNK);
        s->cpu->simd->act_backward(act, n, at(dgate, r, col), at(dup, r, col), at(dy, r, col),
                                   at(gate, r, col), at(up, r, col));
    }
    return TRI_OK;
}

void tri_cpu_fast_act(struct tri_ops *ops)
{
    ops->act_forward = act_forward;
    ops->act_backward = act_backward;
}
