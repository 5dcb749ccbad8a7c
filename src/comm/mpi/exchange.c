/* Blocks of any size and stride between all ranks: what every collective here is made of. */
#include <mpi.h>

#include <stdlib.h>

#include "comm/mpi/private.h"
#include "comm/reduce.h"

/* A committed type for a block: strided rows, and more bytes than an int counts. */
static enum tri_status block_type(const struct tri_block *b, MPI_Datatype *out)
{
    const size_t piece = (size_t)1 << 20;
    size_t bytes = b->stride == b->row_bytes ? (size_t)b->rows * b->row_bytes : b->row_bytes;
    MPI_Datatype row;
    if (bytes <= piece) {
        TRI_MPI_TRY(MPI_Type_contiguous((int)bytes, MPI_BYTE, &row), "block type");
    } else {
        MPI_Datatype types[2], mebi;
        int counts[2] = {(int)(bytes / piece), (int)(bytes % piece)};
        MPI_Aint places[2] = {0, (MPI_Aint)(bytes / piece * piece)};
        TRI_MPI_TRY(MPI_Type_contiguous((int)piece, MPI_BYTE, &mebi), "block type");
        types[0] = mebi;
        types[1] = MPI_BYTE;
        TRI_MPI_TRY(MPI_Type_create_struct(2, counts, places, types, &row), "block type");
        TRI_MPI_TRY(MPI_Type_free(&mebi), "block type");
    }
    MPI_Datatype type = row;
    if (b->stride != b->row_bytes) {
        TRI_MPI_TRY(MPI_Type_create_hvector((int)b->rows, 1, (MPI_Aint)b->stride, row, &type),
                    "block type");
        TRI_MPI_TRY(MPI_Type_free(&row), "block type");
    }
    TRI_MPI_TRY(MPI_Type_commit(&type), "block type");
    *out = type;
    return TRI_OK;
}

struct tri_block tri_mpi_flat_block(const void *data, size_t bytes)
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
    TRI_MPI_TRY(MPI_Type_free(&type), "block type"); /* freed when the transfer is done */
    TRI_MPI_TRY(code, "block");
    return TRI_OK;
}

enum tri_status tri_mpi_exchange(struct tri_mpi_comm *comm, int parts, const struct tri_block *send,
                                 const struct tri_block *recv, const char *what)
{
    int size = comm->base.size;
    size_t most = 2 * (size_t)parts * (size_t)size;
    int n = 0;
    enum tri_status st = TRI_OK;
    MPI_Request *requests = malloc(most * sizeof *requests);
    int *peers = malloc(most * sizeof *peers);
    if (requests == NULL || peers == NULL) {
        free(requests);
        free(peers);
        return tri_fail(TRI_NOMEM, "no memory for %zu requests", most);
    }
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
            peers[n] = r;
            st = start(comm, false, from, r, p, &requests[n++]);
            peers[n] = -1;
            if (st == TRI_OK)
                st = start(comm, true, to, r, p, &requests[n++]);
        }
    }
    if (st == TRI_OK)
        st = tri_mpi_wait(comm, requests, peers, n, what);
    free(requests);
    free(peers);
    return st;
}
