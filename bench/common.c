#include "common.h"

#include <stdio.h>
#include <stdlib.h>

void bench_check(enum tri_status status)
{
    if (status == TRI_OK)
        return;
    fprintf(stderr, "bench: %s\n", tri_error_text());
    exit(1);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, ascending);
    double upper = samples[count / 2];
    return count % 2 == 1 ? upper : 0.5 * (samples[count / 2 - 1] + upper);
}
