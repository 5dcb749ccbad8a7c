/* Calls of NCCL that never block, and the list of collectives on their way. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "comm/nccl/private.h"

/* Poll fast at first, since most waits are short, then let others have the core. */
static void pause_a_little(int64_t polls)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = polls < 4096 ? 20 * 1000 : 500 * 1000};
    if (polls < 2048)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

enum tri_status tri_nccl_fail(struct tri_nccl_job *job, enum tri_status status)
{
    char text[600];
    snprintf(text, sizeof text, "%s", tri_error_text());
    tri_rendezvous_fail(job->rv, status, text);
    return tri_fail(status, "%s", text);
}

static enum tri_status late(struct tri_nccl_comm *comm, const char *what)
{
    return tri_nccl_fail(comm->job, tri_fail(TRI_COMM,
                                             "rank %d waited %.3g s in %s: a peer is gone or "
                                             "stuck; raise comm.timeout if it is only slow",
                                             comm->base.world_rank, comm->base.timeout, what));
}

/* What NCCL says. An error on this rank may be the echo of another rank's end, whose news is on its
 * way and tells more. */
static enum tri_status failed(struct tri_nccl_comm *comm, ncclResult_t code, const char *what)
{
    struct tri_nccl_job *job = comm->job;
    char last[300] = "";
    pthread_mutex_lock(&job->lock);
    if (comm->nccl != NULL && job->api.last_error(comm->nccl) != NULL)
        snprintf(last, sizeof last, "%s", job->api.last_error(comm->nccl));
    pthread_mutex_unlock(&job->lock);
    if (code == ncclRemoteError || code == ncclSystemError)
        (void)tri_rendezvous_first_failed(job->rv, 2);
    TRI_TRY(tri_rendezvous_check(job->rv, what));
    return tri_nccl_fail(job, tri_fail(TRI_COMM,
                                       "rank %d: NCCL in %s: %s%s%s; NCCL_DEBUG=WARN tells more",
                                       comm->base.world_rank, what, job->api.error_string(code),
                                       last[0] != '\0' ? ": " : "", last));
}

static enum tri_status gone(struct tri_nccl_comm *comm, const char *what)
{
    TRI_TRY(tri_rendezvous_check(comm->job->rv, what));
    return tri_fail(TRI_COMM, "%s: the communicator was aborted", what);
}

enum tri_status tri_nccl_enter(struct tri_nccl_comm *comm, const char *what)
{
    pthread_mutex_lock(&comm->job->lock);
    if (comm->nccl != NULL)
        return TRI_OK;
    pthread_mutex_unlock(&comm->job->lock);
    return gone(comm, what);
}

enum tri_status tri_nccl_leave(struct tri_nccl_comm *comm, ncclResult_t code, const char *what)
{
    struct tri_nccl_job *job = comm->job;
    double deadline = tri_clock() + comm->base.timeout;
    ncclResult_t state = code;
    bool aborted = false;
    if (code == ncclSuccess || code == ncclInProgress)
        (void)job->api.get_async_error(comm->nccl, &state);
    pthread_mutex_unlock(&job->lock);
    for (int64_t polls = 0; state == ncclInProgress && !aborted; polls++) {
        pause_a_little(polls);
        pthread_mutex_lock(&job->lock);
        aborted = comm->nccl == NULL;
        if (!aborted)
            (void)job->api.get_async_error(comm->nccl, &state);
        pthread_mutex_unlock(&job->lock);
        if (state == ncclInProgress && !aborted && polls % 256 == 255 && tri_clock() > deadline)
            return late(comm, what);
    }
    if (aborted)
        return gone(comm, what);
    return state == ncclSuccess ? TRI_OK : failed(comm, state, what);
}

enum tri_status tri_nccl_wait(struct tri_nccl_comm *comm, cudaEvent_t event, const char *what)
{
    double deadline = tri_clock() + comm->base.timeout;
    cudaError_t code;
    for (int64_t polls = 0; (code = cudaEventQuery(event)) == cudaErrorNotReady; polls++) {
        pause_a_little(polls);
        if (polls % 256 == 255) {
            TRI_TRY(tri_rendezvous_check(comm->job->rv, what));
            if (tri_clock() > deadline)
                return late(comm, what);
        }
    }
    TRI_TRY(tri_cuda_check(code, what));
    return tri_rendezvous_check(comm->job->rv, what);
}

/* ---- collectives on their way
 * --------------------------------------------------------------------- */

/* Forget those that are done; the job is locked. */
static void drop_done(struct tri_nccl_comm *comm)
{
    while (comm->num_flights > 0) {
        struct tri_nccl_flight *first = &comm->flights[comm->first_flight];
        if (!first->queued || cudaEventQuery(first->done) == cudaErrorNotReady)
            return;
        comm->first_flight = (comm->first_flight + 1) % TRI_NCCL_IN_FLIGHT;
        comm->num_flights--;
    }
}

static struct tri_nccl_flight *last_flight(struct tri_nccl_comm *comm)
{
    return &comm->flights[(comm->first_flight + comm->num_flights - 1) % TRI_NCCL_IN_FLIGHT];
}

enum tri_status tri_nccl_begin(struct tri_nccl_comm *comm, cudaStream_t stream, const char *what)
{
    struct tri_nccl_job *job = comm->job;
    TRI_TRY(tri_rendezvous_check(job->rv, what));
    pthread_mutex_lock(&job->lock);
    if (comm->num_flights == TRI_NCCL_IN_FLIGHT)
        drop_done(comm);
    cudaEvent_t oldest =
        comm->num_flights == TRI_NCCL_IN_FLIGHT ? comm->flights[comm->first_flight].done : NULL;
    pthread_mutex_unlock(&job->lock);
    if (oldest != NULL)
        TRI_TRY(tri_nccl_wait(comm, oldest, what));

    pthread_mutex_lock(&job->lock);
    drop_done(comm);
    comm->num_flights++;
    struct tri_nccl_flight *flight = last_flight(comm);
    flight->what = what;
    flight->queued = false;
    flight->since = 0;
    cudaError_t code = cudaSuccess;
    if (flight->begun == NULL)
        code = cudaEventCreateWithFlags(&flight->begun, cudaEventDisableTiming);
    if (code == cudaSuccess && flight->done == NULL)
        code = cudaEventCreateWithFlags(&flight->done, cudaEventDisableTiming);
    if (code == cudaSuccess)
        code = cudaEventRecord(flight->begun, stream);
    pthread_mutex_unlock(&job->lock);
    return tri_cuda_check(code, "record an event");
}

enum tri_status tri_nccl_end(struct tri_nccl_comm *comm, cudaStream_t stream)
{
    pthread_mutex_lock(&comm->job->lock);
    struct tri_nccl_flight *flight = last_flight(comm);
    cudaError_t code = cudaEventRecord(flight->done, stream);
    flight->queued = code == cudaSuccess;
    pthread_mutex_unlock(&comm->job->lock);
    return tri_cuda_check(code, "record an event");
}
