/* One rank talks to itself. Its buffers are host memory: on a device, callers skip an exchange that
 * has nobody to exchange with. */
#include "comm/self/self.h"

#include <stdlib.h>
#include <string.h>

#include "comm/reduce.h"

static enum tri_status all_to_all(struct tri_comm *comm, struct tri_stream *s, int parts,
                                  const struct tri_block *send, const struct tri_block *recv)
{
    (void)comm;
    (void)s;
    for (int p = 0; p < parts; p++)
        tri_block_copy(&recv[p], &send[p]);
    return TRI_OK;
}

static enum tri_status all_gather(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                  const void *send, size_t bytes)
{
    (void)comm;
    (void)s;
    memmove(recv, send, bytes);
    return TRI_OK;
}

static enum tri_status reduce_scatter(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                      const void *send, int64_t n, enum tri_dtype dtype)
{
    (void)comm;
    (void)s;
    memmove(recv, send, (size_t)n * tri_dtype_bytes(dtype));
    return TRI_OK;
}

static enum tri_status all_reduce(struct tri_comm *comm, struct tri_stream *s, void *data,
                                  int64_t n, enum tri_dtype dtype, enum tri_reduction reduction)
{
    (void)comm;
    (void)s;
    (void)data;
    (void)n;
    (void)dtype;
    (void)reduction;
    return TRI_OK;
}

static enum tri_status broadcast(struct tri_comm *comm, struct tri_stream *s, void *data,
                                 size_t bytes, int root)
{
    (void)comm;
    (void)s;
    (void)data;
    (void)bytes;
    (void)root;
    return TRI_OK;
}

static enum tri_status reduce_host(struct tri_comm *comm, void *values, int64_t n,
                                   enum tri_dtype dtype, enum tri_reduction reduction)
{
    return all_reduce(comm, NULL, values, n, dtype, reduction);
}

static enum tri_status split(struct tri_comm *comm, int color, int key, struct tri_comm **out)
{
    (void)comm;
    (void)color;
    (void)key;
    return tri_comm_self(out);
}

static void abort_job(struct tri_comm *comm, enum tri_status status, const char *text)
{
    (void)comm;
    (void)status;
    (void)text;
}

static void close_self(struct tri_comm *comm)
{
    free(comm);
}

static const struct tri_comm_ops self_ops = {
    .name = "self",
    .all_to_all = all_to_all,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .reduce_host = reduce_host,
    .split = split,
    .abort = abort_job,
    .close = close_self,
};

enum tri_status tri_comm_self(struct tri_comm **out)
{
    struct tri_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a communicator");
    comm->ops = &self_ops;
    comm->size = 1;
    *out = comm;
    return TRI_OK;
}

/* ---- a rank that talks to nobody ---------------------------------------------------------------
 */

struct dry_comm {
    struct tri_comm base;
    const struct tri_ops *ops; /* NULL: nothing is touched */
};

static const struct tri_ops *ops_of(const struct tri_comm *comm)
{
    return ((const struct dry_comm *)comm)->ops;
}

static enum tri_status dry_all_to_all(struct tri_comm *comm, struct tri_stream *s, int parts,
                                      const struct tri_block *send, const struct tri_block *recv)
{
    (void)send;
    if (ops_of(comm) == NULL)
        return TRI_OK;
    for (int i = 0; i < parts * comm->size; i++) {
        struct tri_view block =
            tri_view2(recv[i].data, TRI_U8, recv[i].rows, (int64_t)recv[i].row_bytes);
        block.stride[0] = (int64_t)recv[i].stride;
        TRI_TRY(ops_of(comm)->zero(s, block));
    }
    return TRI_OK;
}

static enum tri_status dry_all_gather(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                      const void *send, size_t bytes)
{
    (void)send;
    for (int r = 0; r < comm->size && ops_of(comm) != NULL; r++)
        if (r != comm->rank)
            TRI_TRY(ops_of(comm)->zero(
                s, tri_view1((char *)recv + (size_t)r * bytes, TRI_U8, (int64_t)bytes)));
    return TRI_OK;
}

/* As if the others had nothing to add: the sum is this rank's own part. */
static enum tri_status dry_reduce_scatter(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                          const void *send, int64_t n, enum tri_dtype dtype)
{
    size_t begin = (size_t)(comm->rank * n) * tri_dtype_bytes(dtype);
    void *own = (char *)(uintptr_t)send + begin;
    if (ops_of(comm) == NULL || own == recv)
        return TRI_OK;
    return ops_of(comm)->copy(s, tri_view1(recv, dtype, n), tri_view1(own, dtype, n));
}

static enum tri_status dry_split(struct tri_comm *comm, int color, int key, struct tri_comm **out);

/* As if every rank held the same. */
static enum tri_status dry_reduce_host(struct tri_comm *comm, void *values, int64_t n,
                                       enum tri_dtype dtype, enum tri_reduction reduction)
{
    for (int64_t i = 0; i < n && reduction == TRI_SUM; i++)
        if (dtype == TRI_I64)
            ((int64_t *)values)[i] *= comm->size;
        else if (dtype == TRI_F64)
            ((double *)values)[i] *= comm->size;
        else
            ((float *)values)[i] *= (float)comm->size;
    return TRI_OK;
}

static const struct tri_comm_ops dry_ops = {
    .name = "dry",
    .all_to_all = dry_all_to_all,
    .all_gather = dry_all_gather,
    .reduce_scatter = dry_reduce_scatter,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .reduce_host = dry_reduce_host,
    .split = dry_split,
    .abort = abort_job,
    .close = close_self,
};

enum tri_status tri_comm_dry(int rank, int size, const struct tri_ops *ops, struct tri_comm **out)
{
    struct dry_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a communicator");
    comm->base = (struct tri_comm){.ops = &dry_ops, .rank = rank, .size = size, .world_rank = rank};
    comm->ops = ops;
    *out = &comm->base;
    return TRI_OK;
}

static enum tri_status dry_split(struct tri_comm *comm, int color, int key, struct tri_comm **out)
{
    (void)color;
    (void)key;
    return tri_comm_dry(comm->rank, comm->size, ops_of(comm), out);
}
