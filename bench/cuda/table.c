#include "cuda/table.h"

#include <stdio.h>
#include <string.h>

enum { WARM_UPS = 3 };

static enum tri_status run_call(const struct tri_ops *ops, struct tri_stream *s, const void *ctx)
{
    const struct bench_call *c = ctx;
    return c->run(ops, s, c);
}

double bench_seconds(struct bench_table *b, const struct bench_call *c)
{
    return bench_time(&b->card, WARM_UPS, b->calls, run_call, c);
}

static bool wanted(const struct bench_table *b, const char *name)
{
    return b->only == NULL || strstr(name, b->only) != NULL;
}

void bench_row(struct bench_table *b, const char *name, double bytes, const struct bench_call *c)
{
    if (!wanted(b, name))
        return;
    double t = bench_seconds(b, c), rate = bytes / t, share = rate / b->copy_roof;
    bool low = share < 0.8;
    b->failures += low;
    printf("%-44s %9.3f ms %8.0f GB/s  %5.1f %% of copy%s\n", name, t * 1e3, rate * 1e-9,
           share * 100, low ? "  LOW" : "");
    fflush(stdout);
}

void bench_product_row(struct bench_table *b, const char *name, double flop,
                       const struct bench_call *c)
{
    if (!wanted(b, name))
        return;
    double t = bench_seconds(b, c);
    printf("%-44s %9.3f ms %8.1f TFLOP/s", name, t * 1e3, flop / t * 1e-12);
    if (b->product_roof > 0)
        printf("  %5.1f %% of 8192^3", flop / t / b->product_roof * 100);
    printf("\n");
    fflush(stdout);
}
