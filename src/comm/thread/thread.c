#include "comm/thread/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/range.h"
#include "comm/reduce.h"
#include "comm/thread/group.h"

struct thread_comm {
    struct tri_comm base;
    struct tri_thread_group *group;
};

static struct tri_thread_group *group_of(const struct tri_comm *comm)
{
    return ((const struct thread_comm *)comm)->group;
}

/* Nobody may touch his buffers before everybody has read them. */
static enum tri_status part(struct tri_comm *comm, const char *name)
{
    return tri_thread_part(group_of(comm), comm, name);
}

static enum tri_status all_to_all(struct tri_comm *comm, struct tri_stream *s, int parts,
                                  const struct tri_block *send, const struct tri_block *recv)
{
    (void)s;
    struct tri_thread_group *group = group_of(comm);
    TRI_TRY(tri_thread_meet(
        group, comm,
        (struct tri_thread_call){.call = tri_call_all_to_all(comm, parts), .a = send}));
    enum tri_status st = TRI_OK;
    for (int i = 0; i < comm->size && st == TRI_OK; i++) {
        int r = (comm->rank + i) % comm->size; /* everybody starts with another peer */
        const struct tri_block *theirs = group->calls[r].a;
        for (int p = 0; p < parts && st == TRI_OK; p++) {
            const struct tri_block *from = &theirs[p * comm->size + comm->rank];
            const struct tri_block *to = &recv[p * comm->size + r];
            st = tri_block_compare(p, r, from, comm->rank, to);
            if (st == TRI_OK)
                tri_block_copy(to, from);
            else
                tri_thread_fail(group->job, comm->world_rank, st, tri_error_text());
        }
    }
    enum tri_status parted = part(comm, "all-to-all");
    return st != TRI_OK ? st : parted;
}

static enum tri_status all_gather(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                  const void *send, size_t bytes)
{
    (void)s;
    struct tri_thread_group *group = group_of(comm);
    TRI_TRY(tri_thread_meet(
        group, comm,
        (struct tri_thread_call){.call = tri_call_all_gather(comm, bytes), .a = send}));
    for (int r = 0; r < comm->size; r++) {
        char *to = (char *)recv + (size_t)r * bytes;
        if (to != group->calls[r].a)
            memcpy(to, group->calls[r].a, bytes);
    }
    return part(comm, "all-gather");
}

/* into = reduction over the ranks' buffers, each `offset` bytes further, in the order of ranks. */
static void reduce_peers(struct tri_comm *comm, void *into, size_t offset, int64_t n,
                         enum tri_dtype dtype, enum tri_reduction reduction)
{
    struct tri_thread_group *group = group_of(comm);
    const void *sources[TRI_THREAD_MAX_RANKS];
    for (int r = 0; r < comm->size; r++)
        sources[r] = (const char *)group->calls[r].a + offset;
    tri_reduce(into, sources, comm->size, n, dtype, reduction);
}

static enum tri_status reduce_scatter(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                      const void *send, int64_t n, enum tri_dtype dtype)
{
    (void)s;
    TRI_TRY(tri_thread_meet(
        group_of(comm), comm,
        (struct tri_thread_call){.call = tri_call_reduce(comm, "reduce-scatter", n, dtype, TRI_SUM),
                                 .a = send}));
    /* When recv lies in the own send, nobody else reads that part of it. */
    reduce_peers(comm, recv, (size_t)comm->rank * (size_t)n * tri_dtype_bytes(dtype), n, dtype,
                 TRI_SUM);
    return part(comm, "reduce-scatter");
}

static enum tri_status all_reduce(struct tri_comm *comm, struct tri_stream *s, void *data,
                                  int64_t n, enum tri_dtype dtype, enum tri_reduction reduction)
{
    (void)s;
    struct tri_thread_group *group = group_of(comm);
    size_t size = tri_dtype_bytes(dtype);
    TRI_TRY(tri_thread_meet(
        group, comm,
        (struct tri_thread_call){.call = tri_call_reduce(comm, "all-reduce", n, dtype, reduction),
                                 .a = data}));
    /* Each rank reduces its own share in place, which nobody else reads, then copies the others'.
     */
    struct tri_range own = tri_split(n, comm->size, comm->rank);
    reduce_peers(comm, (char *)data + (size_t)own.begin * size, (size_t)own.begin * size, own.count,
                 dtype, reduction);
    TRI_TRY(part(comm, "all-reduce"));
    for (int r = 0; r < comm->size; r++) {
        struct tri_range share = tri_split(n, comm->size, r);
        size_t offset = (size_t)share.begin * size;
        if (r != comm->rank)
            memcpy((char *)data + offset, (const char *)group->calls[r].a + offset,
                   (size_t)share.count * size);
    }
    return part(comm, "all-reduce");
}

static enum tri_status broadcast(struct tri_comm *comm, struct tri_stream *s, void *data,
                                 size_t bytes, int root)
{
    (void)s;
    struct tri_thread_group *group = group_of(comm);
    TRI_TRY(tri_thread_meet(
        group, comm,
        (struct tri_thread_call){.call = tri_call_broadcast(comm, bytes, root), .a = data}));
    if (comm->rank != root)
        memcpy(data, group->calls[root].a, bytes);
    return part(comm, "broadcast");
}

static enum tri_status reduce_host(struct tri_comm *comm, void *values, int64_t n,
                                   enum tri_dtype dtype, enum tri_reduction reduction)
{
    return all_reduce(comm, NULL, values, n, dtype, reduction);
}

static enum tri_status new_comm(struct tri_thread_group *group, int rank, int world_rank,
                                double timeout, struct tri_comm **out);

/* Rank of this communicator in its part, and the part's size. */
static void find_place(struct tri_comm *comm, int color, int key, int *rank, int *size, int *leader)
{
    const struct tri_thread_call *calls = group_of(comm)->calls;
    *rank = *size = 0;
    *leader = -1;
    for (int r = 0; r < comm->size; r++) {
        if (calls[r].x != color)
            continue;
        if (*leader < 0)
            *leader = r;
        (*size)++;
        if (calls[r].y < key || (calls[r].y == key && r < comm->rank))
            (*rank)++;
    }
}

static enum tri_status split(struct tri_comm *comm, int color, int key, struct tri_comm **out)
{
    struct tri_thread_group *group = group_of(comm);
    struct tri_thread_group *made = NULL;
    int rank, size, leader;
    TRI_TRY(tri_thread_meet(
        group, comm,
        (struct tri_thread_call){.call = tri_call_plain(comm, "split"), .x = color, .y = key}));
    find_place(comm, color, key, &rank, &size, &leader);
    TRI_TRY(part(comm, "split"));
    /* The first rank of each part makes the group and shows it to the others. */
    if (leader == comm->rank) {
        enum tri_status st = tri_thread_group_open(group->job, size, &made);
        if (st != TRI_OK) {
            tri_thread_fail(group->job, comm->world_rank, st, tri_error_text());
            return st;
        }
    }
    TRI_TRY(tri_thread_meet(
        group, comm, (struct tri_thread_call){.call = tri_call_plain(comm, "split"), .a = made}));
    made = (struct tri_thread_group *)(uintptr_t)group->calls[leader].a;
    TRI_TRY(part(comm, "split"));
    return new_comm(made, rank, comm->world_rank, comm->timeout, out);
}

static void abort_job(struct tri_comm *comm, enum tri_status status, const char *text)
{
    tri_thread_fail(group_of(comm)->job, comm->world_rank, status, text);
}

static void close_thread(struct tri_comm *comm)
{
    tri_thread_group_leave(group_of(comm));
    free(comm);
}

static const struct tri_comm_ops thread_ops = {
    .name = "thread",
    .all_to_all = all_to_all,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .reduce_host = reduce_host,
    .split = split,
    .abort = abort_job,
    .close = close_thread,
};

static enum tri_status new_comm(struct tri_thread_group *group, int rank, int world_rank,
                                double timeout, struct tri_comm **out)
{
    struct thread_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        enum tri_status st = tri_fail(TRI_NOMEM, "no memory for a communicator");
        tri_thread_fail(group->job, world_rank, st, tri_error_text());
        tri_thread_group_leave(group);
        return st;
    }
    comm->base = (struct tri_comm){.ops = &thread_ops,
                                   .rank = rank,
                                   .size = group->size,
                                   .world_rank = world_rank,
                                   .timeout = timeout};
    comm->group = group;
    *out = &comm->base;
    return TRI_OK;
}

/* ---- starting ranks
 * ------------------------------------------------------------------------------ */

struct rank {
    pthread_t thread;
    struct tri_thread_job *job;
    struct tri_comm *comm;
    tri_rank_function *function;
    void *ctx;
};

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    enum tri_status st = rank->function(rank->comm, rank->ctx);
    if (st != TRI_OK)
        tri_thread_fail(rank->job, rank->comm->world_rank, st, tri_error_text());
    tri_comm_close(rank->comm);
    return NULL;
}

/* Start and join all ranks; those that could not start make the others end. */
static void run_ranks(struct rank *ranks, int count)
{
    int started = 0;
    while (started < count &&
           pthread_create(&ranks[started].thread, NULL, run_rank, &ranks[started]) == 0)
        started++;
    for (int r = started; r < count; r++) {
        tri_thread_fail(ranks[r].job, r, TRI_NOMEM, "cannot start a thread for this rank");
        tri_comm_close(ranks[r].comm);
    }
    for (int r = 0; r < started; r++)
        pthread_join(ranks[r].thread, NULL);
}

enum tri_status tri_comm_threads_run(int ranks, double timeout, tri_rank_function *function,
                                     void *ctx)
{
    struct tri_thread_job job = {.failed = 0};
    struct tri_thread_group *group = NULL;
    struct rank list[TRI_THREAD_MAX_RANKS];
    if (ranks < 1 || ranks > TRI_THREAD_MAX_RANKS)
        return tri_fail(TRI_INVALID, "%d ranks as threads: 1 to %d are possible", ranks,
                        TRI_THREAD_MAX_RANKS);
    pthread_mutex_init(&job.lock, NULL);
    enum tri_status st = tri_thread_group_open(&job, ranks, &group);
    int made = 0;
    while (st == TRI_OK && made < ranks) {
        list[made] = (struct rank){.job = &job, .function = function, .ctx = ctx};
        st = new_comm(group, made, made, timeout, &list[made].comm);
        made++;
    }
    if (st == TRI_OK)
        run_ranks(list, ranks);
    else if (group != NULL) {
        for (int r = 0; r + 1 < made; r++)
            tri_comm_close(list[r].comm);
        for (int r = made; r < ranks; r++)
            tri_thread_group_leave(group); /* places that nobody took */
    }
    pthread_mutex_destroy(&job.lock);
    if (st == TRI_OK && job.failed != 0) {
        st = tri_fail(job.status, "%s", job.text);
        tri_error_name_rank(job.failed - 1);
    }
    return st;
}
