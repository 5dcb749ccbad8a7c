/* Making memory real without filling it. */
#include "backend/dry/stream.h"

enum { PAGE = 4096 };

static bool same_view(struct tri_view a, struct tri_view b)
{
    bool same = a.data == b.data && a.dtype == b.dtype && a.num_dims == b.num_dims;
    for (int i = 0; same && i < a.num_dims; i++)
        same = a.dim[i] == b.dim[i] && a.stride[i] == b.stride[i];
    return same;
}

/* Memory stays real once it was touched, and tiles come back to the same place: true if this view
 * is one of those touched last. */
static bool touched_before(struct tri_stream *s, struct tri_view v)
{
    struct tri_view *slot = &s->touched[(uintptr_t)v.data / 64 % TRI_DRY_TOUCHED];
    if (same_view(*slot, v))
        return true;
    *slot = v;
    return false;
}

/* A view as rows of elements that follow each other; whole rows when there are no gaps. */
static struct tri_view as_rows(struct tri_view v)
{
    if (tri_view_contiguous(v))
        return tri_view2(v.data, v.dtype, 1, tri_view_count(v));
    if (v.num_dims == 3 && v.stride[1] == v.dim[2]) {
        v.num_dims = 2;
        v.dim[1] *= v.dim[2];
        v.stride[1] = 1;
    }
    return v;
}

enum tri_status tri_dry_touch(struct tri_stream *s, struct tri_view v)
{
    if (!tri_view_present(v) || tri_view_count(v) == 0 || touched_before(s, v))
        return TRI_OK;
    const struct tri_view rows = as_rows(v);
    if (rows.num_dims == 3) /* heads with gaps between them */
        return s->base->ops.zero(s->base->stream, v);
    const int64_t step = PAGE / (int64_t)tri_dtype_bytes(v.dtype);
    struct tri_view firsts = rows; /* of each page of a row */
    firsts.num_dims = 3;
    firsts.dim[1] = (rows.dim[1] + step - 1) / step;
    firsts.stride[1] = step;
    firsts.dim[2] = firsts.stride[2] = 1;
    TRI_TRY(s->base->ops.zero(s->base->stream, firsts));
    return s->base->ops.zero(s->base->stream, tri_view_cols(rows, rows.dim[1] - 1, 1));
}
