/* Descriptions of memory that somebody else owns: element type, shape, strides.
 *
 * Letters, used everywhere: S tokens of the whole sequence, T tokens here, E hidden size,
 * Hq/Hk query and key/value heads, D head size, F MLP width, V vocabulary, L layers. */
#ifndef TRI_TENSOR_VIEW_H
#define TRI_TENSOR_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trireme/tensor.h"

enum { TRI_MAX_DIMS = 3 };

/* `num_dims` is 1 to 3. Strides count elements; the last one is always 1. An absent tensor has
 * data == NULL. */
struct tri_view {
    void *data;
    enum tri_dtype dtype;
    int num_dims;
    int64_t dim[TRI_MAX_DIMS];
    int64_t stride[TRI_MAX_DIMS];
};

/* Contiguous views of memory. */
struct tri_view tri_view1(void *data, enum tri_dtype dtype, int64_t n);
struct tri_view tri_view2(void *data, enum tri_dtype dtype, int64_t rows, int64_t cols);
struct tri_view tri_view3(void *data, enum tri_dtype dtype, int64_t d0, int64_t d1, int64_t d2);

/* Rows [begin, begin + count) of a view (of its first dimension). */
struct tri_view tri_view_rows(struct tri_view v, int64_t begin, int64_t count);

/* Columns [begin, begin + count) of a 2-D view; keeps the row stride. */
struct tri_view tri_view_cols(struct tri_view v, int64_t begin, int64_t count);

/* A (T, H*D) view seen as (T, H, D); keeps the row stride. */
struct tri_view tri_view_heads(struct tri_view v, int64_t num_heads);

/* No tensor. */
struct tri_view tri_view_none(void);

static inline bool tri_view_present(struct tri_view v)
{
    return v.data != NULL;
}

/* Number of elements, and their bytes were they contiguous. */
int64_t tri_view_count(struct tri_view v);
size_t tri_view_bytes(struct tri_view v);

/* Whether the elements follow each other without gaps. */
bool tri_view_contiguous(struct tri_view v);

/* Whether two views have the same shape. */
bool tri_view_same_shape(struct tri_view a, struct tri_view b);

#endif
