/* Opening, splitting and closing communicators. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "comm/nccl/private.h"

enum { END_SECONDS = 5 /* for the other ranks to end a communicator too */ };

/* ---- one communicator --------------------------------------------------------------------------
 */

static enum tri_status open_queue(struct tri_nccl_comm *comm)
{
    int least, greatest;
    TRI_TRY(tri_cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "see priorities"));
    TRI_TRY(tri_cuda_check(
        cudaStreamCreateWithPriority(&comm->side.stream, cudaStreamNonBlocking, greatest),
        "create a stream"));
    TRI_TRY(tri_cuda_check(cudaEventCreateWithFlags(&comm->forked, cudaEventDisableTiming),
                           "create an event"));
    TRI_TRY(tri_cuda_check(cudaEventCreateWithFlags(&comm->joined, cudaEventDisableTiming),
                           "create an event"));
    return tri_nccl_exchange_open(comm);
}

static void free_comm(struct tri_nccl_comm *comm)
{
    tri_nccl_exchange_close(comm);
    for (int i = 0; i < TRI_NCCL_IN_FLIGHT; i++) {
        if (comm->flights[i].begun != NULL)
            (void)cudaEventDestroy(comm->flights[i].begun);
        if (comm->flights[i].done != NULL)
            (void)cudaEventDestroy(comm->flights[i].done);
    }
    if (comm->forked != NULL)
        (void)cudaEventDestroy(comm->forked);
    if (comm->joined != NULL)
        (void)cudaEventDestroy(comm->joined);
    if (comm->side.stream != NULL)
        (void)cudaStreamDestroy(comm->side.stream);
    free(comm);
}

/* Take it out of the list, so that nobody else looks at it. */
static void unlist(struct tri_nccl_comm *comm)
{
    pthread_mutex_lock(&comm->job->lock);
    for (struct tri_nccl_comm **p = &comm->job->comms; *p != NULL; p = &(*p)->next)
        if (*p == comm) {
            *p = comm->next;
            break;
        }
    pthread_mutex_unlock(&comm->job->lock);
}

/* End NCCL's part. Ranks of one machine end theirs together, so this waits for the others, but not
 * for one that does not come: then what is left is cut off. */
static void end_nccl(struct tri_nccl_comm *comm, bool well)
{
    const struct tri_nccl_api *api = &comm->job->api;
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 1000 * 1000};
    double deadline = tri_clock() + END_SECONDS;
    pthread_mutex_lock(&comm->job->lock);
    ncclResult_t state = ncclInProgress;
    if (comm->nccl != NULL && well)
        (void)api->finalize(comm->nccl);
    while (comm->nccl != NULL && well && state == ncclInProgress && tri_clock() < deadline) {
        if (api->get_async_error(comm->nccl, &state) != ncclSuccess)
            break;
        pthread_mutex_unlock(&comm->job->lock);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&comm->job->lock);
    }
    if (comm->nccl != NULL)
        (void)(state == ncclSuccess ? api->destroy(comm->nccl) : api->abort(comm->nccl));
    comm->nccl = NULL;
    pthread_mutex_unlock(&comm->job->lock);
}

/* A communicator without NCCL yet, in the job's list. */
static enum tri_status new_comm(struct tri_nccl_job *job, struct tri_rendezvous_group group,
                                double timeout, struct tri_nccl_comm **out)
{
    struct tri_nccl_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a communicator");
    comm->base = (struct tri_comm){.ops = &tri_nccl_ops,
                                   .rank = group.place,
                                   .size = group.size,
                                   .world_rank = tri_rendezvous_rank(job->rv),
                                   .timeout = timeout};
    comm->job = job;
    comm->group = group;
    enum tri_status st = open_queue(comm);
    if (st != TRI_OK) {
        free_comm(comm);
        return st;
    }
    pthread_mutex_lock(&job->lock);
    comm->next = job->comms;
    job->comms = comm;
    pthread_mutex_unlock(&job->lock);
    *out = comm;
    return TRI_OK;
}

static void drop_comm(struct tri_nccl_comm *comm, bool well)
{
    end_nccl(comm, well);
    unlist(comm);
    free_comm(comm);
}

static enum tri_status start_nccl(struct tri_nccl_comm *comm, const ncclUniqueId *id)
{
    static const char what[] = "the start of NCCL";
    struct tri_nccl_job *job = comm->job;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    TRI_TRY(tri_rendezvous_check(job->rv, what));
    pthread_mutex_lock(&job->lock);
    if (job->aborted) {
        pthread_mutex_unlock(&job->lock);
        return tri_fail(TRI_COMM, "%s: the job was aborted", what);
    }
    ncclResult_t code = job->api.init(&comm->nccl, comm->base.size, *id, comm->base.rank, &config);
    return tri_nccl_leave(comm, code, what); /* unlocks */
}

/* Connections are made when they are first used: use them now, so that their memory is taken before
 * a run counts what is free, and what does not work shows at the start. */
static enum tri_status try_out(struct tri_nccl_comm *comm)
{
    enum { WORDS = 2 };
    struct tri_block send[TRI_NCCL_MAX_RANKS], recv[TRI_NCCL_MAX_RANKS];
    int size = comm->base.size;
    float *scratch = NULL;
    float got = 0;
    size_t bytes = (size_t)(1 + WORDS * size) * sizeof *scratch;
    float one = 1;
    cudaStream_t stream = comm->side.stream;
    enum tri_status st;
    TRI_TRY(tri_cuda_check(cudaMalloc((void **)&scratch, bytes), "allocate device memory"));
    TRI_TRY_GOTO(st, tri_cuda_check(cudaMemsetAsync(scratch, 0, bytes, stream), "clear memory"),
                 free_scratch);
    TRI_TRY_GOTO(
        st,
        tri_cuda_check(cudaMemcpyAsync(scratch, &one, sizeof one, cudaMemcpyHostToDevice, stream),
                       "copy a number to the card"),
        free_scratch);
    for (int r = 0; r < size; r++) {
        send[r] = (struct tri_block){scratch + 1 + r, 1, sizeof one, sizeof one};
        recv[r] = (struct tri_block){scratch + 1 + size + r, 1, sizeof one, sizeof one};
    }
    TRI_TRY_GOTO(st, tri_nccl_all_to_all(&comm->base, &comm->side, 1, send, recv), free_scratch);
    TRI_TRY_GOTO(st,
                 tri_nccl_ops.all_reduce(&comm->base, &comm->side, scratch, 1, TRI_F32, TRI_SUM),
                 free_scratch);
    TRI_TRY_GOTO(st, tri_cuda_check(cudaEventRecord(comm->joined, stream), "record an event"),
                 free_scratch);
    TRI_TRY_GOTO(st, tri_nccl_wait(comm, comm->joined, "the first collective"), free_scratch);
    TRI_TRY_GOTO(st,
                 tri_cuda_check(cudaMemcpy(&got, scratch, sizeof got, cudaMemcpyDeviceToHost),
                                "read a number from the card"),
                 free_scratch);
    if (got != (float)size)
        st = tri_nccl_fail(comm->job,
                           tri_fail(TRI_COMM, "rank %d: NCCL's sum of 1 over %d ranks is %g",
                                    comm->base.world_rank, size, (double)got));
free_scratch:
    /* Not after a failure: freeing waits for kernels that may not have ended. */
    if (st == TRI_OK)
        (void)cudaFree(scratch);
    return st;
}

enum tri_status tri_nccl_connect(struct tri_nccl_job *job, struct tri_rendezvous_group *from,
                                 int leader, struct tri_rendezvous_group group, double timeout,
                                 struct tri_nccl_comm **out)
{
    ncclUniqueId mine, all[TRI_NCCL_MAX_RANKS];
    struct tri_nccl_comm *comm = NULL;
    memset(&mine, 0, sizeof mine);
    if (from->place == leader && group.size > 1) {
        ncclResult_t code = job->api.get_unique_id(&mine);
        if (code != ncclSuccess)
            return tri_nccl_fail(
                job, tri_fail(TRI_COMM, "NCCL cannot start: %s", job->api.error_string(code)));
    }
    TRI_TRY(tri_rendezvous_gather(job->rv, from, "NCCL's id", all, &mine, sizeof mine, timeout));
    TRI_TRY(new_comm(job, group, timeout, &comm));
    enum tri_status st = TRI_OK;
    if (group.size > 1)
        st = start_nccl(comm, &all[leader]);
    if (st == TRI_OK && group.size > 1)
        st = try_out(comm);
    if (st != TRI_OK) {
        drop_comm(comm, false);
        return st;
    }
    *out = comm;
    return TRI_OK;
}

enum tri_status tri_nccl_split(struct tri_comm *base, int color, int key, struct tri_comm **out)
{
    struct wish {
        int color, key;
    };
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    struct tri_nccl_comm *made = NULL;
    struct wish mine = {color, key}, all[TRI_NCCL_MAX_RANKS];
    struct tri_rendezvous_group group = {.sequence = 0};
    int leader = -1;
    TRI_TRY(tri_rendezvous_gather(comm->job->rv, &comm->group, "a split of ranks", all, &mine,
                                  sizeof mine, base->timeout));
    for (int r = 0; r < base->size; r++) {
        if (all[r].color != color)
            continue;
        leader = leader < 0 ? r : leader;
        group.size++;
        group.place += all[r].key < key || (all[r].key == key && r < base->rank);
    }
    group.id = tri_hash_word(tri_hash_word(comm->group.id, ++comm->splits), (uint64_t)leader);
    TRI_TRY(tri_nccl_connect(comm->job, &comm->group, leader, group, base->timeout, &made));
    *out = &made->base;
    return TRI_OK;
}

void tri_nccl_close(struct tri_comm *base)
{
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    struct tri_nccl_job *job = comm->job;
    bool last = comm->is_world;
    drop_comm(comm, true);
    if (!last)
        return;
    tri_nccl_job_close(job);
}
