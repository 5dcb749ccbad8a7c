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

#include "cuda/card.h"

enum { HEADS = 32, KV_HEADS = 8, HEAD_SIZE = 128, MAX_CALLS = 16 };

struct problem {
    struct tri_attn op;
    struct tri_view q, k, v, o, lse, dout, dq, dk, dv;
    double pairs; /* that see each other */
    void *workspace;
};

static enum tri_status forward(const struct tri_ops *ops, struct tri_stream *s, const void *ctx)
{
    const struct problem *p = ctx;
    return ops->attn_forward(s, &p->op, p->o, p->lse, p->q, p->k, p->v, p->workspace);
}

static enum tri_status backward(const struct tri_ops *ops, struct tri_stream *s, const void *ctx)
{
    const struct problem *p = ctx;
    return ops->attn_backward(s, &p->op, false, p->dq, p->dk, p->dv, p->dout, p->q, p->k, p->v,
                              p->o, p->lse, p->workspace);
}

/* (tokens, heads, HEAD_SIZE) of normal numbers. */
static struct tri_view numbers(struct bench_card *card, int64_t tokens, int64_t heads)
{
    return bench_numbers3(card, TRI_BF16, tokens, heads, HEAD_SIZE);
}

/* Median milliseconds. */
static double measure(struct bench_card *card, struct problem *p, bool back, size_t *bytes)
{
    size_t mark = tri_arena_mark(card->arena);
    *bytes = card->backend->ops.attn_workspace(card->backend->stream, &p->op, back, p->q, p->k);
    p->workspace = bench_get(card, *bytes);
    int calls = p->pairs > 2e9 ? 3 : MAX_CALLS;
    double seconds = bench_time(card, 1, calls, back ? backward : forward, p);
    tri_arena_release(card->arena, mark);
    return seconds * 1e3;
}

static void row(struct bench_card *card, const char *mask, int64_t queries, int64_t keys)
{
    size_t mark = tri_arena_mark(card->arena);
    int64_t length = strncmp(mask, "documents:", 10) == 0 ? atoll(mask + 10) : keys + queries;
    bool full = strcmp(mask, "full") == 0;
    int64_t num_docs = (keys + queries + length - 1) / length;
    int64_t *doc_begin = malloc((size_t)(num_docs + 1) * sizeof *doc_begin);
    if (doc_begin == NULL)
        exit(1);
    for (int64_t i = 0; i <= num_docs; i++)
        doc_begin[i] = i * length;
    struct tri_view kv = numbers(card, keys, 2 * KV_HEADS), q = numbers(card, queries, HEADS);
    struct problem p = {
        .op = {.scale = 0.08838834764831845,
               .q_begin = full ? keys : keys - queries,
               .doc_begin = doc_begin,
               .num_docs = num_docs},
        .q = q,
        .k = kv,
        .v = kv,
        .o = numbers(card, queries, HEADS),
        .lse = tri_view2(bench_get(card, (size_t)(queries * HEADS) * 4), TRI_F32, queries, HEADS),
        .dout = numbers(card, queries, HEADS),
        .dq = numbers(card, queries, HEADS)};
    p.k.dim[1] = p.v.dim[1] = KV_HEADS;
    p.v.data = (uint16_t *)kv.data + KV_HEADS * HEAD_SIZE;
    size_t key_bytes = (size_t)(keys * KV_HEADS * HEAD_SIZE) * 4;
    p.dk = tri_view3(bench_get(card, key_bytes), TRI_F32, keys, KV_HEADS, HEAD_SIZE);
    p.dv = tri_view3(bench_get(card, key_bytes), TRI_F32, keys, KV_HEADS, HEAD_SIZE);
    bench_check_cuda(cudaMemset(p.dk.data, 0, key_bytes));
    bench_check_cuda(cudaMemset(p.dv.data, 0, key_bytes));
    for (int64_t i = 0; i < queries; i++) {
        int64_t token = p.op.q_begin + i;
        p.pairs += full ? (double)keys : (double)(token % length + 1);
    }
    size_t forward_bytes, backward_bytes;
    double forward_ms = measure(card, &p, false, &forward_bytes);
    double backward_ms = measure(card, &p, true, &backward_bytes);
    double flop = 4.0 * p.pairs * HEAD_SIZE * HEADS;
    printf("%-16s %7lld %7lld  fwd %9.3f ms %4.0f TFLOP/s  bwd %9.3f ms %4.0f TFLOP/s  workspace "
           "%.0f / %.0f MiB\n",
           mask, (long long)queries, (long long)keys, forward_ms, flop / forward_ms * 1e-9,
           backward_ms, 2.5 * flop / backward_ms * 1e-9, (double)forward_bytes / 1048576,
           (double)backward_bytes / 1048576);
    fflush(stdout);
    free(doc_begin);
    tri_arena_release(card->arena, mark);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"causal", "8192",   "8192",           "causal", "32768",
                                        "32768",  "causal", "131072",         "131072", "causal",
                                        "65536",  "262144", "documents:4096", "65536",  "65536"};
    enum { MOST = 48 };
    struct bench_card card;
    int count = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof usual[0]);
    if (count % 3 != 0) {
        fprintf(stderr, "usage: bench_cuda_attn [MASK QUERIES KEYS]...\n");
        return 2;
    }
    bench_card_open(NULL, (size_t)MOST << 30, &card);
    fprintf(stderr, "%s\n", card.backend->kernels);
    for (int i = 0; i < count; i += 3) {
        const char *const *at = argc > 1 ? (const char *const *)argv + 1 + i : usual + i;
        row(&card, at[0], atoll(at[1]), atoll(at[2]));
    }
    bench_card_close(&card);
    return 0;
}
