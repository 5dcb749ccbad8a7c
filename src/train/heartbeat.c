#include "train/heartbeat.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

struct tri_heartbeat {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    double seconds;
    bool end;
    char news[256]; /* empty: at rest */
    double since;   /* clock of the news */
};

/* The lock is held while a beat is printed, so that nothing is printed after a rest. */
static void *beat(void *ctx)
{
    struct tri_heartbeat *heartbeat = ctx;
    pthread_mutex_lock(&heartbeat->lock);
    while (!heartbeat->end) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        const double next =
            (double)until.tv_sec + 1e-9 * (double)until.tv_nsec + heartbeat->seconds;
        until.tv_sec = (time_t)next;
        until.tv_nsec = (long)((next - (double)until.tv_sec) * 1e9);
        pthread_cond_timedwait(&heartbeat->ended, &heartbeat->lock, &until);
        char ago[24];
        if (heartbeat->news[0] != '\0' && !heartbeat->end)
            tri_progress("%s (%s ago)", heartbeat->news,
                         tri_duration_text(tri_clock() - heartbeat->since, ago));
    }
    pthread_mutex_unlock(&heartbeat->lock);
    return NULL;
}

/* Signals are for the main thread, whose waits they may end. */
static int start_thread(struct tri_heartbeat *heartbeat)
{
    sigset_t all, before;
    sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error != 0)
        return error;
    error = pthread_create(&heartbeat->thread, NULL, beat, heartbeat);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

enum tri_status tri_heartbeat_open(double seconds, struct tri_heartbeat **out)
{
    struct tri_heartbeat *heartbeat = calloc(1, sizeof *heartbeat);
    if (heartbeat == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a heartbeat");
    heartbeat->seconds = seconds;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&heartbeat->ended, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&heartbeat->lock, NULL);
    const int error = start_thread(heartbeat);
    if (error != 0) {
        pthread_cond_destroy(&heartbeat->ended);
        pthread_mutex_destroy(&heartbeat->lock);
        free(heartbeat);
        return tri_fail_errno(error, "cannot start a thread");
    }
    *out = heartbeat;
    return TRI_OK;
}

void tri_heartbeat_close(struct tri_heartbeat *heartbeat)
{
    if (heartbeat == NULL)
        return;
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->end = true;
    pthread_cond_signal(&heartbeat->ended);
    pthread_mutex_unlock(&heartbeat->lock);
    pthread_join(heartbeat->thread, NULL);
    pthread_cond_destroy(&heartbeat->ended);
    pthread_mutex_destroy(&heartbeat->lock);
    free(heartbeat);
}

void tri_heartbeat_say(struct tri_heartbeat *heartbeat, const char *format, ...)
{
    char news[sizeof heartbeat->news];
    va_list args;
    va_start(args, format);
    vsnprintf(news, sizeof news, format, args);
    va_end(args);
    if (heartbeat != NULL) {
        pthread_mutex_lock(&heartbeat->lock);
        snprintf(heartbeat->news, sizeof heartbeat->news, "%s", news);
        heartbeat->since = tri_clock();
        pthread_mutex_unlock(&heartbeat->lock);
    }
    tri_progress("%s", news);
}

void tri_heartbeat_rest(struct tri_heartbeat *heartbeat)
{
    if (heartbeat == NULL)
        return;
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->news[0] = '\0';
    pthread_mutex_unlock(&heartbeat->lock);
}
