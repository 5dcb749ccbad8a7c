#include "comm/thread/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

/* How often a waiting rank looks whether the job failed. */
static const long poll_nanoseconds = 20 * 1000 * 1000;

enum tri_status tri_thread_group_open(struct tri_thread_job *job, int size,
                                      struct tri_thread_group **out)
{
    struct tri_thread_group *group = calloc(1, sizeof *group);
    struct tri_thread_call *calls = calloc((size_t)size, sizeof *calls);
    pthread_condattr_t monotonic;
    if (group == NULL || calls == NULL || pthread_condattr_init(&monotonic) != 0) {
        free(group);
        free(calls);
        return tri_fail(TRI_NOMEM, "no memory for a group of %d ranks", size);
    }
    group->job = job;
    group->size = size;
    group->users = size;
    group->calls = calls;
    pthread_mutex_init(&group->lock, NULL);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&group->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = group;
    return TRI_OK;
}

void tri_thread_group_leave(struct tri_thread_group *group)
{
    pthread_mutex_lock(&group->lock);
    int left = --group->users;
    pthread_mutex_unlock(&group->lock);
    if (left > 0)
        return;
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->lock);
    free(group->calls);
    free(group);
}

void tri_thread_fail(struct tri_thread_job *job, int world_rank, enum tri_status status,
                     const char *text)
{
    pthread_mutex_lock(&job->lock);
    if (job->failed == 0) {
        job->status = status;
        snprintf(job->text, sizeof job->text, "%s", text);
        job->failed = 1 + world_rank;
    }
    pthread_mutex_unlock(&job->lock);
}

static enum tri_status peer_failed(struct tri_thread_job *job, const char *what)
{
    char text[TRI_THREAD_TEXT];
    pthread_mutex_lock(&job->lock);
    int rank = job->failed - 1;
    memcpy(text, job->text, sizeof text);
    pthread_mutex_unlock(&job->lock);
    return tri_fail(TRI_PEER, "rank %d failed while others were in %s: %s", rank, what, text);
}

static void wait_a_little(struct tri_thread_group *group)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += poll_nanoseconds;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&group->changed, &group->lock, &until);
}

/* Wait until all ranks are here. `ends_early`: or until the job failed. */
static enum tri_status wait_for_all(struct tri_thread_group *group, const struct tri_comm *comm,
                                    const char *what, bool ends_early)
{
    double deadline = tri_clock() + comm->timeout;
    bool late = false;
    pthread_mutex_lock(&group->lock);
    int64_t generation = group->generation;
    if (ends_early && group->job->failed != 0) {
        pthread_mutex_unlock(&group->lock);
        return peer_failed(group->job, what);
    }
    if (++group->waiting == group->size) {
        group->waiting = 0;
        group->generation++;
        pthread_cond_broadcast(&group->changed);
    }
    while (group->generation == generation && !(ends_early && group->job->failed != 0) && !late) {
        wait_a_little(group);
        late = tri_clock() > deadline;
    }
    bool together = group->generation != generation;
    int here = group->waiting;
    if (!together) /* nobody may count on a rank that leaves */
        group->waiting--;
    pthread_mutex_unlock(&group->lock);
    if (together)
        return TRI_OK;
    if (group->job->failed != 0)
        return peer_failed(group->job, what);
    enum tri_status st = tri_fail(TRI_COMM,
                                  "rank %d waited %.0f s in %s: %d of %d ranks came; raise "
                                  "comm.timeout if the others are only slow",
                                  comm->world_rank, comm->timeout, what, here, group->size);
    tri_thread_fail(group->job, comm->world_rank, st, tri_error_text());
    return st;
}

enum tri_status tri_thread_part(struct tri_thread_group *group, const struct tri_comm *comm,
                                const char *what)
{
    return wait_for_all(group, comm, what, false);
}

enum tri_status tri_thread_meet(struct tri_thread_group *group, const struct tri_comm *comm,
                                struct tri_thread_call call)
{
    enum tri_status st = TRI_OK;
    group->calls[comm->rank] = call;
    TRI_TRY(wait_for_all(group, comm, call.call.what, true));
    for (int r = 0; r < group->size && st == TRI_OK; r++)
        st = tri_call_compare(&call.call, &group->calls[r].call);
    if (st == TRI_OK)
        return TRI_OK;
    /* Each rank sees a difference, to one or to another. */
    tri_thread_fail(group->job, comm->world_rank, st, tri_error_text());
    (void)tri_thread_part(group, comm, call.call.what);
    return st;
}
