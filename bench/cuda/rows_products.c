/* Products against a large square one, and attention. */
#include <math.h>
#include <stdio.h>

#include "base/minmax.h"
#include "cuda/table.h"

enum { PRODUCT_TOKENS = 16384, ATTENTION_TOKENS = 8192 };

static enum tri_status run_linear_forward(const struct tri_ops *ops, struct tri_stream *s,
                                          const struct bench_call *c)
{
    return ops->linear_forward(s, false, c->v[0], c->v[1], c->v[2], tri_view_none());
}

static enum tri_status run_linear_backward_x(const struct tri_ops *ops, struct tri_stream *s,
                                             const struct bench_call *c)
{
    return ops->linear_backward_x(s, c->flag, c->v[1], c->v[0], c->v[2]);
}

static enum tri_status run_linear_backward_w(const struct tri_ops *ops, struct tri_stream *s,
                                             const struct bench_call *c)
{
    return ops->linear_backward_w(s, c->v[3], tri_view_none(), c->v[0], c->v[1]);
}

/* The three products of one linear layer, (tokens, k) by (n, k). */
static void linear(struct bench_table *b, const char *what, int64_t tokens, int64_t n, int64_t k)
{
    char name[64];
    size_t mark = tri_arena_mark(b->card.arena);
    double flop = 2.0 * (double)tokens * (double)n * (double)k;
    struct bench_call c = {.v = {bench_numbers2(&b->card, TRI_BF16, tokens, n),
                                 bench_numbers2(&b->card, TRI_BF16, tokens, k),
                                 bench_numbers2(&b->card, TRI_BF16, n, k),
                                 bench_numbers2(&b->card, TRI_F32, n, k)}};
    static const struct {
        const char *name;
        enum tri_status (*run)(const struct tri_ops *, struct tri_stream *,
                               const struct bench_call *);
    } products[] = {{"forward", run_linear_forward},
                    {"backward x", run_linear_backward_x},
                    {"backward w", run_linear_backward_w}};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "product %s %s", what, products[i].name);
        c.run = products[i].run;
        bench_product_row(b, name, flop, &c);
    }
    tri_arena_release(b->card.arena, mark);
}

void bench_products(struct bench_table *b)
{
    size_t mark = tri_arena_mark(b->card.arena);
    struct bench_call c = {.run = run_linear_forward,
                           .v = {bench_numbers2(&b->card, TRI_BF16, 8192, 8192),
                                 bench_numbers2(&b->card, TRI_BF16, 8192, 8192),
                                 bench_numbers2(&b->card, TRI_BF16, 8192, 8192)}};
    double flop = 2.0 * 8192.0 * 8192.0 * 8192.0;
    b->product_roof = flop / bench_seconds(b, &c);
    printf("%-44s %9.3f ms %8.1f TFLOP/s\n", "roof: product 8192^3", flop / b->product_roof * 1e3,
           b->product_roof * 1e-12);
    tri_arena_release(b->card.arena, mark);
    linear(b, "q,k,v", PRODUCT_TOKENS, BENCH_HIDDEN + 2 * BENCH_KV_HEADS * BENCH_HEAD_SIZE,
           BENCH_HIDDEN);
    linear(b, "attention out", PRODUCT_TOKENS, BENCH_HIDDEN, BENCH_HIDDEN);
    linear(b, "gate and up", PRODUCT_TOKENS, 2 * BENCH_MLP, BENCH_HIDDEN);
    linear(b, "down", PRODUCT_TOKENS, BENCH_HIDDEN, BENCH_MLP);
    linear(b, "head", BENCH_LOGIT_ROWS, BENCH_VOCABULARY, BENCH_HIDDEN);
}

static enum tri_status run_attn_forward(const struct tri_ops *ops, struct tri_stream *s,
                                        const struct bench_call *c)
{
    return ops->attn_forward(s, &c->attn, c->v[0], c->v[1], c->v[2], c->v[3], c->v[4],
                             c->workspace);
}

static enum tri_status run_attn_backward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct bench_call *c)
{
    return ops->attn_backward(s, &c->attn, false, c->v[5], c->v[6], c->v[7], c->v[8], c->v[2],
                              c->v[3], c->v[4], c->v[0], c->v[1], c->workspace);
}

void bench_attention(struct bench_table *b)
{
    int64_t t = ATTENTION_TOKENS, documents[] = {0, t};
    struct tri_view q = bench_numbers3(&b->card, TRI_BF16, t, BENCH_HEADS, BENCH_HEAD_SIZE);
    struct tri_view k = bench_numbers3(&b->card, TRI_BF16, t, BENCH_KV_HEADS, BENCH_HEAD_SIZE);
    struct tri_view v = bench_numbers3(&b->card, TRI_BF16, t, BENCH_KV_HEADS, BENCH_HEAD_SIZE);
    struct bench_call c = {
        .run = run_attn_forward,
        .v = {bench_numbers3(&b->card, TRI_BF16, t, BENCH_HEADS, BENCH_HEAD_SIZE),
              bench_numbers2(&b->card, TRI_F32, t, BENCH_HEADS), q, k, v,
              bench_numbers3(&b->card, TRI_BF16, t, BENCH_HEADS, BENCH_HEAD_SIZE),
              bench_numbers3(&b->card, TRI_F32, t, BENCH_KV_HEADS, BENCH_HEAD_SIZE),
              bench_numbers3(&b->card, TRI_F32, t, BENCH_KV_HEADS, BENCH_HEAD_SIZE),
              bench_numbers3(&b->card, TRI_BF16, t, BENCH_HEADS, BENCH_HEAD_SIZE)},
        .attn = {
            .scale = 1 / sqrt((double)BENCH_HEAD_SIZE), .doc_begin = documents, .num_docs = 1}};
    const struct tri_ops *ops = &b->card.backend->ops;
    size_t forward = ops->attn_workspace(b->card.backend->stream, &c.attn, false, q, k);
    size_t backward = ops->attn_workspace(b->card.backend->stream, &c.attn, true, q, k);
    c.workspace = bench_get(&b->card, tri_max_size(forward, backward));
    double flop =
        2.0 * (double)t * (double)t * BENCH_HEAD_SIZE * BENCH_HEADS; /* causal: half of 4 T^2 D H */
    int calls = b->calls;
    b->calls = 5;
    bench_product_row(b, "attention forward, 8K causal 32/8 heads", flop, &c);
    c.run = run_attn_backward;
    bench_product_row(b, "attention backward, 8K causal 32/8 heads", 2.5 * flop, &c);
    b->calls = calls;
}
