#include <mpi.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

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

#define MPI_TRY(call, what)                                                                        \
    do {                                                                                           \
        int mpi_code_ = (call);                                                                    \
        if (mpi_code_ != MPI_SUCCESS)                                                              \
            return tri_mpi_failed(mpi_code_, what);                                                \
    } while (0)

/* ---- blocks of any size
 * -------------------------------------------------------------------------- */

/* A committed type for a block: strided rows, and more bytes than an int counts. */
static enum tri_status block_type(const struct tri_block *b, MPI_Datatype *out)
{
    const size_t piece = (size_t)1 << 20;
    size_t bytes = b->stride == b->row_bytes ? (size_t)b->rows * b->row_bytes : b->row_bytes;
    MPI_Datatype row;
    if (bytes <= piece) {
        MPI_TRY(MPI_Type_contiguous((int)bytes, MPI_BYTE, &row), "block type");
    } else {
        MPI_Datatype types[2], mebi;
        int counts[2] = {(int)(bytes / piece), (int)(bytes % piece)};
        MPI_Aint places[2] = {0, (MPI_Aint)(bytes / piece * piece)};
        MPI_TRY(MPI_Type_contiguous((int)piece, MPI_BYTE, &mebi), "block type");
        types[0] = mebi;
        types[1] = MPI_BYTE;
        MPI_TRY(MPI_Type_create_struct(2, counts, places, types, &row), "block type");
        MPI_TRY(MPI_Type_free(&mebi), "block type");
    }
    MPI_Datatype type = row;
    if (b->stride != b->row_bytes) {
        MPI_TRY(MPI_Type_create_hvector((int)b->rows, 1, (MPI_Aint)b->stride, row, &type),
                "block type");
        MPI_TRY(MPI_Type_free(&row), "block type");
    }
    MPI_TRY(MPI_Type_commit(&type), "block type");
    *out = type;
    return TRI_OK;
}

static struct tri_block flat_block(const void *data, size_t bytes)
{
    return (struct tri_block){
        .data = (void *)(uintptr_t)data, .rows = 1, .row_bytes = bytes, .stride = bytes};
}

static bool is_empty(const struct tri_block *b)
{
    return b->rows == 0 || b->row_bytes == 0;
}

/* Start to send or receive a block; nothing is started for an empty one. */
static enum tri_status start(struct tri_mpi_comm *comm, bool send, const struct tri_block *b,
                             int peer, int tag, MPI_Request *request)
{
    MPI_Datatype type;
    *request = MPI_REQUEST_NULL;
    if (is_empty(b))
        return TRI_OK;
    TRI_TRY(block_type(b, &type));
    int code = send ? MPI_Isend(b->data, 1, type, peer, tag, comm->mpi, request)
                    : MPI_Irecv(b->data, 1, type, peer, tag, comm->mpi, request);
    MPI_TRY(MPI_Type_free(&type), "block type"); /* freed when the transfer is done */
    MPI_TRY(code, "block");
    return TRI_OK;
}

/* Every rank's block to every other; `what` names the collective in errors. */
static enum tri_status exchange(struct tri_mpi_comm *comm, int parts, const struct tri_block *send,
                                const struct tri_block *recv, const char *what)
{
    int size = comm->base.size;
    int n = 0;
    enum tri_status st = TRI_OK;
    MPI_Request *requests = malloc((size_t)(2 * parts * size) * sizeof *requests);
    if (requests == NULL)
        return tri_fail(TRI_NOMEM, "no memory for %d requests", 2 * parts * size);
    for (int i = 0; i < size && st == TRI_OK; i++) {
        int r = (comm->base.rank + i) % size; /* everybody starts with another peer */
        for (int p = 0; p < parts && st == TRI_OK; p++) {
            const struct tri_block *to = &send[p * size + r];
            const struct tri_block *from = &recv[p * size + r];
            if (r == comm->base.rank) {
                if (from->data != to->data)
                    tri_block_copy(from, to);
                continue;
            }
            st = start(comm, false, from, r, p, &requests[n++]);
            if (st == TRI_OK)
                st = start(comm, true, to, r, p, &requests[n++]);
        }
    }
    if (st == TRI_OK)
        st = tri_mpi_wait(comm, requests, n, what);
    free(requests);
    return st;
}

/* ---- collectives
 * ----------------------------------------------------------------------------------- */

static enum tri_status all_to_all(struct tri_comm *comm, struct tri_stream *s, int parts,
                                  const struct tri_block *send, const struct tri_block *recv)
{
    (void)s;
    return exchange(of(comm), parts, send, recv, "all-to-all");
}

static enum tri_status all_gather(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                  const void *send, size_t bytes)
{
    (void)s;
    struct tri_block from[MAX_RANKS], to[MAX_RANKS];
    for (int r = 0; r < comm->size; r++) {
        from[r] = flat_block(send, bytes);
        to[r] = flat_block((char *)recv + (size_t)r * bytes, bytes);
    }
    return exchange(of(comm), 1, from, to, "all-gather");
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
            send[r] = flat_block((const char *)data + (size_t)(shares[r].begin + done) * width,
                                 (size_t)n * width);
        }
        for (int r = 0; r < size; r++) {
            char *room = (char *)comm->scratch + (size_t)r * BLOCK * sizeof(double);
            recv[r] = flat_block(room, (size_t)mine * width);
            sources[r] = room;
        }
        TRI_TRY(exchange(comm, 1, send, recv, what));
        tri_reduce((char *)into + (size_t)done * width, sources, size, mine, dtype, reduction);
    }
    return TRI_OK;
}

static enum tri_status reduce_scatter(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                      const void *send, int64_t n, enum tri_dtype dtype)
{
    (void)s;
    struct tri_range shares[MAX_RANKS];
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
    for (int r = 0; r < comm->size; r++)
        shares[r] = tri_split(n, comm->size, r);
    char *own = (char *)data + (size_t)shares[comm->rank].begin * width;
    /* In place: nobody asks for another part of what is overwritten after it was sent. */
    TRI_TRY(reduce_shares(of(comm), own, data, shares, dtype, reduction, "all-reduce"));
    for (int r = 0; r < comm->size; r++) {
        from[r] = flat_block(own, (size_t)shares[comm->rank].count * width);
        to[r] = flat_block((char *)data + (size_t)shares[r].begin * width,
                           (size_t)shares[r].count * width);
    }
    return exchange(of(comm), 1, from, to, "all-reduce");
}

static enum tri_status broadcast(struct tri_comm *comm, struct tri_stream *s, void *data,
                                 size_t bytes, int root)
{
    (void)s;
    struct tri_block from[MAX_RANKS], to[MAX_RANKS];
    for (int r = 0; r < comm->size; r++) {
        from[r] = flat_block(data, comm->rank == root ? bytes : 0);
        to[r] = flat_block(data, r == root ? bytes : 0);
    }
    return exchange(of(comm), 1, from, to, "broadcast");
}

static enum tri_status reduce_host(struct tri_comm *comm, void *values, int64_t n,
                                   enum tri_dtype dtype, enum tri_reduction reduction)
{
    return all_reduce(comm, NULL, values, n, dtype, reduction);
}

/* ---- life
 * ------------------------------------------------------------------------------------------ */

static enum tri_status new_comm(MPI_Comm mpi, struct tri_mpi_job *job, double timeout,
                                struct tri_comm **out);

static enum tri_status split(struct tri_comm *comm, int color, int key, struct tri_comm **out)
{
    MPI_Comm made;
    TRI_TRY(tri_comm_agree(comm, "a split of ranks", 0)); /* MPI_Comm_split has no deadline */
    MPI_TRY(MPI_Comm_split(of(comm)->mpi, color, key, &made), "split");
    return new_comm(made, of(comm)->job, comm->timeout, out);
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

static enum tri_status new_comm(MPI_Comm mpi, struct tri_mpi_job *job, double timeout,
                                struct tri_comm **out)
{
    int rank, size;
    MPI_TRY(MPI_Comm_rank(mpi, &rank), "communicator");
    MPI_TRY(MPI_Comm_size(mpi, &size), "communicator");
    if (size > MAX_RANKS)
        return tri_fail(TRI_UNSUPPORTED, "%d ranks; at most %d", size, MAX_RANKS);
    MPI_TRY(MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN), "communicator");
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

enum tri_status tri_comm_mpi_open(double timeout, struct tri_comm **world)
{
    static struct tri_mpi_job job;
    int provided;
    MPI_Comm ranks;
    MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "MPI_Init");
    MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &ranks), "MPI_Init");
    MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &job.news), "MPI_Init");
    MPI_TRY(MPI_Comm_rank(ranks, &job.rank), "MPI_Init");
    MPI_TRY(MPI_Comm_size(ranks, &job.size), "MPI_Init");
    MPI_TRY(MPI_Comm_set_errhandler(job.news, MPI_ERRORS_RETURN), "MPI_Init");
    return new_comm(ranks, &job, timeout, world);
}

void tri_comm_mpi_finish(struct tri_comm *world, enum tri_status status)
{
    struct tri_mpi_job *job = of(world)->job;
    if (status != TRI_OK)
        tri_mpi_tell(job, status, tri_error_text());
    bool failed = job->failed;
    tri_comm_close(world);
    if (!failed) {
        MPI_Comm_free(&job->news);
        MPI_Finalize();
        return;
    }
    /* Give the others time to hear of it and to say so themselves, then end what is left. */
    struct timespec pause = {.tv_sec = 1, .tv_nsec = 0};
    nanosleep(&pause, NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
