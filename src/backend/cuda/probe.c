/* What is here: driver, cards, libraries. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/probe.h"

/* Oldest card that has bfloat16 arithmetic and asynchronous copies: Ampere. */
enum { OLDEST_CAPABILITY = 80 };

void tri_cuda_probe_card(int device, struct tri_cuda_info *out)
{
    memset(out, 0, sizeof *out);
    out->built = true;
    (void)cudaRuntimeGetVersion(&out->runtime_cuda);
    (void)cudaDriverGetVersion(&out->driver_cuda);
    int need = out->runtime_cuda / 1000, have = out->driver_cuda / 1000;
    if (out->driver_cuda == 0) {
        snprintf(
            out->problem, sizeof out->problem,
            "no NVIDIA driver on this machine: install one that knows CUDA %d, or use backend: cpu",
            need);
        return;
    }
    if (have < need) {
        snprintf(out->problem, sizeof out->problem,
                 "the NVIDIA driver knows CUDA %d.%d, this program needs %d: update the driver",
                 have, out->driver_cuda % 1000 / 10, need);
        return;
    }
    cudaError_t code = cudaGetDeviceCount(&out->num_cards);
    if (code != cudaSuccess || out->num_cards == 0) {
        out->num_cards = 0;
        snprintf(out->problem, sizeof out->problem,
                 "no CUDA card is visible (%s): check nvidia-smi and CUDA_VISIBLE_DEVICES",
                 code == cudaSuccess ? "the driver lists none" : cudaGetErrorString(code));
        (void)cudaGetLastError();
        return;
    }
    struct cudaDeviceProp prop;
    if (device < 0 || device >= out->num_cards) {
        snprintf(out->problem, sizeof out->problem, "card %d was asked for, there are %d (from 0)",
                 device, out->num_cards);
        return;
    }
    code = cudaGetDeviceProperties(&prop, device);
    if (code != cudaSuccess) {
        snprintf(out->problem, sizeof out->problem, "card %d does not answer: %s", device,
                 cudaGetErrorString(code));
        (void)cudaGetLastError();
        return;
    }
    snprintf(out->card, sizeof out->card, "%s", prop.name);
    out->capability = prop.major * 10 + prop.minor;
    out->num_multiprocessors = prop.multiProcessorCount;
    out->memory_bytes = prop.totalGlobalMem;
    if (out->capability < OLDEST_CAPABILITY)
        snprintf(
            out->problem, sizeof out->problem,
            "%.100s has compute capability %d.%d; 8.0 (Ampere) or later is needed, for bfloat16",
            out->card, prop.major, prop.minor);
    else
        out->available = true;
}

bool tri_cuda_available(void)
{
    struct tri_cuda_info info;
    tri_cuda_probe_card(0, &info);
    return info.available;
}

void tri_cuda_probe(int device, struct tri_cuda_info *out)
{
    tri_cuda_probe_card(device, out);
    if (out->available && cudaSetDevice(device) == cudaSuccess) {
        size_t total;
        (void)cudaMemGetInfo(&out->memory_free, &total);
    }
    tri_cuda_probe_libraries(out);
}
