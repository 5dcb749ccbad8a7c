/* Shared libraries that are found at run time: cuBLASLt, cuDNN and NCCL.
 *
 * Search order: the path in an environment variable, the nvidia packages in the site-packages
 * folders of the Python installations in reach (newer than what systems carry, and what PyTorch is
 * tested with), the loader's usual names, CUDA's own folders. Version and path of what was loaded
 * go to people through `trireme info`. */
#ifndef TRI_BACKEND_CUDA_LIBRARIES_H
#define TRI_BACKEND_CUDA_LIBRARIES_H

#include "backend/cuda/cuda.h"

/* Open the library; `found` receives path or problem (not the version: only the library's own
 * functions know it). Handles stay open until the process ends: the libraries register things that
 * do not survive dlclose. Returns NULL when not found. */
void *tri_library_open_cublaslt(struct tri_cuda_library *found);
void *tri_library_open_cudnn(struct tri_cuda_library *found);
void *tri_library_open_nccl(struct tri_cuda_library *found);

/* Look up a function into *(function pointer *)out. False, with `found->problem` set, when absent.
 */
bool tri_library_symbol(void *handle, const char *name, void *out, struct tri_cuda_library *found);

#endif
