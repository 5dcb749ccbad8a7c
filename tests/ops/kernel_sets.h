/* The sets of kernels that the CPU backend has. */
#ifndef TESTS_OPS_KERNEL_SETS_H
#define TESTS_OPS_KERNEL_SETS_H

#include "backend/cpu/cpu.h"

/* A backend of one set, from TRI_CPU_REFERENCE to TRI_CPU_AVX512; NULL, and a message, where this
 * machine cannot run it. The caller closes it by tri_cpu_close. */
struct tri_backend *tri_test_open_kernels(enum tri_cpu_kernels kernels, int threads);

#endif
