/* Speed as ratios: every row of the table is held against a roof measured in the same run. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "common.h"

/* What bounds a row: the rate of a large sgemm, or of a copy between two large arrays. */
enum bench_roof { BENCH_SGEMM, BENCH_COPY, BENCH_NUM_ROOFS };

enum { BENCH_MAX_ROUNDS = 100, BENCH_MAX_ROWS = 100, BENCH_MAX_THREADS = 256 };

struct bench_row {
    char name[56];
    int threads;
    enum bench_roof roof;
    double work;  /* FLOP, or bytes read and written */
    double bound; /* least ratio to the roof; 0: none */
    void (*run)(struct tri_backend *backend, void *ctx);
    void *ctx;
    int num_samples;
    double rate[BENCH_MAX_ROUNDS];   /* work per second */
    double paired[BENCH_MAX_ROUNDS]; /* rate over the roof measured around it */
};

struct bench {
    struct tri_backend *backend[BENCH_MAX_THREADS + 1]; /* by number of threads; NULL: not asked */
    const char *only;                                   /* rows whose name holds it, or NULL */
    int num_rows;
    struct bench_row row[BENCH_MAX_ROWS];
    double best_roof[BENCH_NUM_ROOFS][BENCH_MAX_THREADS + 1];
};

/* Add a row for every number of threads asked for, if its name is wanted. */
void bench_add(struct bench *b, const char *name, enum bench_roof roof, double work, double bound,
               void (*run)(struct tri_backend *backend, void *ctx), void *ctx);

/* Whether any row whose name begins so may be wanted: its data need not be made otherwise. */
bool bench_wants(const struct bench *b, const char *name);

/* The rows, by what they measure. */
void bench_add_products(struct bench *b);
void bench_add_attention(struct bench *b);
void bench_add_memory(struct bench *b);

/* Run one roof; returns its rate in work per second. */
double bench_measure_roof(enum bench_roof roof, int threads);

/* Rows of numbers in [-1, 1); zeros. They live until the program ends. Exit when memory is out. */
float *bench_numbers(int64_t count);
float *bench_zeros(int64_t count);
struct tri_view bench_matrix(int64_t rows, int64_t cols); /* of numbers */

void bench_print(const struct bench *b);

#endif
