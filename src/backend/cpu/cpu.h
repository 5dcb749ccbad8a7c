/* The CPU backend. Float32 tensors take the fast kernels, float64 ones the reference kernels. */
#ifndef TRI_BACKEND_CPU_CPU_H
#define TRI_BACKEND_CPU_CPU_H

#include "backend/backend.h"

enum tri_cpu_kernels {
    TRI_CPU_AUTO,      /* the best this processor has */
    TRI_CPU_REFERENCE, /* the oracle, for tests and proofs */
    TRI_CPU_GENERIC,   /* fast structure, no vector intrinsics */
    TRI_CPU_AVX2,
    TRI_CPU_AVX512,
};

enum { TRI_CPU_MOST_THREADS = 4096 }; /* more are refused */

struct tri_cpu_config {
    int threads; /* 0: all cores (OMP_NUM_THREADS is honoured) */
    enum tri_cpu_kernels kernels;
};

/* `config` NULL: defaults. A kernel set that this processor cannot run is TRI_UNSUPPORTED.
 * The environment variable TRIREME_CPU_KERNELS (reference, generic, avx2, avx512) overrides auto.
 */
enum tri_status tri_cpu_open(const struct tri_cpu_config *config, struct tri_backend **out);
void tri_cpu_close(struct tri_backend *backend);

/* The plain kernels: every entry, any floating dtype, arithmetic in float64. One thread. */
void tri_cpu_reference_ops(struct tri_ops *ops);

#endif
