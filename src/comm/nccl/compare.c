/* The debug mode: what each rank is about to do is compared first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/nccl/private.h"

enum tri_status tri_nccl_compare(struct tri_nccl_comm *comm, const char *what, int64_t amount)
{
    struct call {
        char what[24];
        int64_t amount;
    };
    struct call mine, all[TRI_NCCL_MAX_RANKS];
    if (!comm->job->compare || comm->base.size == 1)
        return TRI_OK;
    memset(&mine, 0, sizeof mine);
    snprintf(mine.what, sizeof mine.what, "%s", what);
    mine.amount = amount;
    TRI_TRY(tri_rendezvous_gather(comm->job->rv, &comm->group, "TRIREME_COMM_CHECK", all, &mine,
                                  sizeof mine, comm->base.timeout));
    for (int r = 0; r < comm->base.size; r++)
        if (strcmp(all[r].what, mine.what) != 0 || all[r].amount != amount)
            return tri_nccl_fail(
                comm->job,
                tri_fail(TRI_COMM,
                         "ranks went apart: rank %d of the group is in %s of %lld, rank %d in %s "
                         "of %lld",
                         comm->base.rank, mine.what, (long long)amount, r, all[r].what,
                         (long long)all[r].amount));
    return TRI_OK;
}

/* all (size, parts * size) = bytes that each rank sends: those of part p to rank r at
 * p * size + r. */
static enum tri_status check_blocks(struct tri_nccl_comm *comm, int parts,
                                    const struct tri_block *recv, const int64_t *all)
{
    int size = comm->base.size;
    for (int r = 0; r < size; r++)
        for (int p = 0; p < parts; p++) {
            int64_t sends = all[((int64_t)r * parts + p) * size + comm->base.rank];
            const struct tri_block *b = &recv[p * size + r];
            int64_t expects = b->rows * (int64_t)b->row_bytes;
            if (sends != expects)
                return tri_fail(TRI_COMM,
                                "all-to-all: rank %d of the group sends %lld bytes of part %d to "
                                "rank %d, which expects %lld",
                                r, (long long)sends, p, comm->base.rank, (long long)expects);
        }
    return TRI_OK;
}

enum tri_status tri_nccl_compare_blocks(struct tri_nccl_comm *comm, int parts,
                                        const struct tri_block *send, const struct tri_block *recv)
{
    int count = parts * comm->base.size;
    if (!comm->job->compare || comm->base.size == 1)
        return TRI_OK;
    int64_t *bytes = calloc((size_t)count * (size_t)(1 + comm->base.size), sizeof *bytes);
    if (bytes == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare an all-to-all");
    for (int i = 0; i < count; i++)
        bytes[i] = send[i].rows * (int64_t)send[i].row_bytes;
    enum tri_status st =
        tri_rendezvous_gather(comm->job->rv, &comm->group, "TRIREME_COMM_CHECK", bytes + count,
                              bytes, (size_t)count * sizeof *bytes, comm->base.timeout);
    if (st == TRI_OK) {
        st = check_blocks(comm, parts, recv, bytes + count);
        if (st != TRI_OK)
            st = tri_nccl_fail(comm->job, st);
    }
    free(bytes);
    return st;
}
