/* Rows, roofs and the table. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/clock.h"
#include "cpu/bench.h"

static float *room(int64_t count)
{
    float *p = aligned_alloc(64, ((size_t)count * sizeof(float) + 63) / 64 * 64);
    if (p == NULL) {
        fprintf(stderr, "trireme_bench: no memory for %lld numbers\n", (long long)count);
        exit(1);
    }
    return p;
}

float *bench_numbers(int64_t count)
{
    float *p = room(count);
    uint32_t state = 12345;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        p[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return p;
}

float *bench_zeros(int64_t count)
{
    float *p = room(count);
    memset(p, 0, (size_t)count * sizeof *p);
    return p;
}

struct tri_view bench_matrix(int64_t rows, int64_t cols)
{
    return tri_view2(bench_numbers(rows * cols), TRI_F32, rows, cols);
}

static double sgemm_rate(int threads)
{
    enum { SIZE = 1280 };
    static float *a, *b, *c;
    if (a == NULL) {
        a = bench_numbers((int64_t)SIZE * SIZE);
        b = bench_numbers((int64_t)SIZE * SIZE);
        c = bench_zeros((int64_t)SIZE * SIZE);
    }
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    openblas_set_num_threads(threads);
#endif
    double start = tri_clock();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIZE, SIZE, SIZE, 1.0f, a, SIZE, b, SIZE,
                0.0f, c, SIZE);
    return 2.0 * SIZE * SIZE * SIZE / (tri_clock() - start);
}

static double copy_rate(int threads)
{
    enum { COUNT = 1 << 24, PIECE = 1 << 16 };
    static float *from, *to;
    if (from == NULL) {
        from = bench_numbers(COUNT);
        to = bench_zeros(COUNT);
    }
    double start = tri_clock();
    (void)threads; /* not needed where OpenMP was left out */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < COUNT; i += PIECE)
        memcpy(to + i, from + i, PIECE * sizeof *to);
    return 2.0 * COUNT * sizeof(float) / (tri_clock() - start);
}

double bench_measure_roof(enum bench_roof roof, int threads)
{
    return roof == BENCH_SGEMM ? sgemm_rate(threads) : copy_rate(threads);
}

bool bench_wants(const struct bench *b, const char *name)
{
    return b->only == NULL || strstr(name, b->only) != NULL || strstr(b->only, name) != NULL;
}

void bench_add(struct bench *b, const char *name, enum bench_roof roof, double work, double bound,
               void (*run)(struct tri_backend *backend, void *ctx), void *ctx)
{
    if (b->only != NULL && strstr(name, b->only) == NULL)
        return;
    for (int threads = 1; threads <= BENCH_MAX_THREADS; threads++) {
        if (b->backend[threads] == NULL || b->num_rows == BENCH_MAX_ROWS)
            continue;
        struct bench_row *row = &b->row[b->num_rows++];
        *row = (struct bench_row){
            .threads = threads, .roof = roof, .work = work, .bound = bound, .run = run, .ctx = ctx};
        snprintf(row->name, sizeof row->name, "%s", name);
    }
}

static double middle(const double *x, int n)
{
    double sorted[BENCH_MAX_ROUNDS];
    memcpy(sorted, x, (size_t)n * sizeof *x);
    return bench_median(sorted, n);
}

static double largest(const double *x, int n)
{
    double best = 0.0;
    for (int i = 0; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

void bench_print(const struct bench *b)
{
    printf("roofs:");
    for (int threads = 1; threads <= BENCH_MAX_THREADS; threads++) {
        if (b->best_roof[BENCH_SGEMM][threads] > 0.0)
            printf("  sgemm, %d threads: %.1f GFLOP/s", threads,
                   b->best_roof[BENCH_SGEMM][threads] * 1e-9);
        if (b->best_roof[BENCH_COPY][threads] > 0.0)
            printf("  copy, %d threads: %.1f GB/s", threads,
                   b->best_roof[BENCH_COPY][threads] * 1e-9);
    }
    printf("\nbest/best: best rate over best roof.  paired: median over the rounds of a rate over "
           "the roof around it.\n\n%-38s %3s %9s %9s %10s %7s %6s\n",
           "row", "thr", "best G/s", "median", "best/best", "paired", "bound");
    int under = 0;
    for (int i = 0; i < b->num_rows; i++) {
        const struct bench_row *r = &b->row[i];
        double best = largest(r->rate, r->num_samples);
        double ratio = best / b->best_roof[r->roof][r->threads];
        double paired = middle(r->paired, r->num_samples);
        bool low = ratio < r->bound && paired < r->bound;
        under += low;
        printf("%-38s %3d %9.1f %9.1f %9.0f%% %6.0f%%", r->name, r->threads, best * 1e-9,
               middle(r->rate, r->num_samples) * 1e-9, 100.0 * ratio, 100.0 * paired);
        if (r->bound > 0.0)
            printf(" %5.0f%%%s", 100.0 * r->bound, low ? "  UNDER" : "");
        putchar('\n');
    }
    printf("\n%d of %d rows under their bound by both ratios\n", under, b->num_rows);
}
