/* The halves of tri_cuda_probe. */
#ifndef TRI_BACKEND_CUDA_PROBE_H
#define TRI_BACKEND_CUDA_PROBE_H

#include "backend/cuda/cuda.h"

/* Everything but the libraries and the free memory: cheap, and touches no card's memory. */
void tri_cuda_probe_card(int device, struct tri_cuda_info *out);

/* The libraries: found, version, path or problem. Works without a card. */
void tri_cuda_probe_libraries(struct tri_cuda_info *out);

#endif
