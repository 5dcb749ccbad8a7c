/* The inside of the CPU backend: one synchronous stream, a number of threads, a kernel set. */
#ifndef TRI_BACKEND_CPU_STREAM_H
#define TRI_BACKEND_CPU_STREAM_H

#ifdef _OPENMP
#include <omp.h>
#endif

#include "backend/backend.h"
#include "backend/cpu/simd/simd.h"

/* The CPU runs at once, so a stream only says whose threads and kernels to use. */
struct tri_stream {
    struct tri_cpu *cpu;
};

/* Floats of scratch that ops may use while they run: 4 MiB, touched only as far as needed. */
enum { TRI_CPU_SCRATCH = 1 << 20 };

struct tri_cpu {
    struct tri_backend backend;
    struct tri_stream stream;
    struct tri_ops reference; /* what float64 and unusual dtypes are handed to */
    const struct tri_simd *simd;
    int threads;    /* at least 1 */
    float *scratch; /* (TRI_CPU_SCRATCH) */
};

/* Threads for `work` element visits: the caller alone or the whole team, nothing between, because
 * libgomp ends and starts threads whenever a team changes its size. */
static inline int tri_cpu_workers(const struct tri_cpu *cpu, int64_t work)
{
    return work < 65536 ? 1 : cpu->threads;
}

/* This thread's index in its team, from 0. */
static inline int tri_cpu_thread_index(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* Piece `index` of [0, count) cut into `pieces` runs of whole `grain`s. */
static inline int64_t tri_cpu_piece(int64_t count, int64_t grain, int pieces, int index)
{
    int64_t grains = (count + grain - 1) / grain;
    int64_t at = (grains * index / pieces) * grain;
    return at < count ? at : count;
}

/* Each file of ops writes its fast entries into the table. */
void tri_cpu_fast_move(struct tri_ops *ops);
void tri_cpu_fast_embed(struct tri_ops *ops);
void tri_cpu_fast_norm(struct tri_ops *ops);
void tri_cpu_fast_linear(struct tri_ops *ops);
void tri_cpu_fast_rope(struct tri_ops *ops);
void tri_cpu_fast_act(struct tri_ops *ops);
void tri_cpu_fast_loss(struct tri_ops *ops);
void tri_cpu_fast_optim(struct tri_ops *ops);
void tri_cpu_fast_attn(struct tri_ops *ops);

#endif
