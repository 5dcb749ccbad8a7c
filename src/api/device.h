/* Private to api: a device, and the public tensors as the views that the inside works on. */
#ifndef TRI_API_DEVICE_H
#define TRI_API_DEVICE_H

#include "backend/backend.h"
#include "base/arena.h"
#include "trireme/device.h"
#include "trireme/tensor.h"

struct tri_device {
    struct tri_backend *backend;
    struct tri_exec exec;
    bool is_host;   /* backend memory is host memory */
    double *scalar; /* one double in backend memory */
};

/* Scratch from the device's arena, (rows, cols) of `dtype`. Callers mark and release. */
enum tri_status tri_device_scratch(struct tri_device *device, const char *name,
                                   enum tri_dtype dtype, int64_t rows, int64_t cols,
                                   struct tri_view *out);

/* dst = src for tensors of equal shape with at most 4 dimensions and any strides. */
enum tri_status tri_device_copy(struct tri_device *device, struct tri_tensor dst,
                                struct tri_tensor src);

/* A tensor as a matrix of its last dimension: the tensor itself where memory allows, else scratch
 * that is filled from it when `read` is set. An absent tensor gives no view. */
struct tri_matrix {
    struct tri_view view; /* (rows, cols) */
    struct tri_tensor home;
    bool staged;
};
enum tri_status tri_device_matrix(struct tri_device *device, const char *name, struct tri_tensor t,
                                  bool read, struct tri_matrix *out);
/* Bring what was written back to where the tensor lies. */
enum tri_status tri_device_matrix_done(struct tri_device *device, const struct tri_matrix *m);

/* A tensor with contiguous rows as a view of one or two dimensions: for parameters. Absent gives no
 * view; anything else is TRI_INVALID and named. */
enum tri_status tri_device_param(const char *name, struct tri_tensor t, struct tri_view *out);

#endif
