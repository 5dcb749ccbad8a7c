#include "train/heartbeat.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/stop.h"

struct tri_heartbeat {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    double seconds;
    bool end;
    char news[256]; /* empty: at rest */
    double since;   /* clock of the news */

    const char *stop_after, *stop_then; /* see tri_heartbeat_stop_after */
    double stop_end;
    bool answered, answered_typed;
};

static const double look_seconds = 0.1; /* between looks for a stop signal */

/* A signal is obeyed at a boundary of the work; that it was heard is said at once, or people send
 * another one. */
static void answer(struct tri_heartbeat *heartbeat)
{
    const int number = tri_stop_requested();
    const bool typed = tri_stop_typed();
    char eta[48] = "", left[24];
    if (number == 0 || heartbeat->stop_after == NULL ||
        (heartbeat->answered && heartbeat->answered_typed == typed))
        return;
    if (isfinite(heartbeat->stop_end))
        snprintf(eta, sizeof eta, " (eta %s)",
                 tri_duration_text(fmax(heartbeat->stop_end - tri_clock(), 0), left));
    tri_info("%s: stopping after %s%s%s%s", tri_stop_name(number), heartbeat->stop_after, eta,
             heartbeat->stop_then, typed ? "; Ctrl-C again ends now without saving" : "");
    heartbeat->answered = true;
    heartbeat->answered_typed = typed;
}

/* The lock is held while a beat is printed, so that nothing is printed after a rest. */
static void *beat(void *ctx)
{
    struct tri_heartbeat *heartbeat = ctx;
    const double pause = fmin(heartbeat->seconds, look_seconds);
    double beat_at = tri_clock() + heartbeat->seconds;
    pthread_mutex_lock(&heartbeat->lock);
    while (!heartbeat->end) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        const double next = (double)until.tv_sec + 1e-9 * (double)until.tv_nsec + pause;
        until.tv_sec = (time_t)next;
        until.tv_nsec = (long)((next - (double)until.tv_sec) * 1e9);
        pthread_cond_timedwait(&heartbeat->ended, &heartbeat->lock, &until);
        if (heartbeat->end)
            break;
        answer(heartbeat);
        if (tri_clock() < beat_at)
            continue;
        beat_at = tri_clock() + heartbeat->seconds;
        char ago[24];
        if (heartbeat->news[0] != '\0')
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

void tri_heartbeat_stop_after(struct tri_heartbeat *heartbeat, const char *what, const char *then,
                              double end)
{
    if (heartbeat == NULL)
        return;
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->stop_after = what;
    heartbeat->stop_then = then;
    heartbeat->stop_end = end;
    pthread_mutex_unlock(&heartbeat->lock);
}
