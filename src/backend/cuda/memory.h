/* Device memory for arenas: an address range that grows in place, so that nothing fragments. */
#ifndef TRI_BACKEND_CUDA_MEMORY_H
#define TRI_BACKEND_CUDA_MEMORY_H

#include "backend/cuda/driver.h"
#include "base/memory.h"

enum { TRI_CUDA_MAX_RANGES = 16 };

struct tri_device_range {
    CUdeviceptr base; /* 0: a free entry */
    size_t reserved;
    size_t committed;
};

struct tri_device_memory {
    const struct tri_cuda_driver *driver;
    int device;
    size_t granularity;
    struct tri_device_range ranges[TRI_CUDA_MAX_RANGES];
};

/* `state` must stay where it is as long as `out` is used. */
enum tri_status tri_device_memory_init(struct tri_device_memory *state,
                                       const struct tri_cuda_driver *driver, int device,
                                       struct tri_memory *out);

#endif
