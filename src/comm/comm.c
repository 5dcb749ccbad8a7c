#include "comm/comm.h"

#include <inttypes.h>
#include <string.h>

void tri_comm_close(struct tri_comm *comm)
{
    if (comm != NULL)
        comm->ops->close(comm);
}

void tri_comm_abort(struct tri_comm *comm, enum tri_status status)
{
    comm->ops->abort(comm, status, tri_error_text());
}

enum tri_status tri_comm_fork(struct tri_comm *comm, struct tri_stream *s, struct tri_stream **side)
{
    if (comm->ops->fork != NULL)
        return comm->ops->fork(comm, s, side);
    *side = s;
    return TRI_OK;
}

enum tri_status tri_comm_join(struct tri_comm *comm, struct tri_stream *s)
{
    return comm->ops->join != NULL ? comm->ops->join(comm, s) : TRI_OK;
}

enum tri_status tri_comm_sum_double(struct tri_comm *comm, double *values, int64_t n)
{
    return comm->ops->reduce_host(comm, values, n, TRI_F64, TRI_SUM);
}

enum tri_status tri_comm_sum_int(struct tri_comm *comm, int64_t *values, int64_t n)
{
    return comm->ops->reduce_host(comm, values, n, TRI_I64, TRI_SUM);
}

enum tri_status tri_comm_max_int(struct tri_comm *comm, int64_t *values, int64_t n)
{
    return comm->ops->reduce_host(comm, values, n, TRI_I64, TRI_MAX);
}

enum tri_status tri_comm_agree(struct tri_comm *comm, const char *what, int64_t value)
{
    /* ~x reverses the order of all values, the least one included, where -x would overflow. */
    int64_t both[2] = {value, ~value};
    TRI_TRY(comm->ops->reduce_host(comm, both, 2, TRI_I64, TRI_MIN));
    int64_t least = both[0];
    int64_t greatest = ~both[1];
    if (least != greatest)
        return tri_fail(TRI_INVALID,
                        "ranks disagree on %s: from %" PRId64 " to %" PRId64 ", %" PRId64
                        " on rank %d; start all ranks with the same recipe and data",
                        what, least, greatest, value, comm->world_rank);
    return TRI_OK;
}

void tri_error_name_rank(int rank)
{
    if (strncmp(tri_error_text(), "rank ", 5) != 0)
        tri_error_prefix("rank %d", rank);
}
