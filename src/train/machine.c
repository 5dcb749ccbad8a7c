#include "train/machine.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/cpu/blas_room.h"
#include "backend/cpu/cpu.h"
#include "backend/cuda/cuda.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"

static enum tri_status open_cpu(const struct tri_pass_options *options, struct tri_backend **out)
{
    static const char *const names[] = {"auto", "reference", "generic", "avx2", "avx512"};
    struct tri_cpu_config config = {.threads = (int)options->threads, .kernels = TRI_CPU_AUTO};
    for (int i = 0; i < 5; i++)
        if (options->cpu_kernels != NULL && strcmp(options->cpu_kernels, names[i]) == 0)
            config.kernels = (enum tri_cpu_kernels)i;
    return tri_cpu_open(&config, out);
}

enum tri_status tri_machine_open(const struct tri_pass_options *options, struct tri_backend **out)
{
    const char *name = options->backend != NULL ? options->backend : "auto";
    if (strcmp(name, "cuda") == 0 || (strcmp(name, "auto") == 0 && tri_cuda_available()))
        return tri_cuda_open(NULL, out);
    return open_cpu(options, out);
}

void tri_machine_close(struct tri_backend *backend)
{
    if (backend == NULL)
        return;
    if (strcmp(backend->name, "cuda") == 0)
        tri_cuda_close(backend);
    else
        tri_cpu_close(backend);
}

enum tri_status tri_machine_dtype(const struct tri_backend *backend, const char *name,
                                  enum tri_dtype *out)
{
    bool cuda = strcmp(backend->name, "cuda") == 0;
    if (name == NULL || strcmp(name, "auto") == 0) {
        *out = cuda ? TRI_BF16 : TRI_F32;
        return TRI_OK;
    }
    if (strcmp(name, "float32") == 0)
        *out = TRI_F32;
    else if (strcmp(name, "bfloat16") == 0 && cuda)
        *out = TRI_BF16;
    else if (strcmp(name, "float64") == 0 && !cuda)
        *out = TRI_F64;
    else
        return tri_fail(TRI_UNSUPPORTED,
                        "model.dtype: %s cannot be trained on the %s backend; set model.dtype: %s",
                        name, backend->name,
                        cuda ? "bfloat16 or float32, or backend: cpu" : "float32");
    return TRI_OK;
}

/* A number from a one-line file of the kernel; SIZE_MAX if it is not there or says "max". */
static size_t read_limit(const char *path)
{
    unsigned long long value = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return SIZE_MAX;
    int found = fscanf(file, "%llu", &value);
    fclose(file);
    return found == 1 ? (size_t)value : SIZE_MAX;
}

static size_t available_memory(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    if (file == NULL)
        return SIZE_MAX;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    fclose(file);
    return kib > 0 ? (size_t)kib * 1024 : SIZE_MAX;
}

/* What `ulimit -v` leaves; threads and libraries want some of it too. */
static size_t addresses_left(void)
{
    struct rlimit limit;
    unsigned long long pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    size_t used =
        (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) + ((size_t)64 << 20) + tri_blas_room_bytes();
    return (size_t)limit.rlim_cur > used ? ((size_t)limit.rlim_cur - used) / 8 * 7 : 0;
}

size_t tri_machine_host_bytes(void)
{
    size_t bytes = available_memory();
    size_t most = read_limit("/sys/fs/cgroup/memory.max");
    size_t now = read_limit("/sys/fs/cgroup/memory.current");
    if (most != SIZE_MAX && now != SIZE_MAX) {
        size_t left = most > now ? most - now : 0;
        bytes = left < bytes ? left : bytes;
    }
    size_t addresses = addresses_left();
    if (addresses < bytes)
        bytes = addresses;
    return bytes;
}

/* What libraries take of a card when they are first used: kernels, workspaces, NCCL's buffers and
 * the slots of its exchange. 0.5 GiB was seen on one H200, 0.9 GiB a card on two. */
static const size_t LIBRARY_BYTES = (size_t)1 << 30;

size_t tri_machine_capacity(const struct tri_backend *backend,
                            const struct tri_pass_options *options)
{
    if (options->memory_limit_gb > 0) /* 2^46 bytes of addresses are all there are to reserve */
        return (size_t)fmin(options->memory_limit_gb * 0x1p30, 0x1p46);
    if (strcmp(backend->name, "cuda") != 0)
        return tri_machine_host_bytes();
    struct tri_cuda_info info;
    tri_cuda_probe(tri_cuda_card(), &info);
    return info.memory_free > LIBRARY_BYTES ? info.memory_free - LIBRARY_BYTES : 0;
}

size_t tri_machine_peak_rss(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (size_t)usage.ru_maxrss * 1024;
}

size_t tri_machine_peak(const struct tri_backend *backend, const struct tri_arena *arena)
{
    return strcmp(backend->name, "cuda") == 0 ? tri_arena_committed(arena) : tri_machine_peak_rss();
}

/* m = random numbers: a few rows of them again and again. A card multiplies zeros faster than
 * numbers, because it draws less power for them. */
static enum tri_status fill(struct tri_backend *backend, struct tri_arena *arena, struct tri_view m)
{
    enum { ROWS = 8 };
    const struct tri_ops *ops = &backend->ops;
    struct tri_view few = tri_view2(NULL, TRI_F32, ROWS, m.dim[1]);
    size_t mark = tri_arena_mark(arena), bytes = tri_view_bytes(few);
    float *host = malloc(bytes);
    if (host == NULL)
        return tri_fail(TRI_NOMEM, "no memory for %d rows of numbers", ROWS);
    for (int64_t i = 0; i < ROWS * m.dim[1]; i++)
        host[i] = (float)tri_rng_normal(1, 0, (uint64_t)i);
    enum tri_status st;
    TRI_TRY_GOTO(st, tri_arena_alloc(arena, "roof", bytes, &few.data), free_host);
    TRI_TRY_GOTO(st, ops->upload(backend->stream, few, host), free_host);
    TRI_TRY_GOTO(st, ops->copy(backend->stream, tri_view_rows(m, 0, ROWS), few), free_host);
    for (int64_t rows = ROWS; rows < m.dim[0]; rows *= 2)
        TRI_TRY_GOTO(
            st, ops->copy(backend->stream, tri_view_rows(m, rows, rows), tri_view_rows(m, 0, rows)),
            free_host);
    st = ops->sync(backend->stream);
free_host:
    tri_arena_release(arena, mark);
    free(host);
    return st;
}

enum tri_status tri_machine_measure_roof(struct tri_backend *backend, enum tri_dtype act,
                                         double seconds, double *flops)
{
    const int64_t n = act == TRI_BF16 ? 8192 : 1024; /* powers of two */
    struct tri_arena *arena;
    size_t bytes = (size_t)(n * n) * tri_dtype_bytes(act);
    TRI_TRY(tri_arena_open(backend->memory, 4 * (bytes + TRI_ARENA_ALIGN), &arena));
    struct tri_view m[3];
    enum tri_status st = TRI_OK;
    for (int i = 0; i < 3; i++) {
        m[i] = tri_view2(NULL, act, n, n);
        TRI_TRY_GOTO(st, tri_arena_alloc(arena, "roof", bytes, &m[i].data), close_arena);
        TRI_TRY_GOTO(st, fill(backend, arena, m[i]), close_arena);
    }
    double best = 0;
    double start = tri_clock();
    for (int i = 0; i < 3 || tri_clock() - start < seconds; i++) {
        double before = tri_clock();
        TRI_TRY_GOTO(
            st,
            backend->ops.linear_forward(backend->stream, false, m[0], m[1], m[2], tri_view_none()),
            close_arena);
        TRI_TRY_GOTO(st, backend->ops.sync(backend->stream), close_arena);
        double rate = 2.0 * (double)n * (double)n * (double)n / (tri_clock() - before);
        best = rate > best ? rate : best;
    }
    *flops = best;
close_arena:
    tri_arena_close(arena);
    return st;
}
