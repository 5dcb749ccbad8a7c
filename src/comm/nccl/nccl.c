/* The collectives. */
#include <stdlib.h>
#include <string.h>

#include "comm/nccl/private.h"
#include "comm/reduce.h"

static enum tri_status type_of(enum tri_dtype dtype, ncclDataType_t *out)
{
    switch (dtype) {
    case TRI_F32:
        *out = ncclFloat32;
        return TRI_OK;
    case TRI_F64:
        *out = ncclFloat64;
        return TRI_OK;
    case TRI_BF16:
        *out = ncclBfloat16;
        return TRI_OK;
    case TRI_I32:
        *out = ncclInt32;
        return TRI_OK;
    case TRI_I64:
        *out = ncclInt64;
        return TRI_OK;
    default:
        return tri_fail(TRI_UNSUPPORTED, "NCCL: no sums of %s", tri_dtype_name(dtype));
    }
}

static ncclRedOp_t reduction_of(enum tri_reduction reduction)
{
    return reduction == TRI_SUM ? ncclSum : reduction == TRI_MIN ? ncclMin : ncclMax;
}

/* On one rank: to = from, where that is not the same memory. */
static enum tri_status copy_alone(cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    if (to == from || bytes == 0)
        return TRI_OK;
    return tri_cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                          "copy what stays on this rank");
}

static enum tri_status all_gather(struct tri_comm *base, struct tri_stream *s, void *recv,
                                  const void *send, size_t bytes)
{
    static const char what[] = "all-gather";
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    TRI_TRY(tri_nccl_compare(comm, tri_call_all_gather(base, bytes)));
    if (base->size == 1 || bytes == 0)
        return copy_alone(s->stream, recv, send, bytes);
    TRI_TRY(tri_nccl_begin(comm, s->stream, what));
    TRI_TRY(tri_nccl_enter(comm, what));
    TRI_TRY(tri_nccl_leave(
        comm, comm->job->api.all_gather(send, recv, bytes, ncclInt8, comm->nccl, s->stream), what));
    return tri_nccl_end(comm, s->stream);
}

static enum tri_status reduce_scatter(struct tri_comm *base, struct tri_stream *s, void *recv,
                                      const void *send, int64_t n, enum tri_dtype dtype)
{
    static const char what[] = "reduce-scatter";
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    ncclDataType_t type = ncclInt8;
    TRI_TRY(type_of(dtype, &type));
    TRI_TRY(tri_nccl_compare(comm, tri_call_reduce(base, what, n, dtype, TRI_SUM)));
    if (base->size == 1 || n == 0)
        return copy_alone(s->stream, recv, send, (size_t)n * tri_dtype_bytes(dtype));
    TRI_TRY(tri_nccl_begin(comm, s->stream, what));
    TRI_TRY(tri_nccl_enter(comm, what));
    TRI_TRY(tri_nccl_leave(
        comm,
        comm->job->api.reduce_scatter(send, recv, (size_t)n, type, ncclSum, comm->nccl, s->stream),
        what));
    return tri_nccl_end(comm, s->stream);
}

static enum tri_status all_reduce(struct tri_comm *base, struct tri_stream *s, void *data,
                                  int64_t n, enum tri_dtype dtype, enum tri_reduction reduction)
{
    static const char what[] = "all-reduce";
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    ncclDataType_t type = ncclInt8;
    TRI_TRY(type_of(dtype, &type));
    TRI_TRY(tri_nccl_compare(comm, tri_call_reduce(base, what, n, dtype, reduction)));
    if (base->size == 1 || n == 0)
        return TRI_OK;
    TRI_TRY(tri_nccl_begin(comm, s->stream, what));
    TRI_TRY(tri_nccl_enter(comm, what));
    TRI_TRY(
        tri_nccl_leave(comm,
                       comm->job->api.all_reduce(data, data, (size_t)n, type,
                                                 reduction_of(reduction), comm->nccl, s->stream),
                       what));
    return tri_nccl_end(comm, s->stream);
}

static enum tri_status broadcast(struct tri_comm *base, struct tri_stream *s, void *data,
                                 size_t bytes, int root)
{
    static const char what[] = "broadcast";
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    TRI_TRY(tri_nccl_compare(comm, tri_call_broadcast(base, bytes, root)));
    if (base->size == 1 || bytes == 0)
        return TRI_OK;
    TRI_TRY(tri_nccl_begin(comm, s->stream, what));
    TRI_TRY(tri_nccl_enter(comm, what));
    TRI_TRY(tri_nccl_leave(
        comm, comm->job->api.broadcast(data, data, bytes, ncclInt8, root, comm->nccl, s->stream),
        what));
    return tri_nccl_end(comm, s->stream);
}

/* ---- values in host memory go over the rendezvous ----------------------------------------------
 */

enum { VALUES = 2048 /* of a rank at a time */ };

static enum tri_status reduce_host(struct tri_comm *base, void *values, int64_t n,
                                   enum tri_dtype dtype, enum tri_reduction reduction)
{
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    const void *sources[TRI_NCCL_MAX_RANKS];
    size_t width = tri_dtype_bytes(dtype);
    int64_t most = n < VALUES ? n : VALUES;
    enum tri_status st = TRI_OK;
    if (base->size == 1 || n == 0)
        return TRI_OK;
    char *all = malloc((size_t)base->size * (size_t)most * width);
    if (all == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the values of %d ranks", base->size);
    for (int64_t begin = 0; begin < n && st == TRI_OK; begin += VALUES) {
        int64_t some = n - begin < VALUES ? n - begin : VALUES;
        char *own = (char *)values + (size_t)begin * width;
        st = tri_rendezvous_gather(comm->job->rv, &comm->group, "a sum", all, own,
                                   (size_t)some * width, base->timeout);
        for (int r = 0; r < base->size; r++)
            sources[r] = all + (size_t)r * (size_t)some * width;
        if (st == TRI_OK)
            tri_reduce(own, sources, base->size, some, dtype, reduction);
    }
    free(all);
    return st;
}

/* ---- the own queue -----------------------------------------------------------------------------
 */

static enum tri_status fork_queue(struct tri_comm *base, struct tri_stream *s,
                                  struct tri_stream **side)
{
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    TRI_TRY(tri_cuda_check(cudaEventRecord(comm->forked, s->stream), "record an event"));
    TRI_TRY(tri_cuda_check(cudaStreamWaitEvent(comm->side.stream, comm->forked, 0),
                           "wait for an event"));
    *side = &comm->side;
    return TRI_OK;
}

static enum tri_status join_queue(struct tri_comm *base, struct tri_stream *s)
{
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    TRI_TRY(tri_cuda_check(cudaEventRecord(comm->joined, comm->side.stream), "record an event"));
    return tri_cuda_check(cudaStreamWaitEvent(s->stream, comm->joined, 0), "wait for an event");
}

static void abort_job(struct tri_comm *base, enum tri_status status, const char *text)
{
    tri_rendezvous_fail(tri_nccl_of(base)->job->rv, status, text);
}

const struct tri_comm_ops tri_nccl_ops = {
    .name = "nccl",
    .all_to_all = tri_nccl_all_to_all,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .reduce_host = reduce_host,
    .fork = fork_queue,
    .join = join_queue,
    .split = tri_nccl_split,
    .abort = abort_job,
    .close = tri_nccl_close,
};
