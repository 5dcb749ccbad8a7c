#include "base/memory.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

static enum tri_status host_reserve(void *ctx, size_t bytes, void **base)
{
    (void)ctx;
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return tri_fail_errno(errno, "cannot reserve %zu bytes of address space", bytes);
    *base = p;
    return TRI_OK;
}

static enum tri_status host_commit(void *ctx, void *base, size_t from, size_t to)
{
    (void)ctx;
    char *start = (char *)base + from;
    if (mprotect(start, to - from, PROT_READ | PROT_WRITE) != 0)
        return tri_fail_errno(errno, "cannot get %zu more bytes of host memory", to - from);
    madvise(start, to - from, MADV_HUGEPAGE); /* only a hint: fewer page faults */
    return TRI_OK;
}

static void host_release(void *ctx, void *base, size_t bytes)
{
    (void)ctx;
    munmap(base, bytes);
}

/* Addresses that no process has: nothing is reserved, so that counting works under any limit. */
static enum tri_status counting_reserve(void *ctx, size_t bytes, void **base)
{
    (void)ctx;
    (void)bytes;
    *base = (void *)((uintptr_t)1 << 56); /* beyond what x86-64 and Arm map; aligned to anything */
    return TRI_OK;
}

static void counting_release(void *ctx, void *base, size_t bytes)
{
    (void)ctx;
    (void)base;
    (void)bytes;
}

static enum tri_status counting_commit(void *ctx, void *base, size_t from, size_t to)
{
    (void)ctx;
    (void)base;
    (void)from;
    (void)to;
    return TRI_OK;
}

const struct tri_memory tri_host_memory = {
    .name = "host", .reserve = host_reserve, .commit = host_commit, .release = host_release};

const struct tri_memory tri_counting_memory = {.name = "counting",
                                               .reserve = counting_reserve,
                                               .commit = counting_commit,
                                               .release = counting_release};
