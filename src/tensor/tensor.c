#include "trireme/tensor.h"

#include <assert.h>

struct tri_tensor tri_tensor_none(void)
{
    return (struct tri_tensor){.data = NULL};
}

struct tri_tensor tri_tensor_make(void *data, enum tri_dtype dtype, int num_dims,
                                  const int64_t *dim)
{
    assert(num_dims >= 1 && num_dims <= TRI_TENSOR_DIMS);
    struct tri_tensor t = {.data = data, .dtype = dtype, .num_dims = num_dims};
    int64_t stride = 1;
    for (int d = num_dims - 1; d >= 0; d--) {
        t.dim[d] = dim[d];
        t.stride[d] = stride;
        stride *= dim[d];
    }
    return t;
}

struct tri_tensor tri_tensor_slice(struct tri_tensor t, int d, int64_t begin, int64_t count)
{
    assert(d >= 0 && d < t.num_dims && begin >= 0 && count >= 0 && begin + count <= t.dim[d]);
    if (t.data != NULL)
        t.data = (char *)t.data + begin * t.stride[d] * (int64_t)tri_dtype_bytes(t.dtype);
    t.dim[d] = count;
    return t;
}

struct tri_tensor tri_tensor_swap(struct tri_tensor t, int a, int b)
{
    assert(a >= 0 && a < t.num_dims && b >= 0 && b < t.num_dims);
    int64_t dim = t.dim[a];
    int64_t stride = t.stride[a];
    t.dim[a] = t.dim[b];
    t.stride[a] = t.stride[b];
    t.dim[b] = dim;
    t.stride[b] = stride;
    return t;
}

int64_t tri_tensor_count(const struct tri_tensor *t)
{
    int64_t count = t->num_dims > 0 ? 1 : 0;
    for (int d = 0; d < t->num_dims; d++)
        count *= t->dim[d];
    return count;
}
