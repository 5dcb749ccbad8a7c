/* Ops that move more than they compute, against a copy. Work is the least traffic: what must be
 * read once and written once. (A copy's stores need not read the lines they replace, an op's do: a
 * perfect op of one read and one write reaches two thirds.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpu/bench.h"

enum { ROWS = 8192, COLS = 1024, HEAD = 64, VOCAB = 32768, LOSS_ROWS = 256 };

static struct {
    struct tri_view a, b, c, d, e; /* (ROWS, COLS) */
    struct tri_view w, dw;         /* (COLS) */
    struct tri_view table;         /* (ROWS, HEAD) */
    struct tri_view logits;        /* (LOSS_ROWS, VOCAB) */
    struct tri_view words;         /* (VOCAB, COLS) */
    int64_t pos[ROWS];
    int32_t ids[ROWS];
    double inv_freq[HEAD / 2];
    double sum;
} data;

static struct tri_view flat(struct tri_view v)
{
    return tri_view1(v.data, TRI_F32, tri_view_count(v));
}

static void add(struct tri_backend *k, void *ctx)
{
    (void)ctx;
    bench_check(k->ops.add(k->stream, data.a, data.b));
}

static void norm_forward(struct tri_backend *k, void *ctx)
{
    bench_check(k->ops.norm_forward(k->stream, ctx, data.c, data.b, data.w, tri_view_none()));
}

static void norm_backward(struct tri_backend *k, void *ctx)
{
    bench_check(k->ops.norm_backward(k->stream, ctx, false, data.c, data.dw, tri_view_none(),
                                     data.d, data.b, data.w));
}

static void rope_table(struct tri_backend *k, void *ctx)
{
    (void)ctx;
    bench_check(k->ops.rope_table(k->stream, data.table, data.pos, data.inv_freq, 1.0));
}

static void rope(struct tri_backend *k, void *ctx)
{
    (void)ctx;
    bench_check(k->ops.rope(k->stream, false, tri_view_heads(data.c, COLS / HEAD),
                            tri_view_heads(data.b, COLS / HEAD), data.table));
}

static void act_forward(struct tri_backend *k, void *ctx)
{
    bench_check(k->ops.act_forward(k->stream, *(enum tri_activation *)ctx, data.c, data.b, data.d));
}

static void act_backward(struct tri_backend *k, void *ctx)
{
    bench_check(k->ops.act_backward(k->stream, *(enum tri_activation *)ctx, data.c, data.e, data.a,
                                    data.b, data.d));
}

static void cross_entropy(struct tri_backend *k, void *ctx)
{
    (void)ctx;
    bench_check(k->ops.cross_entropy(k->stream, true, 1.0, &data.sum, data.logits, data.ids));
}

static void adamw(struct tri_backend *k, void *ctx)
{
    bench_check(k->ops.adamw(k->stream, ctx, flat(data.a), flat(data.c), flat(data.e),
                             tri_view_none(), flat(data.d)));
}

static void sum_squares(struct tri_backend *k, void *ctx)
{
    (void)ctx;
    bench_check(k->ops.sum_squares(k->stream, &data.sum, flat(data.b)));
}

static void embed_forward(struct tri_backend *k, void *ctx)
{
    (void)ctx;
    bench_check(k->ops.embed_forward(k->stream, data.c, data.ids, data.words));
}

static void embed_backward(struct tri_backend *k, void *ctx)
{
    (void)ctx;
    bench_check(k->ops.embed_backward(k->stream, data.words, data.ids, data.d));
}

static void make_data(void)
{
    data.a = bench_matrix(ROWS, COLS);
    data.b = bench_matrix(ROWS, COLS);
    data.c = tri_view2(bench_zeros((int64_t)ROWS * COLS), TRI_F32, ROWS, COLS);
    data.d = bench_matrix(ROWS, COLS);
    data.e = tri_view2(bench_zeros((int64_t)ROWS * COLS), TRI_F32, ROWS, COLS);
    data.w = tri_view1(bench_numbers(COLS), TRI_F32, COLS);
    data.dw = tri_view1(bench_zeros(COLS), TRI_F32, COLS);
    data.table = bench_matrix(ROWS, HEAD);
    data.logits = bench_matrix(LOSS_ROWS, VOCAB);
    data.words = bench_matrix(VOCAB, COLS);
    for (int i = 0; i < ROWS; i++) {
        data.pos[i] = i;
        data.ids[i] = (int32_t)((int64_t)i * 7919 % VOCAB);
    }
    for (int i = 0; i < HEAD / 2; i++)
        data.inv_freq[i] = pow(10000.0, -2.0 * i / HEAD);
}

void bench_add_memory(struct bench *b)
{
    static struct tri_norm rms = {TRI_NORM_RMS, 1e-6};
    static struct tri_norm layer = {TRI_NORM_LAYER, 1e-6};
    static struct tri_adamw adam = {
        .lr = 1e-5, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = 10, .grad_scale = 1.0};
    static enum tri_activation silu = TRI_ACT_SILU;
    static enum tri_activation gelu = TRI_ACT_GELU;
    const double one = (double)ROWS * COLS * sizeof(float); /* one pass over a tensor */
    const double loss = (double)LOSS_ROWS * VOCAB * sizeof(float);
    const struct {
        const char *name;
        double work, bound;
        void (*run)(struct tri_backend *, void *);
        void *ctx;
    } rows[] = {
        {"add", 3 * one, 0.4, add, NULL},
        {"norm forward rms", 2 * one, 0.4, norm_forward, &rms},
        {"norm backward rms", 3 * one, 0.4, norm_backward, &rms},
        {"norm forward layer", 2 * one, 0.4, norm_forward, &layer},
        {"rope", 2 * one, 0.4, rope, NULL},
        {"rope table", one * HEAD / COLS, 0, rope_table, NULL},
        {"act forward silu", 3 * one, 0.4, act_forward, &silu},
        {"act backward silu", 5 * one, 0.4, act_backward, &silu},
        {"act forward gelu", 3 * one, 0, act_forward, &gelu},
        {"act backward gelu", 5 * one, 0, act_backward, &gelu},
        {"cross entropy backward", 2 * loss, 0, cross_entropy, NULL},
        {"adamw", 7 * one, 0.4, adamw, &adam},
        {"sum of squares", one, 0.4, sum_squares, NULL},
        {"embed forward", 2 * one, 0.4, embed_forward, NULL},
        {"embed backward", 3 * one, 0.4, embed_backward, NULL},
    };
    const int count = (int)(sizeof rows / sizeof *rows);
    bool any = false;
    for (int i = 0; i < count; i++)
        any = any || bench_wants(b, rows[i].name);
    if (!any)
        return;
    make_data();
    for (int i = 0; i < count; i++)
        bench_add(b, rows[i].name, BENCH_COPY, rows[i].work, rows[i].bound, rows[i].run,
                  rows[i].ctx);
}
