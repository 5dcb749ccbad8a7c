/* Causal attention at S = 8192 against sgemm: 4 D and 10 D FLOP for each visible pair and head. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpu/bench.h"

enum { TOKENS = 8192 };

struct attention {
    struct tri_attn op;
    int64_t documents[2];
    struct tri_view q, k, v, o, lse, dout, dq, dk, dv;
    void *workspace; /* enough for either pass with every number of threads */
};

static void forward(struct tri_backend *backend, void *ctx)
{
    struct attention *a = ctx;
    bench_check(backend->ops.attn_forward(backend->stream, &a->op, a->o, a->lse, a->q, a->k, a->v,
                                          a->workspace));
}

static void backward(struct tri_backend *backend, void *ctx)
{
    struct attention *a = ctx;
    bench_check(backend->ops.attn_backward(backend->stream, &a->op, false, a->dq, a->dk, a->dv,
                                           a->dout, a->q, a->k, a->v, a->o, a->lse, a->workspace));
}

/* One (T, H, D) part of a packed (T, (Hq + 2 Hk) D) tensor, as the model has it. */
static struct tri_view part(struct tri_view packed, int64_t first_head, int64_t heads, int64_t d)
{
    return tri_view_heads(tri_view_cols(packed, first_head * d, heads * d), heads);
}

static void add_shape(struct bench *b, int64_t hq, int64_t hk, int64_t d)
{
    static struct attention shapes[4];
    static int used;
    struct attention *a = &shapes[used++];
    const int64_t width = (hq + 2 * hk) * d;
    struct tri_view qkv = tri_view2(bench_numbers(TOKENS * width), TRI_F32, TOKENS, width);
    struct tri_view dqkv = tri_view2(bench_zeros(TOKENS * width), TRI_F32, TOKENS, width);
    a->documents[1] = TOKENS;
    a->op =
        (struct tri_attn){.scale = 1.0 / sqrt((double)d), .doc_begin = a->documents, .num_docs = 1};
    a->q = part(qkv, 0, hq, d);
    a->k = part(qkv, hq, hk, d);
    a->v = part(qkv, hq + hk, hk, d);
    a->dq = part(dqkv, 0, hq, d);
    a->dk = part(dqkv, hq, hk, d);
    a->dv = part(dqkv, hq + hk, hk, d);
    a->o = tri_view3(bench_zeros(TOKENS * hq * d), TRI_F32, TOKENS, hq, d);
    a->dout = tri_view3(bench_numbers(TOKENS * hq * d), TRI_F32, TOKENS, hq, d);
    a->lse = tri_view2(bench_zeros(TOKENS * hq), TRI_F32, TOKENS, hq);

    size_t bytes = 0;
    struct tri_backend *any = NULL;
    for (int threads = 1; threads <= BENCH_MAX_THREADS; threads++) {
        struct tri_backend *backend = b->backend[threads];
        for (int pass = 0; backend != NULL && pass < 2; pass++) {
            size_t need =
                backend->ops.attn_workspace(backend->stream, &a->op, pass == 1, a->q, a->k);
            bytes = need > bytes ? need : bytes;
            any = backend;
        }
    }
    a->workspace = bench_zeros((int64_t)(bytes / sizeof(float)) + 1);

    const double pairs = 0.5 * TOKENS * (TOKENS + 1.0) * (double)hq;
    char name[56];
    snprintf(name, sizeof name, "attention forward D=%lld H=%lld/%lld", (long long)d, (long long)hq,
             (long long)hk);
    bench_add(b, name, BENCH_SGEMM, 4.0 * (double)d * pairs, 0.55, forward, a);
    snprintf(name, sizeof name, "attention backward D=%lld H=%lld/%lld", (long long)d,
             (long long)hq, (long long)hk);
    int before = b->num_rows;
    bench_add(b, name, BENCH_SGEMM, 10.0 * (double)d * pairs, 0.45, backward, a);
    if (b->num_rows > before)
        forward(any, a); /* backward needs o and lse even where only it was asked for */
}

void bench_add_attention(struct bench *b)
{
    if (!bench_wants(b, "attention"))
        return;
    add_shape(b, 2, 2, 64);
    add_shape(b, 2, 2, 128);
}
