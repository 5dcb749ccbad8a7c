/* Ops of a step outside its layers, and the copy that every op bound by memory is held against. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "cuda/table.h"

enum { PARAMETERS = 1 << 27 };

static enum tri_status run_memcpy(const struct tri_ops *ops, struct tri_stream *s,
                                  const struct bench_call *c)
{
    (void)ops;
    return tri_cuda_check(cudaMemcpyAsync(c->v[0].data, c->v[1].data, tri_view_bytes(c->v[0]),
                                          cudaMemcpyDeviceToDevice, s->stream),
                          "copy");
}

void bench_copy_roof(struct bench_table *b)
{
    size_t mark = tri_arena_mark(b->card.arena);
    int64_t n = INT64_C(1) << 29;
    struct bench_call c = {
        .run = run_memcpy,
        .v = {bench_numbers1(&b->card, TRI_F32, n), bench_numbers1(&b->card, TRI_F32, n)}};
    double t = bench_seconds(b, &c), bytes = 8.0 * (double)n;
    b->copy_roof = bytes / t;
    printf("%-44s %9.3f ms %8.0f GB/s\n", "roof: device copy of 2 GiB, read + written", t * 1e3,
           b->copy_roof * 1e-9);
    tri_arena_release(b->card.arena, mark);
}

static enum tri_status run_copy(const struct tri_ops *ops, struct tri_stream *s,
                                const struct bench_call *c)
{
    return ops->copy(s, c->v[0], c->v[1]);
}

static enum tri_status run_add(const struct tri_ops *ops, struct tri_stream *s,
                               const struct bench_call *c)
{
    return ops->add(s, c->v[0], c->v[1]);
}

static enum tri_status run_zero(const struct tri_ops *ops, struct tri_stream *s,
                                const struct bench_call *c)
{
    return ops->zero(s, c->v[0]);
}

void bench_moves(struct bench_table *b)
{
    int64_t n = (int64_t)BENCH_TOKENS * BENCH_HIDDEN * 2;
    double count = (double)n;
    struct tri_view half = bench_numbers1(&b->card, TRI_BF16, n),
                    half2 = bench_numbers1(&b->card, TRI_BF16, n);
    struct tri_view full = bench_numbers1(&b->card, TRI_F32, n),
                    full2 = bench_numbers1(&b->card, TRI_F32, n);
    bench_row(b, "copy bf16", 4 * count, &(struct bench_call){.run = run_copy, .v = {half, half2}});
    bench_row(b, "copy f32 to bf16", 6 * count,
              &(struct bench_call){.run = run_copy, .v = {half, full}});
    bench_row(b, "copy bf16 to f32", 6 * count,
              &(struct bench_call){.run = run_copy, .v = {full, half}});
    bench_row(b, "add bf16 += bf16", 6 * count,
              &(struct bench_call){.run = run_add, .v = {half, half2}});
    bench_row(b, "add f32 += bf16", 10 * count,
              &(struct bench_call){.run = run_add, .v = {full, half}});
    bench_row(b, "add f32 += f32", 12 * count,
              &(struct bench_call){.run = run_add, .v = {full, full2}});
    bench_row(b, "zero f32 (writes alone)", 4 * count,
              &(struct bench_call){.run = run_zero, .v = {full}});
    struct tri_view wide = tri_view2(half.data, TRI_BF16, BENCH_TOKENS, 2 * BENCH_HIDDEN);
    struct tri_view cols = tri_view_cols(wide, BENCH_HIDDEN, BENCH_HIDDEN);
    struct tri_view rows = tri_view2(half2.data, TRI_BF16, BENCH_TOKENS, BENCH_HIDDEN);
    bench_row(b, "copy bf16, columns of a wider matrix", 2 * count,
              &(struct bench_call){.run = run_copy, .v = {rows, cols}});
}

/* Token ids or labels in [0, limit); returns how many different ones there are. */
static int64_t random_ids(struct bench_table *b, int64_t count, int64_t limit, int32_t **out)
{
    int32_t *host = malloc((size_t)count * sizeof *host);
    char *seen = calloc((size_t)limit, 1);
    int64_t different = 0;
    if (host == NULL || seen == NULL)
        exit(1);
    for (int64_t i = 0; i < count; i++) {
        host[i] = (int32_t)(tri_rng_uniform(5, 0, (uint64_t)i) * (double)limit);
        different += seen[host[i]] == 0;
        seen[host[i]] = 1;
    }
    *out = bench_get(&b->card, (size_t)count * sizeof *host);
    bench_check(b->card.backend->ops.upload(b->card.backend->stream,
                                            tri_view1(*out, TRI_I32, count), host));
    bench_check(b->card.backend->ops.sync(b->card.backend->stream));
    free(host);
    free(seen);
    return different;
}

static enum tri_status run_embed_forward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct bench_call *c)
{
    return ops->embed_forward(s, c->v[0], c->ids, c->v[1]);
}

static enum tri_status run_embed_backward(const struct tri_ops *ops, struct tri_stream *s,
                                          const struct bench_call *c)
{
    return ops->embed_backward(s, c->v[0], c->ids, c->v[1]);
}

void bench_embeddings(struct bench_table *b)
{
    double bytes = (double)BENCH_TOKENS * BENCH_HIDDEN * 2;
    struct bench_call c = {
        .run = run_embed_forward,
        .v = {bench_numbers2(&b->card, TRI_BF16, BENCH_TOKENS, BENCH_HIDDEN),
              bench_numbers2(&b->card, TRI_BF16, BENCH_VOCABULARY, BENCH_HIDDEN)}};
    int64_t different = random_ids(b, BENCH_TOKENS, BENCH_VOCABULARY, &c.ids);
    bench_row(b, "embed forward", 2 * bytes, &c);
    struct bench_call back = {
        .run = run_embed_backward,
        .v = {bench_numbers2(&b->card, TRI_F32, BENCH_VOCABULARY, BENCH_HIDDEN), c.v[0]},
        .ids = c.ids};
    bench_row(b, "embed backward", bytes + 8.0 * (double)different * BENCH_HIDDEN, &back);
}

static enum tri_status run_cross_entropy(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct bench_call *c)
{
    return ops->cross_entropy(s, c->flag, 1e-4, c->loss, c->v[0], c->ids);
}

void bench_losses(struct bench_table *b)
{
    double count = (double)BENCH_LOGIT_ROWS * BENCH_VOCABULARY;
    for (int f32 = 0; f32 < 2; f32++) {
        size_t mark = tri_arena_mark(b->card.arena);
        struct bench_call c = {.run = run_cross_entropy,
                               .v = {bench_numbers2(&b->card, f32 ? TRI_F32 : TRI_BF16,
                                                    BENCH_LOGIT_ROWS, BENCH_VOCABULARY)},
                               .loss = bench_get(&b->card, sizeof(double))};
        random_ids(b, BENCH_LOGIT_ROWS, BENCH_VOCABULARY, &c.ids);
        double bytes = count * (f32 ? 4 : 2);
        bench_row(b, f32 ? "cross-entropy forward, f32" : "cross-entropy forward, bf16", bytes, &c);
        c.flag = true;
        bench_row(b, f32 ? "cross-entropy with gradient, f32" : "cross-entropy with gradient, bf16",
                  2 * bytes, &c);
        tri_arena_release(b->card.arena, mark);
    }
}

static enum tri_status run_adamw(const struct tri_ops *ops, struct tri_stream *s,
                                 const struct bench_call *c)
{
    struct tri_adamw op = {1e-4, 0.9, 0.95, 1e-8, 0.1, 10, 1.0};
    return ops->adamw(s, &op, c->v[0], c->v[1], c->v[2], c->v[3], c->v[4]);
}

static enum tri_status run_sum_squares(const struct tri_ops *ops, struct tri_stream *s,
                                       const struct bench_call *c)
{
    return ops->sum_squares(s, c->loss, c->v[0]);
}

void bench_updates(struct bench_table *b)
{
    struct tri_view p = bench_numbers1(&b->card, TRI_F32, PARAMETERS),
                    m = bench_numbers1(&b->card, TRI_F32, PARAMETERS);
    struct tri_view v = bench_numbers1(&b->card, TRI_F32, PARAMETERS),
                    g = bench_numbers1(&b->card, TRI_F32, PARAMETERS);
    struct tri_view w = bench_numbers1(&b->card, TRI_BF16, PARAMETERS);
    bench_check(b->card.backend->ops.zero(b->card.backend->stream, v)); /* never negative */
    bench_row(b, "adamw, bf16 weights", 30.0 * PARAMETERS,
              &(struct bench_call){.run = run_adamw, .v = {p, m, v, w, g}});
    bench_row(b, "sum of squares f32", 4.0 * PARAMETERS,
              &(struct bench_call){
                  .run = run_sum_squares, .v = {g}, .loss = bench_get(&b->card, sizeof(double))});
}
