#include "base/minmax.h"
#include "cuda/card.h"

#include <stdlib.h>

#include "base/rng.h"

enum { SEED_NUMBERS = 1 << 22 };

void bench_check_cuda(cudaError_t code)
{
    bench_check(tri_cuda_check(code, "measure"));
}

void *bench_get(struct bench_card *card, size_t bytes)
{
    void *p = NULL;
    bench_check(tri_arena_alloc(card->arena, "bench", bytes, &p));
    return p;
}

static void fill_seed(struct bench_card *card)
{
    float *host = malloc(SEED_NUMBERS * sizeof *host);
    if (host == NULL)
        exit(1);
    for (int64_t i = 0; i < SEED_NUMBERS; i++)
        host[i] = (float)tri_rng_normal(3, 0, (uint64_t)i);
    card->seed = tri_view1(bench_get(card, SEED_NUMBERS * sizeof *host), TRI_F32, SEED_NUMBERS);
    bench_check(card->backend->ops.upload(card->backend->stream, card->seed, host));
    bench_check(card->backend->ops.sync(card->backend->stream));
    free(host);
}

void bench_card_open(const struct tri_cuda_config *config, size_t bytes, struct bench_card *out)
{
    bench_check(tri_cuda_open(config, &out->backend));
    bench_check(tri_arena_open(out->backend->memory, bytes, &out->arena));
    bench_check_cuda(cudaEventCreate(&out->begin));
    bench_check_cuda(cudaEventCreate(&out->end));
    fill_seed(out);
}

void bench_card_close(struct bench_card *card)
{
    bench_check_cuda(cudaEventDestroy(card->begin));
    bench_check_cuda(cudaEventDestroy(card->end));
    tri_arena_close(card->arena);
    tri_cuda_close(card->backend);
}

/* The seed again and again. */
static struct tri_view numbers(struct bench_card *card, struct tri_view v)
{
    v.data = bench_get(card, tri_view_bytes(v));
    int64_t count = tri_view_count(v);
    size_t width = tri_dtype_bytes(v.dtype);
    for (int64_t i = 0; i < count; i += SEED_NUMBERS) {
        int64_t n = tri_min(count - i, SEED_NUMBERS);
        bench_check(card->backend->ops.copy(
            card->backend->stream, tri_view1((char *)v.data + (size_t)i * width, v.dtype, n),
            tri_view_rows(card->seed, 0, n)));
    }
    return v;
}

struct tri_view bench_numbers1(struct bench_card *card, enum tri_dtype dtype, int64_t n)
{
    return numbers(card, tri_view1(NULL, dtype, n));
}

struct tri_view bench_numbers2(struct bench_card *card, enum tri_dtype dtype, int64_t rows,
                               int64_t cols)
{
    return numbers(card, tri_view2(NULL, dtype, rows, cols));
}

struct tri_view bench_numbers3(struct bench_card *card, enum tri_dtype dtype, int64_t d0,
                               int64_t d1, int64_t d2)
{
    return numbers(card, tri_view3(NULL, dtype, d0, d1, d2));
}

double bench_time(struct bench_card *card, int warm_ups, int calls,
                  enum tri_status (*run)(const struct tri_ops *ops, struct tri_stream *s,
                                         const void *ctx),
                  const void *ctx)
{
    double seconds[BENCH_MAX_CALLS];
    const struct tri_ops *ops = &card->backend->ops;
    struct tri_stream *s = card->backend->stream;
    for (int i = 0; i < warm_ups; i++)
        bench_check(run(ops, s, ctx));
    for (int i = 0; i < calls; i++) {
        float ms;
        bench_check_cuda(cudaEventRecord(card->begin, s->stream));
        bench_check(run(ops, s, ctx));
        bench_check_cuda(cudaEventRecord(card->end, s->stream));
        bench_check_cuda(cudaEventSynchronize(card->end));
        bench_check_cuda(cudaEventElapsedTime(&ms, card->begin, card->end));
        seconds[i] = ms * 1e-3;
    }
    return bench_median(seconds, calls);
}
