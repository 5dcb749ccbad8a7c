/* Compiled in place of this folder when the build has no CUDA. */
#include "backend/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

static const char why[] =
    "this program was built without CUDA: install the CUDA toolkit (nvcc) and "
    "configure with -DTRIREME_CUDA=ON, or use backend: cpu";

int tri_cuda_num_cards(void)
{
    return 0;
}

int tri_cuda_card(void)
{
    return 0;
}

enum tri_status tri_cuda_choose_card(int device)
{
    (void)device;
    return tri_fail(TRI_UNSUPPORTED, "%s", why);
}

enum tri_status tri_cuda_open(const struct tri_cuda_config *config, struct tri_backend **out)
{
    (void)config;
    (void)out;
    return tri_fail(TRI_UNSUPPORTED, "%s", why);
}

void tri_cuda_close(struct tri_backend *backend)
{
    (void)backend;
}

struct tri_stream *tri_cuda_stream(struct tri_backend *backend, enum tri_cuda_stream which)
{
    (void)which;
    return backend->stream;
}

enum tri_status tri_cuda_stream_adopt(struct tri_stream *s, void *cuda_stream)
{
    (void)s;
    (void)cuda_stream;
    return tri_fail(TRI_UNSUPPORTED, "%s", why);
}

enum tri_status tri_cuda_stream_wait(struct tri_stream *waiter, struct tri_stream *other)
{
    (void)waiter;
    (void)other;
    return tri_fail(TRI_UNSUPPORTED, "%s", why);
}

void tri_cuda_probe(int device, struct tri_cuda_info *out)
{
    (void)device;
    memset(out, 0, sizeof *out);
    snprintf(out->problem, sizeof out->problem, "%s", why);
}

bool tri_cuda_available(void)
{
    return false;
}
