/* Entry points of the CUDA driver, asked from the runtime so that libcuda needs no link. */
#ifndef TRI_BACKEND_CUDA_DRIVER_H
#define TRI_BACKEND_CUDA_DRIVER_H

#include <cuda.h>
#include <cudaTypedefs.h>

#include "base/status.h"

/* The virtual-memory API, as of CUDA 10.2. */
struct tri_cuda_driver {
    PFN_cuMemAddressReserve_v10020 address_reserve;
    PFN_cuMemAddressFree_v10020 address_free;
    PFN_cuMemCreate_v10020 create;
    PFN_cuMemRelease_v10020 release;
    PFN_cuMemMap_v10020 map;
    PFN_cuMemUnmap_v10020 unmap;
    PFN_cuMemSetAccess_v10020 set_access;
    PFN_cuMemGetAllocationGranularity_v10020 granularity;
    PFN_cuGetErrorString_v6000 error_string;
};

enum tri_status tri_cuda_driver_open(struct tri_cuda_driver *out);

#endif
