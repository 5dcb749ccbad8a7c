#include "backend/cuda/memory.h"

#include <cuda_runtime_api.h>
#include <string.h>

#include "base/text.h"

/* Memory is mapped in steps of this size where there is room: fewer driver calls, a shorter list of
 * mappings. Near the end of the card's memory exactly what was asked for is mapped. */
enum { MAP_STEP = 64 << 20 };

static const char *reason(const struct tri_device_memory *memory, CUresult code)
{
    const char *text = NULL;
    return memory->driver->error_string(code, &text) == CUDA_SUCCESS && text != NULL
               ? text
               : "unknown driver error";
}

static CUmemAllocationProp properties(int device)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    return prop;
}

static struct tri_device_range *find(struct tri_device_memory *memory, CUdeviceptr base)
{
    for (int i = 0; i < TRI_CUDA_MAX_RANGES; i++)
        if (memory->ranges[i].base == base)
            return &memory->ranges[i];
    return NULL;
}

static enum tri_status device_reserve(void *ctx, size_t bytes, void **base)
{
    struct tri_device_memory *memory = ctx;
    struct tri_device_range *range = find(memory, 0);
    if (range == NULL)
        return tri_fail(TRI_INTERNAL, "more than %d device arenas", TRI_CUDA_MAX_RANGES);
    CUdeviceptr address = 0;
    size_t reserved = tri_round_up(bytes, memory->granularity);
    CUresult code = memory->driver->address_reserve(&address, reserved, 0, 0, 0);
    if (code != CUDA_SUCCESS)
        return tri_fail(TRI_DEVICE, "cannot reserve %s of device addresses: %s",
                        tri_bytes((double)bytes).s, reason(memory, code));
    *range = (struct tri_device_range){.base = address, .reserved = reserved, .committed = 0};
    *base = (void *)(uintptr_t)address;
    return TRI_OK;
}

/* Map `bytes` at `address`. The mapping keeps the memory alive, so its handle is dropped at once.
 */
static CUresult map(struct tri_device_memory *memory, CUdeviceptr address, size_t bytes)
{
    const struct tri_cuda_driver *driver = memory->driver;
    CUmemAllocationProp prop = properties(memory->device);
    CUmemGenericAllocationHandle handle;
    CUresult code = driver->create(&handle, bytes, &prop, 0);
    if (code != CUDA_SUCCESS)
        return code;
    code = driver->map(address, bytes, 0, handle, 0);
    driver->release(handle);
    if (code != CUDA_SUCCESS)
        return code;
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    code = driver->set_access(address, bytes, &access, 1);
    if (code != CUDA_SUCCESS)
        driver->unmap(address, bytes);
    return code;
}

static enum tri_status device_commit(void *ctx, void *base, size_t from, size_t to)
{
    (void)from; /* `committed` knows better: steps are larger than what was asked for */
    struct tri_device_memory *memory = ctx;
    struct tri_device_range *range = find(memory, (CUdeviceptr)(uintptr_t)base);
    if (range == NULL)
        return tri_fail(TRI_INTERNAL, "commit to a device range that is not reserved");
    if (to <= range->committed)
        return TRI_OK;
    size_t exact = tri_round_up(to - range->committed, memory->granularity);
    size_t generous = range->reserved - range->committed;
    if (generous > tri_round_up(exact, MAP_STEP))
        generous = tri_round_up(exact, MAP_STEP);
    size_t bytes = generous;
    CUresult code = map(memory, range->base + range->committed, bytes);
    if (code == CUDA_ERROR_OUT_OF_MEMORY && exact < generous) {
        bytes = exact;
        code = map(memory, range->base + range->committed, bytes);
    }
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        size_t room = 0, total = 0;
        (void)cudaMemGetInfo(&room, &total);
        return tri_fail(
            TRI_NOMEM,
            "device memory is out: %s more asked, %s of %s are free; use a smaller chunk_size or "
            "loss_slice_gb, full activation_checkpointing, or offload",
            tri_bytes((double)exact).s, tri_bytes((double)room).s, tri_bytes((double)total).s);
    }
    if (code != CUDA_SUCCESS)
        return tri_fail(TRI_DEVICE, "cannot map %s of device memory: %s",
                        tri_bytes((double)bytes).s, reason(memory, code));
    range->committed += bytes;
    return TRI_OK;
}

static void device_release(void *ctx, void *base, size_t bytes)
{
    (void)bytes;
    struct tri_device_memory *memory = ctx;
    struct tri_device_range *range = find(memory, (CUdeviceptr)(uintptr_t)base);
    if (range == NULL)
        return;
    (void)cudaDeviceSynchronize(); /* queued work may still use the range */
    if (range->committed > 0)
        memory->driver->unmap(range->base, range->committed);
    memory->driver->address_free(range->base, range->reserved);
    *range = (struct tri_device_range){.base = 0};
}

enum tri_status tri_device_memory_init(struct tri_device_memory *state,
                                       const struct tri_cuda_driver *driver, int device,
                                       struct tri_memory *out)
{
    *state = (struct tri_device_memory){.driver = driver, .device = device};
    CUmemAllocationProp prop = properties(device);
    CUresult code =
        driver->granularity(&state->granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (code != CUDA_SUCCESS)
        return tri_fail(TRI_DEVICE, "card %d has no virtual memory management: %s", device,
                        reason(state, code));
    *out = (struct tri_memory){.name = "device",
                               .ctx = state,
                               .reserve = device_reserve,
                               .commit = device_commit,
                               .release = device_release};
    return TRI_OK;
}
