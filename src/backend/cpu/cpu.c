/* Opening the CPU backend: which kernels, how many threads. */
#include "backend/cpu/cpu.h"

#include <cblas.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/blas_room.h"
#include "backend/cpu/stream.h"
#include "base/log.h"
#include "base/threads.h"

static bool can_run(enum tri_cpu_kernels kernels)
{
    switch (kernels) {
    case TRI_CPU_AUTO:
    case TRI_CPU_REFERENCE:
    case TRI_CPU_GENERIC:
        return true;
    case TRI_CPU_AVX2:
#if defined(__x86_64__)
        return tri_simd_avx2 != NULL && __builtin_cpu_supports("avx2") &&
               __builtin_cpu_supports("fma");
#else
        return false;
#endif
    case TRI_CPU_AVX512:
#if defined(__x86_64__)
        return tri_simd_avx512 != NULL && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
#else
        return false;
#endif
    }
    return false;
}

static const char *kernels_name(enum tri_cpu_kernels kernels)
{
    static const char *const names[] = {[TRI_CPU_AUTO] = "auto",
                                        [TRI_CPU_REFERENCE] = "reference",
                                        [TRI_CPU_GENERIC] = "generic",
                                        [TRI_CPU_AVX2] = "avx2",
                                        [TRI_CPU_AVX512] = "avx512"};
    return names[kernels];
}

static const struct tri_simd *kernels_table(enum tri_cpu_kernels kernels)
{
    switch (kernels) {
    case TRI_CPU_AVX512:
        return tri_simd_avx512;
    case TRI_CPU_AVX2:
        return tri_simd_avx2;
    default:
        return tri_simd_generic;
    }
}

/* Resolve "auto" by the environment, then by what the processor has. */
static enum tri_status choose_kernels(enum tri_cpu_kernels wanted, enum tri_cpu_kernels *out)
{
    const char *named = getenv("TRIREME_CPU_KERNELS");
    if (wanted == TRI_CPU_AUTO && named != NULL && named[0] != '\0') {
        for (int k = TRI_CPU_AUTO; k <= TRI_CPU_AVX512 && wanted == TRI_CPU_AUTO; k++)
            if (strcmp(named, kernels_name((enum tri_cpu_kernels)k)) == 0)
                wanted = (enum tri_cpu_kernels)k;
        if (wanted == TRI_CPU_AUTO && strcmp(named, "auto") != 0)
            return tri_fail(TRI_INVALID,
                            "TRIREME_CPU_KERNELS=%s: not one of auto, reference, generic, avx2, "
                            "avx512",
                            named);
    }
    if (wanted == TRI_CPU_AUTO) {
        wanted = can_run(TRI_CPU_AVX512) ? TRI_CPU_AVX512
                 : can_run(TRI_CPU_AVX2) ? TRI_CPU_AVX2
                                         : TRI_CPU_GENERIC;
    }
    if (!can_run(wanted))
        return tri_fail(TRI_UNSUPPORTED,
                        "this processor or build cannot run the %s kernels: choose auto or generic",
                        kernels_name(wanted));
    *out = wanted;
    return TRI_OK;
}

/* OpenBLAS falls back to kernels of 2004 on processors newer than itself, several times slower than
 * what they can do. It reads its setting when it is loaded, so all we can do is say so, once. */
static void warn_of_old_blas(enum tri_cpu_kernels kernels)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const char *core = openblas_get_corename();
    bool old = strcmp(core, "Prescott") == 0 || strcmp(core, "Core2") == 0 ||
               strcmp(core, "Nehalem") == 0 || strcmp(core, "Generic") == 0;
    if (!old || (kernels != TRI_CPU_AVX2 && kernels != TRI_CPU_AVX512))
        return;
    if (!atomic_flag_test_and_set(&said))
        tri_warn("OpenBLAS does not know this processor and uses slow %s kernels: set "
                 "OPENBLAS_CORETYPE=%s in the environment",
                 core, kernels == TRI_CPU_AVX512 ? "SkylakeX" : "Haswell");
}

/* The one place where fast kernels take over. What is not named here stays the reference. */
static void use_fast_ops(struct tri_ops *ops)
{
    tri_cpu_fast_move(ops);   /* copy, zero, add */
    tri_cpu_fast_embed(ops);  /* embed_forward, embed_backward */
    tri_cpu_fast_norm(ops);   /* norm_forward, norm_backward */
    tri_cpu_fast_linear(ops); /* linear_forward, linear_backward_x, linear_backward_w */
    tri_cpu_fast_rope(ops);   /* rope_table, rope */
    tri_cpu_fast_act(ops);    /* act_forward, act_backward */
    tri_cpu_fast_attn(ops);   /* attn_workspace, attn_forward, attn_backward */
    tri_cpu_fast_loss(ops);   /* cross_entropy */
    tri_cpu_fast_optim(ops);  /* adamw, sum_squares */
}

enum tri_status tri_cpu_open(const struct tri_cpu_config *config, struct tri_backend **out)
{
    const struct tri_cpu_config defaults = {.threads = 0, .kernels = TRI_CPU_AUTO};
    if (config == NULL)
        config = &defaults;
    if (config->threads < 0)
        return tri_fail(TRI_INVALID, "threads = %d: give 0 (all cores) or more", config->threads);

    int threads = tri_threads_wanted(config->threads);
    if (threads > TRI_CPU_MOST_THREADS)
        return tri_fail(TRI_INVALID, "%d threads are more than %d: lower %s", threads,
                        TRI_CPU_MOST_THREADS, config->threads > 0 ? "threads" : "OMP_NUM_THREADS");

    enum tri_cpu_kernels kernels = TRI_CPU_GENERIC;
    TRI_TRY(choose_kernels(config->kernels, &kernels));

    TRI_TRY(tri_blas_room_take(threads));

    struct tri_cpu *cpu = calloc(1, sizeof *cpu);
    if (cpu != NULL)
        cpu->scratch = malloc(TRI_CPU_SCRATCH * sizeof *cpu->scratch);
    if (cpu == NULL || cpu->scratch == NULL) {
        free(cpu);
        tri_blas_room_give_back(threads);
        return tri_fail(TRI_NOMEM, "cannot get %zu bytes for the CPU backend",
                        sizeof *cpu + TRI_CPU_SCRATCH * sizeof(float));
    }
    cpu->threads = threads;
    cpu->simd = kernels_table(kernels);
    cpu->stream.cpu = cpu;
    tri_cpu_reference_ops(&cpu->reference);

    cpu->backend.name = "cpu";
    cpu->backend.kernels = kernels_name(kernels);
    cpu->backend.ops = cpu->reference;
    if (kernels != TRI_CPU_REFERENCE)
        use_fast_ops(&cpu->backend.ops);
    warn_of_old_blas(kernels);
    cpu->backend.memory = &tri_host_memory;
    cpu->backend.stream = &cpu->stream;
    cpu->backend.ctx = cpu;
    *out = &cpu->backend;
    return TRI_OK;
}

void tri_cpu_close(struct tri_backend *backend)
{
    if (backend == NULL)
        return;
    struct tri_cpu *cpu = backend->ctx;
    tri_blas_room_give_back(cpu->threads);
    free(cpu->scratch);
    free(cpu);
}
