#include "backend/cpu/blas_room.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* OpenBLAS takes a buffer of 128 MiB and a page for each thread that is in a product. */
static const size_t BUFFER_BYTES = (size_t)129 << 20;

static _Atomic int64_t threads_open;

static bool is_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

enum tri_status tri_blas_room_take(int threads)
{
    int64_t all = atomic_fetch_add(&threads_open, threads) + threads;
    size_t bytes = (size_t)all * BUFFER_BYTES;
    if (!is_limited())
        return TRI_OK;
    void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room != MAP_FAILED) {
        (void)munmap(room, bytes);
        return TRI_OK;
    }
    tri_blas_room_give_back(threads);
    return tri_fail(TRI_NOMEM,
                    "the limit on address space (ulimit -v) leaves no %zu MiB for OpenBLAS, which "
                    "takes 128 MiB a thread: raise it, or lower OMP_NUM_THREADS or ranks",
                    bytes >> 20);
}

void tri_blas_room_give_back(int threads)
{
    atomic_fetch_sub(&threads_open, threads);
}

size_t tri_blas_room_bytes(void)
{
    return is_limited() ? (size_t)atomic_load(&threads_open) * BUFFER_BYTES : 0;
}
