/* The thread that ends what would wait for ever. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/nccl/private.h"

enum {
    LOOK_NANOSECONDS = 100 * 1000 * 1000,
    END_SECONDS = 10, /* for NCCL to end what it has on the card */
};

/* NCCL cannot be ended, so this process would wait for ever: it ends itself. */
static _Noreturn void give_up(struct tri_nccl_job *job)
{
    (void)tri_rendezvous_check(job->rv, "collectives");
    tri_error("%s; NCCL did not end within %d s, so this process does", tri_error_text(),
              END_SECONDS);
    fflush(stderr);
    _exit(1);
}

static struct timespec end_time(void)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += END_SECONDS;
    return end;
}

static void *end_comm(void *argument)
{
    struct tri_nccl_comm *comm = argument;
    (void)comm->job->api.abort(comm->dying); /* it is of no use any more, whatever it says */
    return NULL;
}

/* A rank failed: end all kernels that wait for it. Called on the thread of the rendezvous.
 *
 * NCCL tells the kernels of a communicator to end, then waits until the card is done. Kernels of
 * another communicator on the same card must have been told by then, so all are ended at once, a
 * thread each. */
static void abort_all(void *ctx)
{
    struct tri_nccl_job *job = ctx;
    struct timespec until = end_time();
    if (pthread_mutex_clocklock(&job->lock, CLOCK_MONOTONIC, &until) != 0)
        give_up(job);
    job->aborted = true;
    for (struct tri_nccl_comm *comm = job->comms; comm != NULL; comm = comm->next) {
        comm->dying = comm->nccl;
        comm->nccl = NULL;
        comm->has_ender =
            comm->dying != NULL && pthread_create(&comm->ender, NULL, end_comm, comm) == 0;
    }
    for (struct tri_nccl_comm *comm = job->comms; comm != NULL; comm = comm->next) {
        if (comm->has_ender &&
            pthread_clockjoin_np(comm->ender, NULL, CLOCK_MONOTONIC, &until) != 0)
            give_up(job);
        if (comm->dying != NULL && !comm->has_ender)
            (void)end_comm(comm);
    }
    pthread_mutex_unlock(&job->lock);
}

/* The first thing that is wrong with a communicator, as an error; the job is locked. */
static enum tri_status look_at(struct tri_nccl_comm *comm, double now)
{
    struct tri_nccl_job *job = comm->job;
    ncclResult_t state = ncclSuccess;
    if (comm->nccl == NULL)
        return TRI_OK;
    (void)job->api.get_async_error(comm->nccl, &state);
    if (state != ncclSuccess && state != ncclInProgress)
        return tri_fail(TRI_COMM, "rank %d: NCCL: %s: %.300s; NCCL_DEBUG=WARN tells more",
                        comm->base.world_rank, job->api.error_string(state),
                        job->api.last_error(comm->nccl));
    while (comm->num_flights > 0) {
        struct tri_nccl_flight *first = &comm->flights[comm->first_flight];
        if (!first->queued)
            return TRI_OK;
        if (cudaEventQuery(first->done) != cudaErrorNotReady) {
            comm->first_flight = (comm->first_flight + 1) % TRI_NCCL_IN_FLIGHT;
            comm->num_flights--;
            continue;
        }
        /* The deadline counts from when the card came to the collective: what is queued before it
         * may take as long as it likes. */
        if (first->since == 0 && cudaEventQuery(first->begun) != cudaErrorNotReady)
            first->since = now;
        if (first->since > 0 && now - first->since > comm->base.timeout)
            return tri_fail(TRI_COMM,
                            "rank %d waited %.3g s in %s: a peer is gone or stuck; raise "
                            "comm.timeout if it is only slow",
                            comm->base.world_rank, comm->base.timeout, first->what);
        return TRI_OK;
    }
    return TRI_OK;
}

static void *watch(void *argument)
{
    struct tri_nccl_job *job = argument;
    bool failed = false;
    (void)cudaSetDevice(job->device);
    pthread_mutex_lock(&job->lock);
    while (!job->ending) {
        struct timespec until;
        enum tri_status st = TRI_OK;
        double now = tri_clock();
        for (struct tri_nccl_comm *c = job->comms; c != NULL && st == TRI_OK && !failed;
             c = c->next)
            st = look_at(c, now);
        if (st != TRI_OK) {
            failed = true;
            pthread_mutex_unlock(&job->lock);
            /* An error that NCCL reports may be the echo of a rank that died, whose news names it.
             */
            (void)tri_rendezvous_first_failed(job->rv, 2);
            (void)tri_nccl_fail(job, st); /* the first failure counts */
            pthread_mutex_lock(&job->lock);
            continue;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_NANOSECONDS;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&job->changed, &job->lock, &until);
    }
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

enum tri_status tri_nccl_watch(struct tri_nccl_job *job)
{
    if (pthread_create(&job->watchdog, NULL, watch, job) != 0)
        return tri_fail(TRI_NOMEM, "cannot start the thread that watches NCCL");
    tri_rendezvous_on_failure(job->rv, abort_all, job);
    return TRI_OK;
}

void tri_nccl_unwatch(struct tri_nccl_job *job)
{
    tri_rendezvous_on_failure(job->rv, NULL, NULL);
    pthread_mutex_lock(&job->lock);
    job->ending = true;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
    pthread_join(job->watchdog, NULL);
}
