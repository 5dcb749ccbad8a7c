/* Waiting with a deadline, and the news that ends every wait. */
#include <mpi.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "comm/mpi/private.h"

enum { NEWS_TAG = 1, NEWS_BYTES = 512 };

enum tri_status tri_mpi_failed(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return tri_fail(TRI_COMM, "%s: MPI: %s", what, text);
}

void tri_mpi_tell(struct tri_mpi_job *job, enum tri_status status, const char *text)
{
    static char news[NEWS_BYTES]; /* lives until the process ends: nobody waits for these sends */
    (void)status;
    if (job->failed)
        return;
    job->failed = true;
    snprintf(news, sizeof news, "rank %d failed: %.400s", job->rank, text);
    for (int r = 0; r < job->size; r++) {
        MPI_Request request;
        if (r != job->rank && MPI_Isend(news, (int)sizeof news, MPI_CHAR, r, NEWS_TAG, job->news,
                                        &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}

/* Has another rank said that it failed? */
static enum tri_status hear(struct tri_mpi_job *job, const char *what)
{
    char news[NEWS_BYTES];
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, NEWS_TAG, job->news, &there, &status) != MPI_SUCCESS || !there)
        return TRI_OK;
    MPI_Recv(news, (int)sizeof news, MPI_CHAR, status.MPI_SOURCE, NEWS_TAG, job->news,
             MPI_STATUS_IGNORE);
    news[NEWS_BYTES - 1] = '\0';
    job->failed = true;
    return tri_fail(TRI_PEER, "%.450s (this rank was in %s)", news, what);
}

/* Poll fast at first, for short collectives, then let others have the core. */
static void pause_a_little(int64_t polls)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = polls < 4096 ? 0 : 200 * 1000};
    if (polls >= 256)
        nanosleep(&pause, NULL);
}

/* "rank 1, rank 4": whose messages have not come, by their numbers in the whole job. */
static void list_missing(const struct tri_mpi_comm *comm, MPI_Request *requests, const int *peers,
                         int count, char *text, size_t bytes)
{
    MPI_Group group, world;
    size_t used = 0;
    int last = -1;
    text[0] = '\0';
    if (MPI_Comm_group(comm->mpi, &group) != MPI_SUCCESS ||
        MPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
        return;
    for (int i = 0; i < count && used + 16 < bytes; i++) {
        int done = 1, rank = -1;
        if (peers[i] < 0 || peers[i] == last ||
            MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done ||
            MPI_Group_translate_ranks(group, 1, &peers[i], world, &rank) != MPI_SUCCESS)
            continue;
        last = peers[i]; /* a peer's parts follow each other */
        used +=
            (size_t)snprintf(text + used, bytes - used, "%srank %d", used > 0 ? ", " : "", rank);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

static enum tri_status fail_late(struct tri_mpi_comm *comm, MPI_Request *requests, const int *peers,
                                 int count, const char *what)
{
    char missing[200];
    list_missing(comm, requests, peers, count, missing, sizeof missing);
    enum tri_status st = tri_fail(
        TRI_COMM, "rank %d waited %.3g s in %s: %s%s%s", comm->base.world_rank, comm->base.timeout,
        what, tri_mpi_advice_stuck, missing[0] != '\0' ? "; not there: " : "", missing);
    tri_mpi_tell(comm->job, st, tri_error_text());
    return st;
}

enum tri_status tri_mpi_wait(struct tri_mpi_comm *comm, MPI_Request *requests, const int *peers,
                             int count, const char *what)
{
    double start = tri_clock();
    for (int64_t polls = 0;; polls++) {
        int done = 0;
        int code = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        if (code != MPI_SUCCESS)
            return tri_mpi_failed(code, what);
        if (done)
            return TRI_OK;
        if (polls % 64 == 63)
            TRI_TRY(hear(comm->job, what));
        if (tri_clock() - start > comm->base.timeout)
            return fail_late(comm, requests, peers, count, what);
        pause_a_little(polls);
    }
}
