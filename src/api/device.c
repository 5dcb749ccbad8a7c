#include "api/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "train/machine.h"

static enum tri_status open_backend(const struct tri_device_config *config,
                                    const struct tri_pass_options *options,
                                    struct tri_backend **out)
{
    if (config->threads < 0)
        return tri_fail(TRI_INVALID, "%d threads: 0 means all cores", config->threads);
    if (strcmp(options->backend, "cuda") == 0) {
        struct tri_cuda_config cuda = {.device = config->card > 0 ? config->card : tri_cuda_card()};
        TRI_TRY(tri_cuda_open(&cuda, out));
        if (config->cuda_stream == NULL)
            return TRI_OK;
        enum tri_status st = tri_cuda_stream_adopt((*out)->stream, config->cuda_stream);
        if (st != TRI_OK)
            tri_cuda_close(*out);
        return st;
    }
    if (strcmp(options->backend, "cpu") != 0)
        return tri_fail(TRI_UNSUPPORTED, "there is no backend \"%.40s\": cpu or cuda",
                        options->backend);
    if (config->cuda_stream != NULL)
        return tri_fail(TRI_INVALID, "a CUDA stream was given to the CPU backend: ask for \"cuda\" "
                                     "or leave the stream out");
    static const char *const kernels[] = {"auto", "reference", "generic", "avx2", "avx512"};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(options->cpu_kernels, kernels[i]) == 0)
            return tri_machine_open(options, out);
    return tri_fail(TRI_INVALID,
                    "there are no CPU kernels \"%s\": auto, reference, generic, avx2 or avx512",
                    options->cpu_kernels);
}

enum tri_status tri_device_open(const struct tri_device_config *config, struct tri_device **out)
{
    static const struct tri_device_config defaults;
    enum tri_status st;
    void *scalar;
    if (config == NULL)
        config = &defaults;
    char backend[16], kernels[16];
    snprintf(backend, sizeof backend, "%s", config->backend != NULL ? config->backend : "cpu");
    snprintf(kernels, sizeof kernels, "%s",
             config->cpu_kernels != NULL ? config->cpu_kernels : "auto");
    struct tri_pass_options options = {
        .backend = backend, .cpu_kernels = kernels, .threads = config->threads};
    struct tri_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a device");
    TRI_TRY_GOTO(st, open_backend(config, &options, &device->backend), free_device);
    struct tri_backend *b = device->backend;
    device->is_host = strcmp(b->name, "cpu") == 0;
    device->exec = (struct tri_exec){.backend = b, .ops = &b->ops, .stream = b->stream};
    size_t bytes =
        config->scratch_bytes > 0 ? config->scratch_bytes : tri_machine_capacity(b, &options);
    TRI_TRY_GOTO(st, tri_arena_open(b->memory, bytes, &device->exec.arena), close_backend);
    TRI_TRY_GOTO(st, tri_arena_alloc(device->exec.arena, "a number", sizeof(double), &scalar),
                 close_arena);
    device->scalar = scalar;
    *out = device;
    return TRI_OK;

close_arena:
    tri_arena_close(device->exec.arena);
close_backend:
    tri_machine_close(device->backend);
free_device:
    free(device);
    return st;
}

void tri_device_close(struct tri_device *device)
{
    if (device == NULL)
        return;
    tri_arena_close(device->exec.arena);
    tri_machine_close(device->backend);
    free(device);
}

enum tri_status tri_device_sync(struct tri_device *device)
{
    return device->exec.ops->sync(device->exec.stream);
}

size_t tri_device_scratch_peak(const struct tri_device *device)
{
    return tri_arena_peak(device->exec.arena);
}

enum tri_status tri_device_scratch(struct tri_device *device, const char *name,
                                   enum tri_dtype dtype, int64_t rows, int64_t cols,
                                   struct tri_view *out)
{
    return tri_exec_scratch(&device->exec, name, dtype, rows, cols, out);
}
