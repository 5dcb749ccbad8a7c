#include "tensor/view.h"

#include <assert.h>

size_t tri_dtype_bytes(enum tri_dtype dtype)
{
    static const size_t bytes[] = {[TRI_F32] = 4, [TRI_BF16] = 2, [TRI_F16] = 2, [TRI_F64] = 8,
                                   [TRI_I32] = 4, [TRI_I64] = 8,  [TRI_U8] = 1};
    return bytes[dtype];
}

const char *tri_dtype_name(enum tri_dtype dtype)
{
    static const char *const names[] = {
        [TRI_F32] = "float32", [TRI_BF16] = "bfloat16", [TRI_F16] = "float16",
        [TRI_F64] = "float64", [TRI_I32] = "int32",     [TRI_I64] = "int64",
        [TRI_U8] = "uint8"};
    return names[dtype];
}

struct tri_view tri_view1(void *data, enum tri_dtype dtype, int64_t n)
{
    return (struct tri_view){
        .data = data, .dtype = dtype, .num_dims = 1, .dim = {n}, .stride = {1}};
}

struct tri_view tri_view2(void *data, enum tri_dtype dtype, int64_t rows, int64_t cols)
{
    return (struct tri_view){
        .data = data, .dtype = dtype, .num_dims = 2, .dim = {rows, cols}, .stride = {cols, 1}};
}

struct tri_view tri_view3(void *data, enum tri_dtype dtype, int64_t d0, int64_t d1, int64_t d2)
{
    return (struct tri_view){.data = data,
                             .dtype = dtype,
                             .num_dims = 3,
                             .dim = {d0, d1, d2},
                             .stride = {d1 * d2, d2, 1}};
}

static void *advance(struct tri_view v, int64_t elements)
{
    return v.data == NULL ? NULL : (char *)v.data + elements * (int64_t)tri_dtype_bytes(v.dtype);
}

struct tri_view tri_view_rows(struct tri_view v, int64_t begin, int64_t count)
{
    assert(begin >= 0 && count >= 0 && begin + count <= v.dim[0]);
    v.data = advance(v, begin * v.stride[0]);
    v.dim[0] = count;
    return v;
}

struct tri_view tri_view_cols(struct tri_view v, int64_t begin, int64_t count)
{
    assert(v.num_dims == 2 && begin >= 0 && count >= 0 && begin + count <= v.dim[1]);
    v.data = advance(v, begin);
    v.dim[1] = count;
    return v;
}

struct tri_view tri_view_heads(struct tri_view v, int64_t num_heads)
{
    assert(v.num_dims == 2 && v.dim[1] % num_heads == 0);
    int64_t head = v.dim[1] / num_heads;
    v.num_dims = 3;
    v.dim[1] = num_heads;
    v.dim[2] = head;
    v.stride[1] = head;
    v.stride[2] = 1;
    return v;
}

struct tri_view tri_view_none(void)
{
    return (struct tri_view){0};
}

int64_t tri_view_count(struct tri_view v)
{
    int64_t n = 1;
    for (int i = 0; i < v.num_dims; i++)
        n *= v.dim[i];
    return n;
}

size_t tri_view_bytes(struct tri_view v)
{
    return (size_t)tri_view_count(v) * tri_dtype_bytes(v.dtype);
}

bool tri_view_contiguous(struct tri_view v)
{
    int64_t expected = 1;
    for (int i = v.num_dims - 1; i >= 0; i--) {
        if (v.dim[i] > 1 && v.stride[i] != expected)
            return false;
        expected *= v.dim[i];
    }
    return true;
}

bool tri_view_same_shape(struct tri_view a, struct tri_view b)
{
    if (a.num_dims != b.num_dims)
        return false;
    for (int i = 0; i < a.num_dims; i++)
        if (a.dim[i] != b.dim[i])
            return false;
    return true;
}
