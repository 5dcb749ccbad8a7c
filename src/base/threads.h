/* How many threads a parallel region takes. */
#ifndef TRI_BASE_THREADS_H
#define TRI_BASE_THREADS_H

#ifdef _OPENMP
#include <omp.h>
#endif

/* `wanted`, or all that OpenMP would take when it is 0; one where there is no OpenMP. */
static inline int tri_threads_wanted(int wanted)
{
#ifdef _OPENMP
    return wanted > 0 ? wanted : omp_get_max_threads();
#else
    (void)wanted;
    return 1;
#endif
}

#endif
