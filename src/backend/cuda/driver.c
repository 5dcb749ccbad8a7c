#include "backend/cuda/driver.h"

#include <cuda_runtime_api.h>

static enum tri_status entry(const char *name, unsigned version, void **out)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t code =
        cudaGetDriverEntryPointByVersion(name, out, version, cudaEnableDefault, &found);
    if (code != cudaSuccess || found != cudaDriverEntryPointSuccess)
        return tri_fail(TRI_DEVICE, "the CUDA driver has no %s: update the NVIDIA driver", name);
    return TRI_OK;
}

enum tri_status tri_cuda_driver_open(struct tri_cuda_driver *out)
{
    TRI_TRY(entry("cuMemAddressReserve", 10020, (void **)&out->address_reserve));
    TRI_TRY(entry("cuMemAddressFree", 10020, (void **)&out->address_free));
    TRI_TRY(entry("cuMemCreate", 10020, (void **)&out->create));
    TRI_TRY(entry("cuMemRelease", 10020, (void **)&out->release));
    TRI_TRY(entry("cuMemMap", 10020, (void **)&out->map));
    TRI_TRY(entry("cuMemUnmap", 10020, (void **)&out->unmap));
    TRI_TRY(entry("cuMemSetAccess", 10020, (void **)&out->set_access));
    TRI_TRY(entry("cuMemGetAllocationGranularity", 10020, (void **)&out->granularity));
    return entry("cuGetErrorString", 6000, (void **)&out->error_string);
}
