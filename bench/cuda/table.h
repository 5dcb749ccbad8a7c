/* Rows of the table: calls of an op, held against roofs that were measured in the same run. */
#ifndef BENCH_CUDA_TABLE_H
#define BENCH_CUDA_TABLE_H

#include "cuda/card.h"

struct bench_table {
    struct bench_card card;
    const char *only; /* rows whose name holds it, or NULL */
    int calls;        /* that are timed */
    double copy_roof, product_roof;
    int failures; /* rows under their bound */
};

/* Sizes of an 8B Llama, several times the L2 cache. */
enum {
    BENCH_TOKENS = 65536,
    BENCH_HIDDEN = 4096,
    BENCH_HEADS = 32,
    BENCH_KV_HEADS = 8,
    BENCH_HEAD_SIZE = 128,
    BENCH_MLP = 14336,
    BENCH_VOCABULARY = 128256,
    BENCH_LOGIT_ROWS = 4096,
};

/* One call of an op. */
struct bench_call {
    enum tri_status (*run)(const struct tri_ops *ops, struct tri_stream *s,
                           const struct bench_call *c);
    struct tri_view v[9];
    int32_t *ids;
    double *loss;
    void *workspace;
    struct tri_attn attn;
    bool flag;
};

/* Median seconds of a call. */
double bench_seconds(struct bench_table *b, const struct bench_call *c);

/* A row that is bound by memory; at least 80 % of the copy is asked. */
void bench_row(struct bench_table *b, const char *name, double bytes, const struct bench_call *c);

/* A row that is bound by products. */
void bench_product_row(struct bench_table *b, const char *name, double flop,
                       const struct bench_call *c);

/* Measure and print the rate of a copy, which rows that are bound by memory are held against. */
void bench_copy_roof(struct bench_table *b);

/* The rows, by what they measure. bench_products measures its roof first. They leave in the arena
 * what they took. */
void bench_moves(struct bench_table *b);
void bench_embeddings(struct bench_table *b);
void bench_norms(struct bench_table *b);
void bench_activations(struct bench_table *b);
void bench_losses(struct bench_table *b);
void bench_updates(struct bench_table *b);
void bench_products(struct bench_table *b);
void bench_attention(struct bench_table *b);

#endif
