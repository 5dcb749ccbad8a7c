#include "comm/reduce.h"

#include <string.h>

#include "base/minmax.h"

/* Elements reduced at a time: the sums of a block stay in the nearest cache, and `into` is written
 * only after every source was read. */
enum { BLOCK = 512 };

static void reduce_f32(float *sum, const float *from, int64_t n, enum tri_reduction reduction)
{
    for (int64_t i = 0; i < n; i++)
        if (reduction == TRI_SUM)
            sum[i] += from[i];
        else if (reduction == TRI_MIN ? from[i] < sum[i] : from[i] > sum[i])
            sum[i] = from[i];
}

static void reduce_f64(double *sum, const double *from, int64_t n, enum tri_reduction reduction)
{
    for (int64_t i = 0; i < n; i++)
        if (reduction == TRI_SUM)
            sum[i] += from[i];
        else if (reduction == TRI_MIN ? from[i] < sum[i] : from[i] > sum[i])
            sum[i] = from[i];
}

static void reduce_i64(int64_t *sum, const int64_t *from, int64_t n, enum tri_reduction reduction)
{
    for (int64_t i = 0; i < n; i++)
        if (reduction == TRI_SUM)
            sum[i] += from[i];
        else if (reduction == TRI_MIN ? from[i] < sum[i] : from[i] > sum[i])
            sum[i] = from[i];
}

void tri_reduce(void *into, const void *const *sources, int count, int64_t n, enum tri_dtype dtype,
                enum tri_reduction reduction)
{
    union {
        float f[BLOCK];
        double d[BLOCK];
        int64_t i[BLOCK];
    } sum;
    size_t size = tri_dtype_bytes(dtype);
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t some = tri_min(n - begin, BLOCK);
        size_t offset = (size_t)begin * size;
        memcpy(&sum, (const char *)sources[0] + offset, (size_t)some * size);
        for (int k = 1; k < count; k++) {
            const void *from = (const char *)sources[k] + offset;
            if (dtype == TRI_F32)
                reduce_f32(sum.f, from, some, reduction);
            else if (dtype == TRI_F64)
                reduce_f64(sum.d, from, some, reduction);
            else
                reduce_i64(sum.i, from, some, reduction);
        }
        memcpy((char *)into + offset, &sum, (size_t)some * size);
    }
}

void tri_block_copy(const struct tri_block *to, const struct tri_block *from)
{
    if (to->stride == to->row_bytes && from->stride == from->row_bytes) {
        memcpy(to->data, from->data, (size_t)to->rows * to->row_bytes);
        return;
    }
    for (int64_t i = 0; i < to->rows; i++)
        memcpy((char *)to->data + (size_t)i * to->stride,
               (const char *)from->data + (size_t)i * from->stride, to->row_bytes);
}
