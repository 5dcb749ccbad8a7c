/* What every benchmark needs. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include "base/status.h"

/* Exit with the library's error text unless the status is TRI_OK. */
void bench_check(enum tri_status status);

/* The median of `count` samples, which are put into ascending order. */
double bench_median(double *samples, int count);

#endif
