/* A card to measure on: its backend, memory with numbers in it, and events to time calls with. */
#ifndef BENCH_CUDA_CARD_H
#define BENCH_CUDA_CARD_H

#include "backend/cuda/context.h"
#include "backend/cuda/cuda.h"
#include "base/arena.h"
#include "common.h"

struct bench_card {
    struct tri_backend *backend;
    struct tri_arena *arena;
    struct tri_view seed; /* normal numbers, float32 */
    cudaEvent_t begin, end;
};

/* `bytes`: what the arena may take at most. */
void bench_card_open(const struct tri_cuda_config *config, size_t bytes, struct bench_card *out);
void bench_card_close(struct bench_card *card);

void bench_check_cuda(cudaError_t code);

/* From the arena: the caller releases it by a mark. */
void *bench_get(struct bench_card *card, size_t bytes);

/* Tensors of normal numbers. */
struct tri_view bench_numbers1(struct bench_card *card, enum tri_dtype dtype, int64_t n);
struct tri_view bench_numbers2(struct bench_card *card, enum tri_dtype dtype, int64_t rows,
                               int64_t cols);
struct tri_view bench_numbers3(struct bench_card *card, enum tri_dtype dtype, int64_t d0,
                               int64_t d1, int64_t d2);

/* Median seconds of `calls` calls of run(ops, stream, ctx) after `warm_ups` that are not timed;
 * events lie around each. */
enum { BENCH_MAX_CALLS = 64 };
double bench_time(struct bench_card *card, int warm_ups, int calls,
                  enum tri_status (*run)(const struct tri_ops *ops, struct tri_stream *s,
                                         const void *ctx),
                  const void *ctx);

#endif
