/* Speed of the CUDA backend: `make bench-gpu`.
 *
 * Every kernel that is bound by memory is held against a device-to-device copy timed in the same
 * run, every product against a large square one. Sizes are those of an 8B Llama, several times the
 * L2 cache. A rate is the median of the timed calls, events around each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "backend/cuda/context.h"
#include "backend/cuda/cuda.h"
#include "base/arena.h"
#include "base/rng.h"

enum {
    TOKENS = 65536,
    HIDDEN = 4096,
    HEADS = 32,
    KV_HEADS = 8,
    HEAD_SIZE = 128,
    MLP = 14336,
    MLP_TOKENS = 16384,
    VOCABULARY = 128256,
    LOGIT_ROWS = 4096,
    PARAMETERS = 1 << 27,
    PRODUCT_TOKENS = 16384,
    ATTENTION_TOKENS = 8192,
    SEED_NUMBERS = 1 << 22,
    WARM_UPS = 3,
    MAX_CALLS = 64,
};

struct bench {
    struct tri_backend *backend;
    struct tri_arena *arena;
    struct tri_view seed; /* SEED_NUMBERS normal numbers, float32 */
    cudaEvent_t begin, end;
    const char *only; /* rows whose name holds it, or NULL */
    int calls;
    double copy_roof, product_roof;
    int failures; /* rows under their bound */
};

static void check(enum tri_status status)
{
    if (status != TRI_OK) {
        fprintf(stderr, "bench_cuda: %s\n", tri_error_text());
        exit(1);
    }
}

static void check_cuda(cudaError_t code)
{
    check(tri_cuda_check(code, "time a kernel"));
}

static void *get(struct bench *b, size_t bytes)
{
    void *p = NULL;
    check(tri_arena_alloc(b->arena, "bench", bytes, &p));
    return p;
}

/* A tensor of normal numbers: the seed again and again. */
static struct tri_view numbers(struct bench *b, struct tri_view v)
{
    v.data = get(b, tri_view_bytes(v));
    int64_t count = tri_view_count(v);
    size_t width = tri_dtype_bytes(v.dtype);
    for (int64_t i = 0; i < count; i += SEED_NUMBERS) {
        int64_t n = count - i < SEED_NUMBERS ? count - i : SEED_NUMBERS;
        check(b->backend->ops.copy(b->backend->stream,
                                   tri_view1((char *)v.data + (size_t)i * width, v.dtype, n),
                                   tri_view_rows(b->seed, 0, n)));
    }
    return v;
}

static struct tri_view numbers1(struct bench *b, enum tri_dtype dtype, int64_t n)
{
    return numbers(b, tri_view1(NULL, dtype, n));
}

static struct tri_view numbers2(struct bench *b, enum tri_dtype dtype, int64_t rows, int64_t cols)
{
    return numbers(b, tri_view2(NULL, dtype, rows, cols));
}

static struct tri_view numbers3(struct bench *b, enum tri_dtype dtype, int64_t d0, int64_t d1,
                                int64_t d2)
{
    return numbers(b, tri_view3(NULL, dtype, d0, d1, d2));
}

/* Token ids or labels in [0, limit); returns how many different ones there are. */
static int64_t random_ids(struct bench *b, int64_t count, int64_t limit, int32_t **out)
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
    *out = get(b, (size_t)count * sizeof *host);
    check(b->backend->ops.upload(b->backend->stream, tri_view1(*out, TRI_I32, count), host));
    check(b->backend->ops.sync(b->backend->stream));
    free(host);
    free(seen);
    return different;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

struct call {
    enum tri_status (*run)(const struct tri_ops *ops, struct tri_stream *s, const struct call *c);
    struct tri_view v[9];
    int32_t *ids;
    double *loss;
    void *workspace;
    struct tri_attn attn;
    bool flag;
};

/* Median seconds of a call. */
static double seconds(struct bench *b, const struct call *c)
{
    float ms[MAX_CALLS];
    struct tri_stream *s = b->backend->stream;
    for (int i = 0; i < WARM_UPS; i++)
        check(c->run(&b->backend->ops, s, c));
    for (int i = 0; i < b->calls; i++) {
        check_cuda(cudaEventRecord(b->begin, s->stream));
        check(c->run(&b->backend->ops, s, c));
        check_cuda(cudaEventRecord(b->end, s->stream));
        check_cuda(cudaEventSynchronize(b->end));
        check_cuda(cudaEventElapsedTime(&ms[i], b->begin, b->end));
    }
    qsort(ms, (size_t)b->calls, sizeof ms[0], by_value);
    return ms[b->calls / 2] * 1e-3;
}

static bool wanted(const struct bench *b, const char *name)
{
    return b->only == NULL || strstr(name, b->only) != NULL;
}

/* A row that is bound by memory; at least 80 % of the copy is asked. */
static void row(struct bench *b, const char *name, double bytes, const struct call *c)
{
    if (!wanted(b, name))
        return;
    double t = seconds(b, c), rate = bytes / t, share = rate / b->copy_roof;
    bool low = share < 0.8;
    b->failures += low;
    printf("%-44s %9.3f ms %8.0f GB/s  %5.1f %% of copy%s\n", name, t * 1e3, rate * 1e-9,
           share * 100, low ? "  LOW" : "");
    fflush(stdout);
}

static void product_row(struct bench *b, const char *name, double flop, const struct call *c)
{
    if (!wanted(b, name))
        return;
    double t = seconds(b, c);
    printf("%-44s %9.3f ms %8.1f TFLOP/s", name, t * 1e3, flop / t * 1e-12);
    if (b->product_roof > 0)
        printf("  %5.1f %% of 8192^3", flop / t / b->product_roof * 100);
    printf("\n");
    fflush(stdout);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static enum tri_status run_memcpy(const struct tri_ops *ops, struct tri_stream *s,
                                  const struct call *c)
{
    (void)ops;
    return tri_cuda_check(cudaMemcpyAsync(c->v[0].data, c->v[1].data, tri_view_bytes(c->v[0]),
                                          cudaMemcpyDeviceToDevice, s->stream),
                          "copy");
}

static enum tri_status run_copy(const struct tri_ops *ops, struct tri_stream *s,
                                const struct call *c)
{
    return ops->copy(s, c->v[0], c->v[1]);
}

static enum tri_status run_add(const struct tri_ops *ops, struct tri_stream *s,
                               const struct call *c)
{
    return ops->add(s, c->v[0], c->v[1]);
}

static enum tri_status run_zero(const struct tri_ops *ops, struct tri_stream *s,
                                const struct call *c)
{
    return ops->zero(s, c->v[0]);
}

static enum tri_status run_embed_forward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct call *c)
{
    return ops->embed_forward(s, c->v[0], c->ids, c->v[1]);
}

static enum tri_status run_embed_backward(const struct tri_ops *ops, struct tri_stream *s,
                                          const struct call *c)
{
    return ops->embed_backward(s, c->v[0], c->ids, c->v[1]);
}

static const struct tri_norm rms = {TRI_NORM_RMS, 1e-5}, layer = {TRI_NORM_LAYER, 1e-5};

static enum tri_status run_norm_forward(const struct tri_ops *ops, struct tri_stream *s,
                                        const struct call *c)
{
    return ops->norm_forward(s, tri_view_present(c->v[3]) ? &layer : &rms, c->v[0], c->v[1],
                             c->v[2], c->v[3]);
}

static enum tri_status run_norm_backward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct call *c)
{
    return ops->norm_backward(s, tri_view_present(c->v[2]) ? &layer : &rms, c->flag, c->v[0],
                              c->v[1], c->v[2], c->v[3], c->v[4], c->v[5]);
}

static enum tri_status run_rope(const struct tri_ops *ops, struct tri_stream *s,
                                const struct call *c)
{
    return ops->rope(s, c->flag, c->v[0], c->v[1], c->v[2]);
}

static enum tri_status run_silu_forward(const struct tri_ops *ops, struct tri_stream *s,
                                        const struct call *c)
{
    return ops->act_forward(s, TRI_ACT_SILU, c->v[0], c->v[1], c->v[2]);
}

static enum tri_status run_silu_backward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct call *c)
{
    return ops->act_backward(s, TRI_ACT_SILU, c->v[0], c->v[1], c->v[2], c->v[3], c->v[4]);
}

static enum tri_status run_gelu_forward(const struct tri_ops *ops, struct tri_stream *s,
                                        const struct call *c)
{
    return ops->act_forward(s, TRI_ACT_GELU_TANH, c->v[0], c->v[1], tri_view_none());
}

static enum tri_status run_gelu_backward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct call *c)
{
    return ops->act_backward(s, TRI_ACT_GELU_TANH, c->v[0], tri_view_none(), c->v[1], c->v[2],
                             tri_view_none());
}

static enum tri_status run_cross_entropy(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct call *c)
{
    return ops->cross_entropy(s, c->flag, 1e-4, c->loss, c->v[0], c->ids);
}

static enum tri_status run_adamw(const struct tri_ops *ops, struct tri_stream *s,
                                 const struct call *c)
{
    struct tri_adamw op = {1e-4, 0.9, 0.95, 1e-8, 0.1, 10, 1.0};
    return ops->adamw(s, &op, c->v[0], c->v[1], c->v[2], c->v[3], c->v[4]);
}

static enum tri_status run_sum_squares(const struct tri_ops *ops, struct tri_stream *s,
                                       const struct call *c)
{
    return ops->sum_squares(s, c->loss, c->v[0]);
}

static enum tri_status run_column_sums(const struct tri_ops *ops, struct tri_stream *s,
                                       const struct call *c)
{
    (void)ops;
    return tri_cuda_check(tri_kernel_column_sums(tri_cuda_launch(s), c->v[0], c->v[1]),
                          "sum columns");
}

static enum tri_status run_linear_forward(const struct tri_ops *ops, struct tri_stream *s,
                                          const struct call *c)
{
    return ops->linear_forward(s, false, c->v[0], c->v[1], c->v[2], tri_view_none());
}

static enum tri_status run_linear_backward_x(const struct tri_ops *ops, struct tri_stream *s,
                                             const struct call *c)
{
    return ops->linear_backward_x(s, c->flag, c->v[1], c->v[0], c->v[2]);
}

static enum tri_status run_linear_backward_w(const struct tri_ops *ops, struct tri_stream *s,
                                             const struct call *c)
{
    return ops->linear_backward_w(s, c->v[3], tri_view_none(), c->v[0], c->v[1]);
}

static enum tri_status run_attn_forward(const struct tri_ops *ops, struct tri_stream *s,
                                        const struct call *c)
{
    return ops->attn_forward(s, &c->attn, c->v[0], c->v[1], c->v[2], c->v[3], c->v[4],
                             c->workspace);
}

static enum tri_status run_attn_backward(const struct tri_ops *ops, struct tri_stream *s,
                                         const struct call *c)
{
    return ops->attn_backward(s, &c->attn, false, c->v[5], c->v[6], c->v[7], c->v[8], c->v[2],
                              c->v[3], c->v[4], c->v[0], c->v[1], c->workspace);
}

/* ---- the rows -------------------------------------------------------------------------------- */

static void measure_copy_roof(struct bench *b)
{
    size_t mark = tri_arena_mark(b->arena);
    int64_t n = INT64_C(1) << 29;
    struct call c = {.run = run_memcpy, .v = {numbers1(b, TRI_F32, n), numbers1(b, TRI_F32, n)}};
    double t = seconds(b, &c), bytes = 8.0 * (double)n;
    b->copy_roof = bytes / t;
    printf("%-44s %9.3f ms %8.0f GB/s\n", "roof: device copy of 2 GiB, read + written", t * 1e3,
           b->copy_roof * 1e-9);
    tri_arena_release(b->arena, mark);
}

static void moves(struct bench *b)
{
    int64_t n = (int64_t)TOKENS * HIDDEN * 2;
    double count = (double)n;
    struct tri_view half = numbers1(b, TRI_BF16, n), half2 = numbers1(b, TRI_BF16, n);
    struct tri_view full = numbers1(b, TRI_F32, n), full2 = numbers1(b, TRI_F32, n);
    row(b, "copy bf16", 4 * count, &(struct call){.run = run_copy, .v = {half, half2}});
    row(b, "copy f32 to bf16", 6 * count, &(struct call){.run = run_copy, .v = {half, full}});
    row(b, "copy bf16 to f32", 6 * count, &(struct call){.run = run_copy, .v = {full, half}});
    row(b, "add bf16 += bf16", 6 * count, &(struct call){.run = run_add, .v = {half, half2}});
    row(b, "add f32 += bf16", 10 * count, &(struct call){.run = run_add, .v = {full, half}});
    row(b, "add f32 += f32", 12 * count, &(struct call){.run = run_add, .v = {full, full2}});
    row(b, "zero f32 (writes alone)", 4 * count, &(struct call){.run = run_zero, .v = {full}});
    struct tri_view wide = tri_view2(half.data, TRI_BF16, TOKENS, 2 * HIDDEN);
    struct tri_view cols = tri_view_cols(wide, HIDDEN, HIDDEN);
    struct tri_view rows = tri_view2(half2.data, TRI_BF16, TOKENS, HIDDEN);
    row(b, "copy bf16, columns of a wider matrix", 2 * count,
        &(struct call){.run = run_copy, .v = {rows, cols}});
}

static void embeddings(struct bench *b)
{
    double bytes = (double)TOKENS * HIDDEN * 2;
    struct call c = {
        .run = run_embed_forward,
        .v = {numbers2(b, TRI_BF16, TOKENS, HIDDEN), numbers2(b, TRI_BF16, VOCABULARY, HIDDEN)}};
    int64_t different = random_ids(b, TOKENS, VOCABULARY, &c.ids);
    row(b, "embed forward", 2 * bytes, &c);
    struct call back = {.run = run_embed_backward,
                        .v = {numbers2(b, TRI_F32, VOCABULARY, HIDDEN), c.v[0]},
                        .ids = c.ids};
    row(b, "embed backward", bytes + 8.0 * (double)different * HIDDEN, &back);
}

static void norms(struct bench *b)
{
    double bytes = (double)TOKENS * HIDDEN * 2;
    struct tri_view x = numbers2(b, TRI_BF16, TOKENS, HIDDEN),
                    y = numbers2(b, TRI_BF16, TOKENS, HIDDEN);
    struct tri_view dx = numbers2(b, TRI_BF16, TOKENS, HIDDEN), none = tri_view_none();
    struct tri_view w = numbers1(b, TRI_BF16, HIDDEN), bias = numbers1(b, TRI_BF16, HIDDEN);
    struct tri_view dw = numbers1(b, TRI_F32, HIDDEN), db = numbers1(b, TRI_F32, HIDDEN);
    row(b, "rmsnorm forward", 2 * bytes,
        &(struct call){.run = run_norm_forward, .v = {y, x, w, none}});
    row(b, "rmsnorm backward", 3 * bytes,
        &(struct call){.run = run_norm_backward, .v = {dx, dw, none, y, x, w}});
    row(b, "rmsnorm backward, dx +=", 4 * bytes,
        &(struct call){.run = run_norm_backward, .v = {dx, dw, none, y, x, w}, .flag = true});
    row(b, "layernorm forward", 2 * bytes,
        &(struct call){.run = run_norm_forward, .v = {y, x, w, bias}});
    row(b, "layernorm backward", 3 * bytes,
        &(struct call){.run = run_norm_backward, .v = {dx, dw, db, y, x, w}});
    struct tri_view w8 = numbers1(b, TRI_BF16, 2 * HIDDEN), dw8 = numbers1(b, TRI_F32, 2 * HIDDEN);
    struct tri_view x8 = tri_view2(x.data, TRI_BF16, TOKENS / 2, 2 * HIDDEN), y8 = x8, dx8 = x8;
    y8.data = y.data;
    dx8.data = dx.data;
    row(b, "rmsnorm forward, 8192 wide", 2 * bytes,
        &(struct call){.run = run_norm_forward, .v = {y8, x8, w8, none}});
    row(b, "rmsnorm backward, 8192 wide", 3 * bytes,
        &(struct call){.run = run_norm_backward, .v = {dx8, dw8, none, y8, x8, w8}});
    struct tri_view xh = tri_view_heads(x, HEADS), yh = tri_view_heads(y, HEADS);
    struct tri_view dxh = tri_view_heads(dx, HEADS), wh = numbers1(b, TRI_BF16, HEAD_SIZE);
    struct tri_view dwh = numbers1(b, TRI_F32, HEAD_SIZE);
    row(b, "qk-norm forward", 2 * bytes,
        &(struct call){.run = run_norm_forward, .v = {yh, xh, wh, none}});
    row(b, "qk-norm backward", 3 * bytes,
        &(struct call){.run = run_norm_backward, .v = {dxh, dwh, none, yh, xh, wh}});
    struct tri_view table = numbers2(b, TRI_F32, TOKENS, HEAD_SIZE);
    double table_bytes = (double)TOKENS * HEAD_SIZE * 4;
    row(b, "rope, 32 heads", 2 * bytes + table_bytes,
        &(struct call){.run = run_rope, .v = {yh, xh, table}});
    row(b, "rope backward in place", 2 * bytes + table_bytes,
        &(struct call){.run = run_rope, .v = {yh, yh, table}, .flag = true});
    struct tri_view xk = numbers3(b, TRI_BF16, TOKENS * 4, KV_HEADS, HEAD_SIZE);
    struct tri_view long_table = numbers2(b, TRI_F32, TOKENS * 4, HEAD_SIZE);
    row(b, "rope in place, 8 heads", 2 * bytes + 4 * table_bytes,
        &(struct call){.run = run_rope, .v = {xk, xk, long_table}});
    row(b, "sum of columns (bias gradient)", bytes,
        &(struct call){.run = run_column_sums, .v = {db, x}});
}

static void activations(struct bench *b)
{
    double bytes = (double)MLP_TOKENS * MLP * 2;
    struct tri_view y = numbers2(b, TRI_BF16, MLP_TOKENS, MLP),
                    g = numbers2(b, TRI_BF16, MLP_TOKENS, MLP);
    struct tri_view u = numbers2(b, TRI_BF16, MLP_TOKENS, MLP),
                    dg = numbers2(b, TRI_BF16, MLP_TOKENS, MLP);
    struct tri_view du = numbers2(b, TRI_BF16, MLP_TOKENS, MLP);
    row(b, "swiglu forward", 3 * bytes, &(struct call){.run = run_silu_forward, .v = {y, g, u}});
    row(b, "swiglu backward", 5 * bytes,
        &(struct call){.run = run_silu_backward, .v = {dg, du, y, g, u}});
    row(b, "gelu forward", 2 * bytes, &(struct call){.run = run_gelu_forward, .v = {y, g}});
    row(b, "gelu backward", 3 * bytes, &(struct call){.run = run_gelu_backward, .v = {dg, y, g}});
    /* gate and up as the two halves of one product, the usual layout */
    struct tri_view both = numbers2(b, TRI_BF16, MLP_TOKENS, 2 * MLP);
    row(b, "swiglu forward, halves of one matrix", 3 * bytes,
        &(struct call){.run = run_silu_forward,
                       .v = {y, tri_view_cols(both, 0, MLP), tri_view_cols(both, MLP, MLP)}});
}

static void losses(struct bench *b)
{
    double count = (double)LOGIT_ROWS * VOCABULARY;
    for (int f32 = 0; f32 < 2; f32++) {
        size_t mark = tri_arena_mark(b->arena);
        struct call c = {.run = run_cross_entropy,
                         .v = {numbers2(b, f32 ? TRI_F32 : TRI_BF16, LOGIT_ROWS, VOCABULARY)},
                         .loss = get(b, sizeof(double))};
        random_ids(b, LOGIT_ROWS, VOCABULARY, &c.ids);
        double bytes = count * (f32 ? 4 : 2);
        row(b, f32 ? "cross-entropy forward, f32" : "cross-entropy forward, bf16", bytes, &c);
        c.flag = true;
        row(b, f32 ? "cross-entropy with gradient, f32" : "cross-entropy with gradient, bf16",
            2 * bytes, &c);
        tri_arena_release(b->arena, mark);
    }
}

static void updates(struct bench *b)
{
    struct tri_view p = numbers1(b, TRI_F32, PARAMETERS), m = numbers1(b, TRI_F32, PARAMETERS);
    struct tri_view v = numbers1(b, TRI_F32, PARAMETERS), g = numbers1(b, TRI_F32, PARAMETERS);
    struct tri_view w = numbers1(b, TRI_BF16, PARAMETERS);
    check(b->backend->ops.zero(b->backend->stream, v)); /* never negative */
    row(b, "adamw, bf16 weights", 30.0 * PARAMETERS,
        &(struct call){.run = run_adamw, .v = {p, m, v, w, g}});
    row(b, "sum of squares f32", 4.0 * PARAMETERS,
        &(struct call){.run = run_sum_squares, .v = {g}, .loss = get(b, sizeof(double))});
}

/* The three products of one linear layer, (tokens, k) by (n, k). */
static void linear(struct bench *b, const char *what, int64_t tokens, int64_t n, int64_t k)
{
    char name[64];
    size_t mark = tri_arena_mark(b->arena);
    double flop = 2.0 * (double)tokens * (double)n * (double)k;
    struct call c = {.v = {numbers2(b, TRI_BF16, tokens, n), numbers2(b, TRI_BF16, tokens, k),
                           numbers2(b, TRI_BF16, n, k), numbers2(b, TRI_F32, n, k)}};
    static const struct {
        const char *name;
        enum tri_status (*run)(const struct tri_ops *, struct tri_stream *, const struct call *);
    } products[] = {{"forward", run_linear_forward},
                    {"backward x", run_linear_backward_x},
                    {"backward w", run_linear_backward_w}};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "product %s %s", what, products[i].name);
        c.run = products[i].run;
        product_row(b, name, flop, &c);
    }
    tri_arena_release(b->arena, mark);
}

static void products(struct bench *b)
{
    size_t mark = tri_arena_mark(b->arena);
    struct call c = {.run = run_linear_forward,
                     .v = {numbers2(b, TRI_BF16, 8192, 8192), numbers2(b, TRI_BF16, 8192, 8192),
                           numbers2(b, TRI_BF16, 8192, 8192)}};
    double flop = 2.0 * 8192.0 * 8192.0 * 8192.0;
    b->product_roof = flop / seconds(b, &c);
    printf("%-44s %9.3f ms %8.1f TFLOP/s\n", "roof: product 8192^3", flop / b->product_roof * 1e3,
           b->product_roof * 1e-12);
    tri_arena_release(b->arena, mark);
    linear(b, "q,k,v", PRODUCT_TOKENS, HIDDEN + 2 * KV_HEADS * HEAD_SIZE, HIDDEN);
    linear(b, "attention out", PRODUCT_TOKENS, HIDDEN, HIDDEN);
    linear(b, "gate and up", PRODUCT_TOKENS, 2 * MLP, HIDDEN);
    linear(b, "down", PRODUCT_TOKENS, HIDDEN, MLP);
    linear(b, "head", LOGIT_ROWS, VOCABULARY, HIDDEN);
}

static void attention(struct bench *b)
{
    int64_t t = ATTENTION_TOKENS, documents[] = {0, t};
    struct tri_view q = numbers3(b, TRI_BF16, t, HEADS, HEAD_SIZE);
    struct tri_view k = numbers3(b, TRI_BF16, t, KV_HEADS, HEAD_SIZE);
    struct tri_view v = numbers3(b, TRI_BF16, t, KV_HEADS, HEAD_SIZE);
    struct call c = {
        .run = run_attn_forward,
        .v = {numbers3(b, TRI_BF16, t, HEADS, HEAD_SIZE), numbers2(b, TRI_F32, t, HEADS), q, k, v,
              numbers3(b, TRI_BF16, t, HEADS, HEAD_SIZE),
              numbers3(b, TRI_F32, t, KV_HEADS, HEAD_SIZE),
              numbers3(b, TRI_F32, t, KV_HEADS, HEAD_SIZE),
              numbers3(b, TRI_BF16, t, HEADS, HEAD_SIZE)},
        .attn = {.scale = 1 / sqrt((double)HEAD_SIZE), .doc_begin = documents, .num_docs = 1}};
    const struct tri_ops *ops = &b->backend->ops;
    size_t forward = ops->attn_workspace(b->backend->stream, &c.attn, false, q, k);
    size_t backward = ops->attn_workspace(b->backend->stream, &c.attn, true, q, k);
    c.workspace = get(b, forward > backward ? forward : backward);
    double flop = 2.0 * (double)t * (double)t * HEAD_SIZE * HEADS; /* causal: half of 4 T^2 D H */
    int calls = b->calls;
    b->calls = 5;
    product_row(b, "attention forward, 8K causal 32/8 heads", flop, &c);
    c.run = run_attn_backward;
    product_row(b, "attention backward, 8K causal 32/8 heads", 2.5 * flop, &c);
    b->calls = calls;
}

static void group(struct bench *b, void (*rows)(struct bench *b))
{
    size_t mark = tri_arena_mark(b->arena);
    rows(b);
    check(b->backend->ops.sync(b->backend->stream));
    tri_arena_release(b->arena, mark);
}

/* bench_cuda [--own] [NAME]: rows whose name holds NAME; --own leaves cuDNN and cuBLASLt out. */
int main(int argc, char **argv)
{
    struct tri_cuda_config config = {.device = 0};
    static struct bench b = {.calls = 20};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--own") == 0) {
            config.attention = TRI_CUDA_ATTENTION_OWN;
            config.products = TRI_CUDA_PRODUCTS_OWN;
        } else {
            b.only = argv[i];
        }
    }
    struct tri_cuda_info info;
    tri_cuda_probe(0, &info);
    check(tri_cuda_open(&config, &b.backend));
    printf("%s, driver for CUDA %d.%d, %s\n", info.card, info.driver_cuda / 1000,
           info.driver_cuda % 1000 / 10, b.backend->kernels);
    check(tri_arena_open(b.backend->memory, info.memory_free / 4 * 3, &b.arena));
    check_cuda(cudaEventCreate(&b.begin));
    check_cuda(cudaEventCreate(&b.end));

    float *host = malloc(SEED_NUMBERS * sizeof *host);
    if (host == NULL)
        return 1;
    for (int64_t i = 0; i < SEED_NUMBERS; i++)
        host[i] = (float)tri_rng_normal(3, 0, (uint64_t)i);
    b.seed = tri_view1(get(&b, SEED_NUMBERS * sizeof *host), TRI_F32, SEED_NUMBERS);
    check(b.backend->ops.upload(b.backend->stream, b.seed, host));
    check(b.backend->ops.sync(b.backend->stream));
    free(host);

    measure_copy_roof(&b);
    group(&b, moves);
    group(&b, embeddings);
    group(&b, norms);
    group(&b, activations);
    group(&b, losses);
    group(&b, updates);
    measure_copy_roof(&b);
    group(&b, products);
    group(&b, attention);
    printf("%d rows under 80 %% of copy\n", b.failures);
    check_cuda(cudaEventDestroy(b.begin));
    check_cuda(cudaEventDestroy(b.end));
    tri_arena_close(b.arena);
    tri_cuda_close(b.backend);
    return 0;
}
