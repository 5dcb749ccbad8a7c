/* The debug mode: what each rank is about to do is compared first. */
#include <mpi.h>

#include <stdlib.h>

#include "comm/mpi/private.h"

/* all (size, bytes) = `mine` (bytes) of every rank. */
static enum tri_status gather(struct tri_mpi_comm *comm, void *all, const void *mine, size_t bytes,
                              const char *what)
{
    int size = comm->base.size;
    struct tri_block *blocks = calloc((size_t)size * 2, sizeof *blocks);
    if (blocks == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare %d ranks", size);
    for (int r = 0; r < size; r++) {
        blocks[r] = tri_mpi_flat_block(mine, bytes);
        blocks[size + r] = tri_mpi_flat_block((char *)all + (size_t)r * bytes, bytes);
    }
    enum tri_status st = tri_mpi_exchange(comm, 1, blocks, blocks + size, what);
    free(blocks);
    return st;
}

static enum tri_status fail_job(struct tri_mpi_comm *comm, enum tri_status st)
{
    if (st != TRI_OK)
        tri_mpi_tell(comm->job, st, tri_error_text());
    return st;
}

enum tri_status tri_mpi_compare(struct tri_mpi_comm *comm, struct tri_call mine)
{
    int size = comm->base.size;
    if (!comm->job->compare || size == 1)
        return TRI_OK;
    struct tri_call *all = malloc((size_t)size * sizeof *all);
    if (all == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare %d ranks", size);
    enum tri_status st = gather(comm, all, &mine, sizeof mine, mine.what);
    if (st == TRI_OK)
        st = fail_job(comm, tri_calls_compare(&mine, all, size));
    free(all);
    return st;
}

enum tri_status tri_mpi_compare_blocks(struct tri_mpi_comm *comm, int parts,
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
    enum tri_status st = gather(comm, all, send, count * sizeof *send, "all-to-all");
    if (st == TRI_OK)
        st = fail_job(comm, tri_blocks_compare(&comm->base, parts, all, recv));
    free(all);
    return st;
}
