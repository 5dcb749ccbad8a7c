/* Moving and filling: copy, zero, add, and the way to host memory and back. */
#include "backend/cpu/reference/reference.h"

#include <assert.h>
#include <string.h>

/* Address of element `offset`. */
static void *at(struct tri_view v, int64_t offset)
{
    return (char *)v.data + offset * (int64_t)tri_dtype_bytes(v.dtype);
}

enum tri_status tri_reference_copy(struct tri_stream *s, struct tri_view dst, struct tri_view src)
{
    (void)s;
    assert(tri_view_same_shape(dst, src));
    if (tri_view_count(dst) == 0)
        return TRI_OK;
    int64_t width = tri_reference_width(dst);
    if (dst.dtype == src.dtype) { /* bits, so that integers and the payload of a NaN survive */
        size_t bytes = (size_t)width * tri_dtype_bytes(dst.dtype);
        for (int64_t r = 0; r < tri_reference_rows(dst); r++)
            memmove(at(dst, tri_reference_row(dst, r)), at(src, tri_reference_row(src, r)), bytes);
        return TRI_OK;
    }
    TRI_TRY(tri_reference_check("copy", (struct tri_view[]){dst, src}, 2));
    for (int64_t r = 0; r < tri_reference_rows(dst); r++) {
        int64_t to = tri_reference_row(dst, r), from = tri_reference_row(src, r);
        for (int64_t i = 0; i < width; i++)
            tri_reference_set(dst, to + i, tri_reference_get(src, from + i));
    }
    return TRI_OK;
}

enum tri_status tri_reference_zero(struct tri_stream *s, struct tri_view dst)
{
    (void)s;
    if (tri_view_count(dst) == 0)
        return TRI_OK;
    size_t bytes = (size_t)tri_reference_width(dst) * tri_dtype_bytes(dst.dtype);
    for (int64_t r = 0; r < tri_reference_rows(dst); r++)
        memset(at(dst, tri_reference_row(dst, r)), 0, bytes);
    return TRI_OK;
}

enum tri_status tri_reference_accumulate(struct tri_stream *s, struct tri_view dst,
                                         struct tri_view src)
{
    (void)s;
    assert(tri_view_same_shape(dst, src));
    TRI_TRY(tri_reference_check("add", (struct tri_view[]){dst, src}, 2));
    for (int64_t r = 0; r < tri_reference_rows(dst); r++) {
        int64_t to = tri_reference_row(dst, r), from = tri_reference_row(src, r);
        for (int64_t i = 0; i < tri_reference_width(dst); i++)
            tri_reference_add(dst, to + i, tri_reference_get(src, from + i));
    }
    return TRI_OK;
}

enum tri_status tri_reference_upload(struct tri_stream *s, struct tri_view dst, const void *host)
{
    (void)s;
    assert(tri_view_contiguous(dst));
    if (tri_view_count(dst) > 0)
        memcpy(dst.data, host, tri_view_bytes(dst));
    return TRI_OK;
}

enum tri_status tri_reference_download(struct tri_stream *s, void *host, struct tri_view src)
{
    (void)s;
    assert(tri_view_contiguous(src));
    if (tri_view_count(src) > 0)
        memcpy(host, src.data, tri_view_bytes(src));
    return TRI_OK;
}

enum tri_status tri_reference_read_scalars(struct tri_stream *s, double *host, const double *src,
                                           int64_t n)
{
    (void)s;
    for (int64_t i = 0; i < n; i++)
        host[i] = src[i];
    return TRI_OK;
}

enum tri_status tri_reference_sync(struct tri_stream *s)
{
    (void)s;
    return TRI_OK;
}
