/* How a step is computed: nothing here changes the numbers, only memory and time. */
#ifndef TRI_PASS_OPTIONS_H
#define TRI_PASS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

/* What a layer keeps for its backward. */
enum tri_remat {
    TRI_REMAT_FULL,      /* its input; everything else is computed again */
    TRI_REMAT_SELECTIVE, /* also q, k, v, the attention output, and the input of the MLP */
    TRI_REMAT_NONE,      /* also the MLP's first product */
};

struct tri_pass_options {
    char *backend;                /* auto, cpu, cuda */
    char *cpu_kernels;            /* auto, reference, generic, avx2, avx512 */
    int64_t threads;              /* 0: all cores */
    int activation_checkpointing; /* enum tri_remat; full */
    bool fpdt_enabled;            /* fpdt.enabled: what the recipe says; chunk_size decides */
    int64_t chunk_size;           /* fpdt.chunk_size: tokens of a chunk, 0: the whole sequence */
    bool tiled_mlp_compute;       /* true */
    int64_t tiled_mlp_num_shards; /* 0: ceil(T / E) */
    double loss_slice_gb;         /* most GiB of logits at once; 0: 1/16 on the CPU, 1 on CUDA */
    double memory_limit_gb;       /* 0: what the machine has */
    bool deterministic;           /* equal runs give equal bits, on CUDA too */
};

extern const struct tri_option_table tri_pass_option_table;

#endif
