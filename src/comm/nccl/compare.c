/* The debug mode: what each rank is about to do is compared first. */
#include <stdlib.h>

#include "comm/nccl/private.h"

static enum tri_status fail_job(struct tri_nccl_comm *comm, enum tri_status st)
{
    return st == TRI_OK ? TRI_OK : tri_nccl_fail(comm->job, st);
}

enum tri_status tri_nccl_compare(struct tri_nccl_comm *comm, struct tri_call mine)
{
    struct tri_call all[TRI_NCCL_MAX_RANKS];
    if (!comm->job->compare || comm->base.size == 1)
        return TRI_OK;
    TRI_TRY(tri_rendezvous_gather(comm->job->rv, &comm->group, "TRIREME_COMM_CHECK", all, &mine,
                                  sizeof mine, comm->base.timeout));
    return fail_job(comm, tri_calls_compare(&mine, all, comm->base.size));
}

enum tri_status tri_nccl_compare_blocks(struct tri_nccl_comm *comm, int parts,
                                        const struct tri_block *send, const struct tri_block *recv)
{
    int size = comm->base.size;
    size_t count = (size_t)parts * (size_t)size;
    if (!comm->job->compare || size == 1)
        return TRI_OK;
    /* (size, parts * size): what each rank sends; addresses travel with it and are not used. */
    struct tri_block *all = malloc((size_t)size * count * sizeof *all);
    if (all == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare an all-to-all of %d ranks", size);
    enum tri_status st = tri_rendezvous_gather(comm->job->rv, &comm->group, "TRIREME_COMM_CHECK",
                                               all, send, count * sizeof *send, comm->base.timeout);
    if (st == TRI_OK)
        st = fail_job(comm, tri_blocks_compare(&comm->base, parts, all, recv));
    free(all);
    return st;
}
