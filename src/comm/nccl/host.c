/* All-to-all of host memory: token ids and the like. It goes through the cards, whose links are
 * faster than any other way between processes. */
#include <stdlib.h>
#include <string.h>

#include "comm/nccl/private.h"
#include "comm/reduce.h"

/* Both sides of the exchange, packed: on the host, and on the card. */
struct rooms {
    size_t bytes[2]; /* sent, received */
    char *host[2], *device[2];
    struct tri_block *blocks; /* (2 * count): the same blocks on the card */
};

static void close_rooms(struct rooms *rooms)
{
    for (int way = 0; way < 2; way++) {
        free(rooms->host[way]);
        (void)cudaFree(rooms->device[way]);
    }
    free(rooms->blocks);
}

/* Lay the blocks out one after the other. */
static enum tri_status open_rooms(struct rooms *rooms, int count, const struct tri_block *send,
                                  const struct tri_block *recv)
{
    memset(rooms, 0, sizeof *rooms);
    rooms->blocks = calloc((size_t)count * 2, sizeof *rooms->blocks);
    if (rooms->blocks == NULL)
        return tri_fail(TRI_NOMEM, "no memory for %d blocks", count);
    for (int way = 0; way < 2; way++) {
        const struct tri_block *list = way == 0 ? send : recv;
        for (int i = 0; i < count; i++)
            rooms->bytes[way] += ((size_t)list[i].rows * list[i].row_bytes + 255) / 256 * 256;
        rooms->host[way] = malloc(rooms->bytes[way] + 1);
        if (rooms->host[way] == NULL)
            return tri_fail(TRI_NOMEM, "no memory for %zu bytes of an exchange", rooms->bytes[way]);
        TRI_TRY(tri_cuda_check(cudaMalloc((void **)&rooms->device[way], rooms->bytes[way] + 1),
                               "allocate device memory for an exchange"));
        size_t used = 0;
        for (int i = 0; i < count; i++) {
            size_t bytes = (size_t)list[i].rows * list[i].row_bytes;
            rooms->blocks[way * count + i] =
                (struct tri_block){rooms->device[way] + used, bytes > 0, bytes, bytes};
            used += (bytes + 255) / 256 * 256;
        }
    }
    return TRI_OK;
}

/* Copy the blocks into the host's room, or back out of it. */
static void copy_blocks(const struct rooms *rooms, int way, int count, const struct tri_block *list)
{
    for (int i = 0; i < count; i++) {
        const struct tri_block *b = &list[i];
        struct tri_block packed = {
            rooms->host[way] + ((char *)rooms->blocks[way * count + i].data - rooms->device[way]),
            b->rows, b->row_bytes, b->row_bytes};
        if (way == 0)
            tri_block_copy(&packed, b);
        else
            tri_block_copy(b, &packed);
    }
}

enum tri_status tri_nccl_host_all_to_all(struct tri_comm *base, int parts,
                                         const struct tri_block *send, const struct tri_block *recv)
{
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    cudaStream_t stream = comm->side.stream;
    int count = parts * base->size;
    struct rooms rooms;
    enum tri_status st;
    TRI_TRY_GOTO(st, open_rooms(&rooms, count, send, recv), close_rooms);
    copy_blocks(&rooms, 0, count, send);
    TRI_TRY_GOTO(st,
                 tri_cuda_check(cudaMemcpyAsync(rooms.device[0], rooms.host[0], rooms.bytes[0],
                                                cudaMemcpyHostToDevice, stream),
                                "copy an exchange to the card"),
                 close_rooms);
    TRI_TRY_GOTO(st,
                 tri_nccl_all_to_all(base, &comm->side, parts, rooms.blocks, rooms.blocks + count),
                 close_rooms);
    TRI_TRY_GOTO(st, tri_cuda_check(cudaEventRecord(comm->joined, stream), "record an event"),
                 close_rooms);
    TRI_TRY_GOTO(st, tri_nccl_wait(comm, comm->joined, "all-to-all"), close_rooms);
    TRI_TRY_GOTO(st,
                 tri_cuda_check(cudaMemcpy(rooms.host[1], rooms.device[1], rooms.bytes[1],
                                           cudaMemcpyDeviceToHost),
                                "copy an exchange from the card"),
                 close_rooms);
    copy_blocks(&rooms, 1, count, recv);
close_rooms:
    close_rooms(&rooms);
    return st;
}
