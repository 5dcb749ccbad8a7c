/* Copy, zero, add. */
#include <string.h>

#include "backend/cpu/stream.h"
#include "base/minmax.h"

/* A view as rows: everything but the last dimension, folded where memory has no gaps. */
struct rows {
    int64_t outer, inner, cols; /* row (i, j) of outer x inner, `cols` elements each */
    int64_t outer_stride, inner_stride;
};

static struct rows rows_of(struct tri_view v)
{
    if (v.num_dims == 1)
        return (struct rows){1, 1, v.dim[0], 0, 0};
    if (v.num_dims == 2)
        return (struct rows){v.dim[0], 1, v.dim[1], v.stride[0], 0};
    return (struct rows){v.dim[0], v.dim[1], v.dim[2], v.stride[0], v.stride[1]};
}

enum { CHUNK = 16384 }; /* elements of one piece of work */

enum move { MOVE_BYTES, MOVE_TO_BF16, MOVE_FROM_BF16, MOVE_ADD, MOVE_ZERO };

static void move_piece(const struct tri_simd *simd, enum move kind, int64_t n, size_t bytes,
                       char *dst, const char *src)
{
    switch (kind) {
    case MOVE_BYTES:
        memmove(dst, src, (size_t)n * bytes);
        break;
    case MOVE_TO_BF16:
        simd->to_bf16(n, (uint16_t *)(void *)dst, (const float *)(const void *)src);
        break;
    case MOVE_FROM_BF16:
        simd->from_bf16(n, (float *)(void *)dst, (const uint16_t *)(const void *)src);
        break;
    case MOVE_ADD:
        simd->add(n, (float *)(void *)dst, (const float *)(const void *)src);
        break;
    case MOVE_ZERO:
        memset(dst, 0, (size_t)n * bytes);
        break;
    }
}

/* Run `kind` over all elements; `src` is absent for MOVE_ZERO. */
static void move_all(const struct tri_cpu *cpu, enum move kind, struct tri_view dst,
                     struct tri_view src)
{
    if (tri_view_count(dst) == 0)
        return;
    if (kind == MOVE_ZERO)
        src = dst;
    if (tri_view_contiguous(dst) && tri_view_contiguous(src)) {
        dst = tri_view1(dst.data, dst.dtype, tri_view_count(dst));
        src = tri_view1(src.data, src.dtype, tri_view_count(src));
    }
    const struct rows d = rows_of(dst);
    const struct rows s = rows_of(src);
    const size_t dst_bytes = tri_dtype_bytes(dst.dtype);
    const size_t src_bytes = tri_dtype_bytes(src.dtype);
    const int64_t chunks = (d.cols + CHUNK - 1) / CHUNK;
    const int64_t pieces = d.outer * d.inner * chunks;
#pragma omp parallel for num_threads(tri_cpu_workers(cpu, tri_view_count(dst))) schedule(static)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t row = piece / chunks;
        int64_t col = piece % chunks * CHUNK;
        int64_t n = tri_min(d.cols - col, CHUNK);
        int64_t i = row / d.inner;
        int64_t j = row % d.inner;
        char *to =
            (char *)dst.data + (size_t)(i * d.outer_stride + j * d.inner_stride + col) * dst_bytes;
        const char *from = (const char *)src.data +
                           (size_t)(i * s.outer_stride + j * s.inner_stride + col) * src_bytes;
        move_piece(cpu->simd, kind, n, dst_bytes, to, from);
    }
}

static enum tri_status copy(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    if (!tri_view_same_shape(dst, src))
        return s->cpu->reference.copy(s, dst, src);
    if (dst.dtype == src.dtype)
        move_all(s->cpu, MOVE_BYTES, dst, src);
    else if (dst.dtype == TRI_BF16 && src.dtype == TRI_F32)
        move_all(s->cpu, MOVE_TO_BF16, dst, src);
    else if (dst.dtype == TRI_F32 && src.dtype == TRI_BF16)
        move_all(s->cpu, MOVE_FROM_BF16, dst, src);
    else
        return s->cpu->reference.copy(s, dst, src);
    return TRI_OK;
}

static enum tri_status zero(struct tri_stream *s, struct tri_view dst)
{
    move_all(s->cpu, MOVE_ZERO, dst, dst);
    return TRI_OK;
}

static enum tri_status add(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    if (dst.dtype != TRI_F32 || src.dtype != TRI_F32 || !tri_view_same_shape(dst, src))
        return s->cpu->reference.add(s, dst, src);
    move_all(s->cpu, MOVE_ADD, dst, src);
    return TRI_OK;
}

void tri_cpu_fast_move(struct tri_ops *ops)
{
    ops->copy = copy;
    ops->zero = zero;
    ops->add = add;
}
