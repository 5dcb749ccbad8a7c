/* Speed of attention on a card, by whichever engine the backend chooses.
 *
 *   trireme_bench_cuda_attn [causal|full|documents:LENGTH] QUERIES KEYS [more of them ...]
 *
 * Shapes: bfloat16, 32 query and 8 key heads of 128, keys and values as halves of one buffer.
 * `causal` is bottom-right: the queries are the last of the keys' tokens. `full`: all keys come
 * before the queries. FLOP count only pairs that see each other: 4 D a pair and head forward, 10
 * backward. Times are medians of events around single calls. compare_attn.py holds them against
 * PyTorch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "backend/cuda/context.h"
#include "base/arena.h"
#include "base/rng.h"
#include "tensor/half.h"

enum { HEADS = 32, KV_HEADS = 8, HEAD_SIZE = 128, MAX_CALLS = 16, NUMBERS = 1 << 22 };

struct bench {
    struct tri_backend *backend;
    struct tri_arena *arena;
    uint16_t *numbers; /* normal, in bfloat16 */
    cudaEvent_t begin, end;
};

struct problem {
    struct tri_attn op;
    struct tri_view q, k, v, o, lse, dout, dq, dk, dv;
    double pairs; /* that see each other */
};

static void check(enum tri_status status)
{
    if (status != TRI_OK) {
        fprintf(stderr, "bench_cuda_attn: %s\n", tri_error_text());
        exit(1);
    }
}

static void check_cuda(cudaError_t code)
{
    check(tri_cuda_check(code, "time attention"));
}

static void *get(struct bench *b, size_t bytes)
{
    void *p = NULL;
    check(tri_arena_alloc(b->arena, "bench", bytes, &p));
    return p;
}

/* (tokens, heads, HEAD_SIZE) of normal numbers. */
static struct tri_view numbers(struct bench *b, int64_t tokens, int64_t heads)
{
    struct tri_view v = tri_view3(NULL, TRI_BF16, tokens, heads, HEAD_SIZE);
    int64_t count = tri_view_count(v);
    v.data = get(b, tri_view_bytes(v));
    for (int64_t i = 0; i < count; i += NUMBERS) {
        int64_t n = count - i < NUMBERS ? count - i : NUMBERS;
        check_cuda(
            cudaMemcpy((uint16_t *)v.data + i, b->numbers, (size_t)n * 2, cudaMemcpyHostToDevice));
    }
    return v;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static enum tri_status call(struct bench *b, const struct problem *p, bool backward,
                            void *workspace)
{
    const struct tri_ops *ops = &b->backend->ops;
    struct tri_stream *s = b->backend->stream;
    return backward ? ops->attn_backward(s, &p->op, false, p->dq, p->dk, p->dv, p->dout, p->q, p->k,
                                         p->v, p->o, p->lse, workspace)
                    : ops->attn_forward(s, &p->op, p->o, p->lse, p->q, p->k, p->v, workspace);
}

/* Median milliseconds. */
static double measure(struct bench *b, const struct problem *p, bool backward, size_t *bytes)
{
    float ms[MAX_CALLS];
    size_t mark = tri_arena_mark(b->arena);
    *bytes = b->backend->ops.attn_workspace(b->backend->stream, &p->op, backward, p->q, p->k);
    void *workspace = get(b, *bytes);
    cudaStream_t stream = b->backend->stream->stream;
    int calls = p->pairs > 2e9 ? 3 : MAX_CALLS;
    check(call(b, p, backward, workspace));
    for (int i = 0; i < calls; i++) {
        check_cuda(cudaEventRecord(b->begin, stream));
        check(call(b, p, backward, workspace));
        check_cuda(cudaEventRecord(b->end, stream));
        check_cuda(cudaEventSynchronize(b->end));
        check_cuda(cudaEventElapsedTime(&ms[i], b->begin, b->end));
    }
    tri_arena_release(b->arena, mark);
    qsort(ms, (size_t)calls, sizeof ms[0], by_value);
    return ms[calls / 2];
}

static void row(struct bench *b, const char *mask, int64_t queries, int64_t keys)
{
    size_t mark = tri_arena_mark(b->arena);
    int64_t length = strncmp(mask, "documents:", 10) == 0 ? atoll(mask + 10) : keys + queries;
    bool full = strcmp(mask, "full") == 0;
    int64_t num_docs = (keys + queries + length - 1) / length;
    int64_t *doc_begin = malloc((size_t)(num_docs + 1) * sizeof *doc_begin);
    if (doc_begin == NULL)
        exit(1);
    for (int64_t i = 0; i <= num_docs; i++)
        doc_begin[i] = i * length;
    struct tri_view kv = numbers(b, keys, 2 * KV_HEADS), q = numbers(b, queries, HEADS);
    struct problem p = {
        .op = {.scale = 0.08838834764831845,
               .q_begin = full ? keys : keys - queries,
               .doc_begin = doc_begin,
               .num_docs = num_docs},
        .q = q,
        .k = kv,
        .v = kv,
        .o = numbers(b, queries, HEADS),
        .lse = tri_view2(get(b, (size_t)(queries * HEADS) * 4), TRI_F32, queries, HEADS),
        .dout = numbers(b, queries, HEADS),
        .dq = numbers(b, queries, HEADS)};
    p.k.dim[1] = p.v.dim[1] = KV_HEADS;
    p.v.data = (uint16_t *)kv.data + KV_HEADS * HEAD_SIZE;
    size_t key_bytes = (size_t)(keys * KV_HEADS * HEAD_SIZE) * 4;
    p.dk = tri_view3(get(b, key_bytes), TRI_F32, keys, KV_HEADS, HEAD_SIZE);
    p.dv = tri_view3(get(b, key_bytes), TRI_F32, keys, KV_HEADS, HEAD_SIZE);
    check_cuda(cudaMemset(p.dk.data, 0, key_bytes));
    check_cuda(cudaMemset(p.dv.data, 0, key_bytes));
    for (int64_t i = 0; i < queries; i++) {
        int64_t token = p.op.q_begin + i;
        p.pairs += full ? (double)keys : (double)(token % length + 1);
    }
    size_t forward_bytes, backward_bytes;
    double forward = measure(b, &p, false, &forward_bytes);
    double backward = measure(b, &p, true, &backward_bytes);
    double flop = 4.0 * p.pairs * HEAD_SIZE * HEADS;
    printf("%-16s %7lld %7lld  fwd %9.3f ms %4.0f TFLOP/s  bwd %9.3f ms %4.0f TFLOP/s  workspace "
           "%.0f / %.0f MiB\n",
           mask, (long long)queries, (long long)keys, forward, flop / forward * 1e-9, backward,
           2.5 * flop / backward * 1e-9, (double)forward_bytes / 1048576,
           (double)backward_bytes / 1048576);
    fflush(stdout);
    free(doc_begin);
    tri_arena_release(b->arena, mark);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"causal", "8192",   "8192",           "causal", "32768",
                                        "32768",  "causal", "131072",         "131072", "causal",
                                        "65536",  "262144", "documents:4096", "65536",  "65536"};
    enum { MOST = 48 };
    struct bench b = {.backend = NULL};
    int count = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof usual[0]);
    if (count % 3 != 0) {
        fprintf(stderr, "usage: bench_cuda_attn [MASK QUERIES KEYS]...\n");
        return 2;
    }
    check(tri_cuda_open(NULL, &b.backend));
    check(tri_arena_open(b.backend->memory, (size_t)MOST << 30, &b.arena));
    check_cuda(cudaEventCreate(&b.begin));
    check_cuda(cudaEventCreate(&b.end));
    b.numbers = malloc(NUMBERS * sizeof *b.numbers);
    if (b.numbers == NULL)
        return 1;
    for (uint64_t i = 0; i < NUMBERS; i++)
        b.numbers[i] = tri_bf16_from_double(tri_rng_normal(3, 0, i));
    fprintf(stderr, "%s\n", b.backend->kernels);
    for (int i = 0; i < count; i += 3) {
        const char *const *at = argc > 1 ? (const char *const *)argv + 1 + i : usual + i;
        row(&b, at[0], atoll(at[1]), atoll(at[2]));
    }
    free(b.numbers);
    (void)cudaEventDestroy(b.begin);
    (void)cudaEventDestroy(b.end);
    tri_arena_close(b.arena);
    tri_cuda_close(b.backend);
    return 0;
}
