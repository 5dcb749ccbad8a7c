/* Tensors of any strides as the views of the backend, whose last dimension has no gaps. */
#include "api/device.h"

/* The last three of four dimensions, or fewer dimensions padded with ones in front. */
static struct tri_tensor padded(struct tri_tensor t)
{
    struct tri_tensor p = {.data = t.data, .dtype = t.dtype, .num_dims = 4};
    int shift = 4 - t.num_dims;
    for (int d = 0; d < 4; d++) {
        p.dim[d] = d < shift ? 1 : t.dim[d - shift];
        p.stride[d] = d < shift ? 0 : t.stride[d - shift];
    }
    return p;
}

/* Dimensions a, b, c of a tensor at an offset; c has no gaps. */
static struct tri_view view_of(const struct tri_tensor *t, int64_t offset, int a, int b, int c)
{
    struct tri_view v = {.dtype = t->dtype, .num_dims = 3};
    const int from[3] = {a, b, c};
    v.data = (char *)t->data + offset * (int64_t)tri_dtype_bytes(t->dtype);
    for (int d = 0; d < 3; d++) {
        v.dim[d] = from[d] >= 0 ? t->dim[from[d]] : 1;
        v.stride[d] = from[d] >= 0 ? t->stride[from[d]] : 1;
    }
    return v;
}

enum tri_status tri_device_copy(struct tri_device *device, struct tri_tensor dst,
                                struct tri_tensor src)
{
    const struct tri_ops *ops = device->exec.ops;
    if (tri_tensor_count(&dst) == 0 || dst.data == src.data)
        return TRI_OK;
    struct tri_tensor to = padded(dst);
    struct tri_tensor from = padded(src);
    bool dense = (to.stride[3] == 1 && from.stride[3] == 1) || to.dim[3] == 1;
    for (int64_t i = 0; i < to.dim[0]; i++) {
        if (dense) {
            struct tri_view a = view_of(&to, i * to.stride[0], 1, 2, 3);
            struct tri_view b = view_of(&from, i * from.stride[0], 1, 2, 3);
            a.stride[2] = b.stride[2] = 1;
            TRI_TRY(ops->copy(device->exec.stream, a, b));
            continue;
        }
        for (int64_t j = 0; j < to.dim[1]; j++)
            TRI_TRY(ops->copy(device->exec.stream,
                              view_of(&to, i * to.stride[0] + j * to.stride[1], 2, 3, -1),
                              view_of(&from, i * from.stride[0] + j * from.stride[1], 2, 3, -1)));
    }
    return TRI_OK;
}

/* Whether all dimensions but the last are one run of rows at equal distances. */
static bool is_matrix(const struct tri_tensor *t, int64_t *rows, int64_t *stride)
{
    int last = t->num_dims - 1;
    if (t->stride[last] != 1 && t->dim[last] > 1)
        return false;
    *rows = 1;
    *stride = t->dim[last];
    for (int d = last - 1; d >= 0; d--) {
        if (t->dim[d] == 1)
            continue;
        if (*rows == 1)
            *stride = t->stride[d];
        else if (t->stride[d] != *stride * *rows)
            return false;
        *rows *= t->dim[d];
    }
    return *stride >= t->dim[last] || *rows <= 1;
}

enum tri_status tri_device_matrix(struct tri_device *device, const char *name, struct tri_tensor t,
                                  bool read, struct tri_matrix *out)
{
    struct tri_matrix m = {.view = tri_view_none(), .home = t};
    if (t.data == NULL) {
        *out = m;
        return TRI_OK;
    }
    if (t.num_dims < 1 || t.num_dims > 4)
        return tri_fail(TRI_INVALID, "%s has %d dimensions: 1 to 4 are possible", name, t.num_dims);
    int64_t cols = t.dim[t.num_dims - 1];
    int64_t rows, stride;
    if (is_matrix(&t, &rows, &stride)) {
        m.view = tri_view2(t.data, t.dtype, rows, cols);
        m.view.stride[0] = stride;
        *out = m;
        return TRI_OK;
    }
    rows = cols > 0 ? tri_tensor_count(&t) / cols : 0;
    m.staged = true;
    TRI_TRY(tri_device_scratch(device, name, t.dtype, rows, cols, &m.view));
    if (read)
        TRI_TRY(
            tri_device_copy(device, tri_tensor_make(m.view.data, t.dtype, t.num_dims, t.dim), t));
    *out = m;
    return TRI_OK;
}

enum tri_status tri_device_matrix_done(struct tri_device *device, const struct tri_matrix *m)
{
    if (!m->staged)
        return TRI_OK;
    return tri_device_copy(
        device, m->home,
        tri_tensor_make(m->view.data, m->home.dtype, m->home.num_dims, m->home.dim));
}

enum tri_status tri_device_param(const char *name, struct tri_tensor t, struct tri_view *out)
{
    int64_t rows, stride;
    if (t.data == NULL) {
        *out = tri_view_none();
        return TRI_OK;
    }
    if (t.num_dims < 1 || t.num_dims > 2 || !is_matrix(&t, &rows, &stride))
        return tri_fail(TRI_INVALID,
                        "%s: a parameter has one or two dimensions and rows without gaps", name);
    struct tri_view v = t.num_dims == 1 ? tri_view1(t.data, t.dtype, t.dim[0])
                                        : tri_view2(t.data, t.dtype, t.dim[0], t.dim[1]);
    if (t.num_dims == 2 && t.dim[0] > 1)
        v.stride[0] = stride;
    *out = v;
    return TRI_OK;
}
