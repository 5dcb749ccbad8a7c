/* Descriptions of memory that somebody else owns: element type, shape, strides.
 *
 * Nothing here allocates or copies. On the CPU `data` is host memory, with the CUDA backend it is
 * memory of the card, unless a function says host memory. */
#ifndef TRIREME_TENSOR_H
#define TRIREME_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tri_dtype { TRI_F32, TRI_BF16, TRI_F16, TRI_F64, TRI_I32, TRI_I64, TRI_U8 };

/* Bytes of one element. */
size_t tri_dtype_bytes(enum tri_dtype dtype);

/* "float32", "bfloat16", ...: the names PyTorch uses. */
const char *tri_dtype_name(enum tri_dtype dtype);

enum { TRI_TENSOR_DIMS = 6 };

/* Strides count elements and may be anything. An absent tensor has data == NULL and no
 * dimensions. */
struct tri_tensor {
    void *data;
    enum tri_dtype dtype;
    int num_dims; /* 1 to TRI_TENSOR_DIMS */
    int64_t dim[TRI_TENSOR_DIMS];
    int64_t stride[TRI_TENSOR_DIMS];
};

/* No tensor: for what may be left out. */
struct tri_tensor tri_tensor_none(void);

/* A tensor without gaps, the last dimension innermost. `dim` has num_dims sizes. */
struct tri_tensor tri_tensor_make(void *data, enum tri_dtype dtype, int num_dims,
                                  const int64_t *dim);

/* Indices [begin, begin + count) of dimension `d`. */
struct tri_tensor tri_tensor_slice(struct tri_tensor t, int d, int64_t begin, int64_t count);

/* The same memory with two dimensions in each other's place: a (S, B, H, D) tensor becomes
 * (B, S, H, D) by tri_tensor_swap(t, 0, 1). */
struct tri_tensor tri_tensor_swap(struct tri_tensor t, int a, int b);

/* Number of elements. */
int64_t tri_tensor_count(const struct tri_tensor *t);

#ifdef __cplusplus
}
#endif

#endif
