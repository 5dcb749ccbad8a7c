/* A deadline for the calls of MPI that have none: MPI_Init, making communicators, MPI_Finalize.
 * They wait for other ranks inside of the library, where nothing can be polled, and for ever when
 * two machines cannot reach each other. A thread watches the clock meanwhile. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "comm/mpi/private.h"

static void *watch(void *argument)
{
    struct tri_mpi_guard *guard = argument;
    int code = 0;
    pthread_mutex_lock(&guard->lock);
    while (!guard->over && code == 0)
        code = pthread_cond_timedwait(&guard->changed, &guard->lock, &guard->until);
    bool late = !guard->over;
    pthread_mutex_unlock(&guard->lock);
    if (!late)
        return NULL;
    tri_error("rank %d waited %.3g s in %s: %s", guard->rank, guard->timeout, guard->what,
              guard->advice);
    fflush(stderr);
    _exit(1); /* the thread that is in MPI cannot be called back; launchers end the other ranks */
}

enum tri_status tri_mpi_guard_begin(struct tri_mpi_guard *guard, int rank, double timeout,
                                    const char *what, const char *advice)
{
    pthread_condattr_t monotonic;
    *guard = (struct tri_mpi_guard){
        .rank = rank, .timeout = timeout, .what = what, .advice = advice, .over = false};
    clock_gettime(CLOCK_MONOTONIC, &guard->until);
    guard->until.tv_sec += (time_t)timeout + 1;
    pthread_mutex_init(&guard->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&guard->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&guard->thread, NULL, watch, guard) == 0)
        return TRI_OK;
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->lock);
    return tri_fail(TRI_NOMEM, "cannot start the thread that watches %s", what);
}

void tri_mpi_guard_end(struct tri_mpi_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
    guard->over = true;
    pthread_cond_signal(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
    pthread_join(guard->thread, NULL);
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->lock);
}
