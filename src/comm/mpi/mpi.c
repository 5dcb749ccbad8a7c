#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#include "base/range.h"
#include "comm/mpi/mpi.h"
#include "comm/mpi/private.h"
#include "comm/reduce.h"

enum {
    MAX_RANKS = 4096,
    BLOCK = 1 << 15 /* elements of a rank's share of a reduction at a time */
};

static struct tri_mpi_comm *of(struct tri_comm *comm)
{
    return (struct tri_mpi_comm *)comm;
}

/* ---- collectives
 * ----------------------------------------------------------------------------------- */

static enum tri_status all_to_all(struct tri_comm *comm, struct tri_stream *s, int parts,
                                  const struct tri_block *send, const struct tri_block *recv)
{
    (void)s;
    TRI_TRY(tri_mpi_compare(of(comm), tri_call_all_to_all(comm, parts)));
    TRI_TRY(tri_mpi_compare_blocks(of(comm), parts, send, recv));
    return tri_mpi_exchange(of(comm), parts, send, recv, "all-to-all");
}

static enum tri_status all_gather(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                  const void *send, size_t bytes)
{
    (void)s;
    struct tri_block from[MAX_RANKS], to[MAX_RANKS];
    TRI_TRY(tri_mpi_compare(of(comm), tri_call_all_gather(comm, bytes)));
    for (int r = 0; r < comm->size; r++) {
        from[r] = tri_mpi_flat_block(send, bytes);
        to[r] = tri_mpi_flat_block((char *)recv + (size_t)r * bytes, bytes);
    }
    return tri_mpi_exchange(of(comm), 1, from, to, "all-gather");
}

/* into (n) = sum or extreme over ranks, in their order, of the n elements that start at `offset` in
 * each rank's `data`, where every rank gives its own offset table: rank r gets those at offsets[r].
 * Works in blocks through the scratch, so that memory does not grow with n. */
static enum tri_status reduce_shares(struct tri_mpi_comm *comm, void *into, const void *data,
                                     const struct tri_range *shares, enum tri_dtype dtype,
                                     enum tri_reduction reduction, const char *what)
{
    size_t width = tri_dtype_bytes(dtype);
    int size = comm->base.size;
    int64_t longest = 0;
    for (int r = 0; r < size; r++)
        longest = shares[r].count > longest ? shares[r].count : longest;
    struct tri_block send[MAX_RANKS], recv[MAX_RANKS];
    const void *sources[MAX_RANKS];
    for (int64_t done = 0; done < longest; done += BLOCK) {
        int64_t mine = 0;
        for (int r = 0; r < size; r++) {
            int64_t left = shares[r].count - done;
            int64_t n = left < 0 ? 0 : left < BLOCK ? left : BLOCK;
            mine = r == comm->base.rank ? n : mine;
            send[r] = tri_mpi_flat_block(
                (const char *)data + (size_t)(shares[r].begin + done) * width, (size_t)n * width);
        }
        for (int r = 0; r < size; r++) {
            char *room = (char *)comm->scratch + (size_t)r * BLOCK * sizeof(double);
            recv[r] = tri_mpi_flat_block(room, (size_t)mine * width);
            sources[r] = room;
        }
        TRI_TRY(tri_mpi_exchange(comm, 1, send, recv, what));
        tri_reduce((char *)into + (size_t)done * width, sources, size, mine, dtype, reduction);
    }
    return TRI_OK;
}

static enum tri_status reduce_scatter(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                      const void *send, int64_t n, enum tri_dtype dtype)
{
    (void)s;
    struct tri_range shares[MAX_RANKS];
    TRI_TRY(tri_mpi_compare(of(comm), tri_call_reduce(comm, "reduce-scatter", n, dtype, TRI_SUM)));
    for (int r = 0; r < comm->size; r++)
        shares[r] = (struct tri_range){r * n, n};
    return reduce_shares(of(comm), recv, send, shares, dtype, TRI_SUM, "reduce-scatter");
}

static enum tri_status all_reduce(struct tri_comm *comm, struct tri_stream *s, void *data,
                                  int64_t n, enum tri_dtype dtype, enum tri_reduction reduction)
{
    (void)s;
    size_t width = tri_dtype_bytes(dtype);
    struct tri_range shares[MAX_RANKS];
    struct tri_block from[MAX_RANKS], to[MAX_RANKS];
    TRI_TRY(tri_mpi_compare(of(comm), tri_call_reduce(comm, "all-reduce", n, dtype, reduction)));
    for (int r = 0; r < comm->size; r++)
        shares[r] = tri_split(n, comm->size, r);
    char *own = (char *)data + (size_t)shares[comm->rank].begin * width;
    /* In place: nobody asks for another part of what is overwritten after it was sent. */
    TRI_TRY(reduce_shares(of(comm), own, data, shares, dtype, reduction, "all-reduce"));
    for (int r = 0; r < comm->size; r++) {
        from[r] = tri_mpi_flat_block(own, (size_t)shares[comm->rank].count * width);
        to[r] = tri_mpi_flat_block((char *)data + (size_t)shares[r].begin * width,
                                   (size_t)shares[r].count * width);
    }
    return tri_mpi_exchange(of(comm), 1, from, to, "all-reduce");
}

static enum tri_status broadcast(struct tri_comm *comm, struct tri_stream *s, void *data,
                                 size_t bytes, int root)
{
    (void)s;
    struct tri_block from[MAX_RANKS], to[MAX_RANKS];
    TRI_TRY(tri_mpi_compare(of(comm), tri_call_broadcast(comm, bytes, root)));
    for (int r = 0; r < comm->size; r++) {
        from[r] = tri_mpi_flat_block(data, comm->rank == root ? bytes : 0);
        to[r] = tri_mpi_flat_block(data, r == root ? bytes : 0);
    }
    return tri_mpi_exchange(of(comm), 1, from, to, "broadcast");
}

static enum tri_status reduce_host(struct tri_comm *comm, void *values, int64_t n,
                                   enum tri_dtype dtype, enum tri_reduction reduction)
{
    return all_reduce(comm, NULL, values, n, dtype, reduction);
}

/* ---- life
 * ------------------------------------------------------------------------------------------ */

static enum tri_status split(struct tri_comm *comm, int color, int key, struct tri_comm **out)
{
    MPI_Comm made;
    TRI_TRY(tri_mpi_compare(of(comm), tri_call_plain(comm, "split")));
    struct tri_mpi_guard guard;
    TRI_TRY(tri_comm_agree(comm, "a split of ranks", 0)); /* news of a failed rank is heard there */
    TRI_TRY(tri_mpi_guard_begin(&guard, comm->world_rank, comm->timeout, "split",
                                tri_mpi_advice_stuck));
    int code = MPI_Comm_split(of(comm)->mpi, color, key, &made);
    tri_mpi_guard_end(&guard);
    TRI_MPI_TRY(code, "split");
    return tri_mpi_new_comm(made, of(comm)->job, comm->timeout, out);
}

static void abort_job(struct tri_comm *comm, enum tri_status status, const char *text)
{
    tri_mpi_tell(of(comm)->job, status, text);
}

static void close_mpi(struct tri_comm *comm)
{
    if (!of(comm)->job->failed)
        MPI_Comm_free(&of(comm)->mpi);
    free(of(comm)->scratch);
    free(comm);
}

static const struct tri_comm_ops mpi_ops = {
    .name = "mpi",
    .all_to_all = all_to_all,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .reduce_host = reduce_host,
    .split = split,
    .abort = abort_job,
    .close = close_mpi,
};

enum tri_status tri_mpi_new_comm(MPI_Comm mpi, struct tri_mpi_job *job, double timeout,
                                 struct tri_comm **out)
{
    int rank, size;
    TRI_MPI_TRY(MPI_Comm_rank(mpi, &rank), "communicator");
    TRI_MPI_TRY(MPI_Comm_size(mpi, &size), "communicator");
    if (size > MAX_RANKS)
        return tri_fail(TRI_UNSUPPORTED, "%d ranks; at most %d", size, MAX_RANKS);
    TRI_MPI_TRY(MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN), "communicator");
    struct tri_mpi_comm *comm = calloc(1, sizeof *comm);
    void *scratch = malloc((size_t)size * BLOCK * sizeof(double));
    if (comm == NULL || scratch == NULL) {
        free(comm);
        free(scratch);
        return tri_fail(TRI_NOMEM, "no memory for a communicator of %d ranks", size);
    }
    comm->base = (struct tri_comm){
        .ops = &mpi_ops, .rank = rank, .size = size, .world_rank = job->rank, .timeout = timeout};
    comm->mpi = mpi;
    comm->job = job;
    comm->scratch = scratch;
    *out = &comm->base;
    return TRI_OK;
}
