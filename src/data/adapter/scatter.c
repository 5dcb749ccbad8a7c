/* Bytes from each rank to each other. */
#include <stdlib.h>
#include <string.h>

#include "comm/gather.h"
#include "data/adapter/private.h"

enum tri_status tri_scatter_sizes(struct tri_comm *comm, const int64_t *send_bytes,
                                  int64_t *recv_bytes)
{
    int size = comm != NULL ? comm->size : 1;
    int rank = comm != NULL ? comm->rank : 0;
    int64_t *all = malloc((size_t)size * (size_t)size * sizeof *all);
    enum tri_status st =
        all != NULL ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for the sizes of %d ranks", size);
    st = tri_comm_all_well(comm, st);
    if (st == TRI_OK)
        st = tri_comm_gather(comm, send_bytes, size, all);
    for (int r = 0; r < size && st == TRI_OK; r++)
        recv_bytes[r] = all[r * size + rank];
    free(all);
    return st;
}

static struct tri_block bytes_at(const void *data, int64_t offset, int64_t bytes)
{
    return (struct tri_block){.data = (char *)(uintptr_t)data + offset,
                              .rows = 1,
                              .row_bytes = (size_t)bytes,
                              .stride = (size_t)bytes};
}

static enum tri_status by_exchange(struct tri_comm *comm, const void *send,
                                   const int64_t *send_bytes, void *recv, const int64_t *recv_bytes)
{
    struct tri_block *blocks = malloc(2 * (size_t)comm->size * sizeof *blocks);
    enum tri_status st =
        blocks != NULL ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for %d blocks", comm->size);
    st = tri_comm_all_well(comm, st);
    if (send == NULL) /* nothing to send: a block without bytes still needs an address */
        send = blocks;
    if (st == TRI_OK) {
        int64_t from = 0;
        int64_t to = 0;
        for (int r = 0; r < comm->size; r++) {
            blocks[r] = bytes_at(send, from, send_bytes[r]);
            blocks[comm->size + r] = bytes_at(recv, to, recv_bytes[r]);
            from += send_bytes[r];
            to += recv_bytes[r];
        }
        st = comm->ops->all_to_all(comm, NULL, 1, blocks, blocks + comm->size);
    }
    free(blocks);
    return st;
}

/* Piece by piece, the messages of one sender after the other, of which each keeps what is its
 * own. */
static enum tri_status sum_of(struct tri_comm *comm, int sender, const char *send, int64_t total,
                              int64_t own_begin, int64_t own_bytes, char *recv)
{
    enum { PIECE = 1 << 17 };
    char room[PIECE];
    const int64_t piece = PIECE;
    for (int64_t done = 0; done < total; done += piece) {
        int64_t n = total - done < piece ? total - done : piece;
        if (sender == comm->rank)
            memcpy(room, send + done, (size_t)n);
        TRI_TRY(tri_comm_hand_round(comm, sender, room, (size_t)n));
        int64_t begin = own_begin > done ? own_begin : done;
        int64_t end = own_begin + own_bytes < done + n ? own_begin + own_bytes : done + n;
        if (begin < end)
            memcpy(recv + (begin - own_begin), room + (begin - done), (size_t)(end - begin));
    }
    return TRI_OK;
}

static enum tri_status by_sums(struct tri_comm *comm, const void *send, const int64_t *send_bytes,
                               void *recv)
{
    int size = comm->size;
    int64_t *all = malloc((size_t)size * (size_t)size * sizeof *all);
    char *to = recv;
    enum tri_status st =
        all != NULL ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for the sizes of %d ranks", size);
    st = tri_comm_all_well(comm, st);
    if (st == TRI_OK)
        st = tri_comm_gather(comm, send_bytes, size, all);
    for (int sender = 0; sender < size && st == TRI_OK; sender++) {
        int64_t total = 0;
        int64_t begin = 0;
        for (int r = 0; r < size; r++) {
            begin = r == comm->rank ? total : begin;
            total += all[sender * size + r];
        }
        int64_t own = all[sender * size + comm->rank];
        st = sum_of(comm, sender, send, total, begin, own, to);
        to += own;
    }
    free(all);
    return st;
}

enum tri_status tri_scatter(struct tri_comm *comm, bool sums, const void *send,
                            const int64_t *send_bytes, void *recv, const int64_t *recv_bytes)
{
    if (comm == NULL) {
        memcpy(recv, send, (size_t)send_bytes[0]);
        return TRI_OK;
    }
    return sums ? by_sums(comm, send, send_bytes, recv)
                : by_exchange(comm, send, send_bytes, recv, recv_bytes);
}
