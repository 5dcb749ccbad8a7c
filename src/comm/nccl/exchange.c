/* All-to-all by sends and receives.
 *
 * NCCL moves runs of bytes, blocks may be strided. What goes to a rank, or comes from it, is one
 * sequence: the rows of its block of each part, one part after the other. It travels in rounds of
 * at most `budget` bytes a rank, and both sides cut it at the same rows because both know the same
 * shapes. Rows that are strided pass a slot: round i packs into slot i % 2 while round i - 1 is on
 * its way out of the other, and is unpacked while round i + 1 arrives. A block of one row needs no
 * slot on either side, so it goes whole, whatever its size, and takes nothing of a round: an
 * exchange of such blocks is one group of sends and receives, at the full speed of the links. */
#include <string.h>

#include "comm/nccl/private.h"

/* How far the sequence of one peer has come. */
struct cursor {
    int part;
    int64_t row;
};

/* Consecutive rows of a block that go in one send. */
struct run {
    struct tri_block rows;
    size_t bytes;
    size_t offset; /* in the peer's region of a slot */
    bool packed;   /* through the slot; otherwise the rows are one run of bytes as they are */
};

/* The next run of a round, of which `used` bytes are taken. False: the round is full, or the
 * sequence ended. */
static bool next_run(const struct tri_block *blocks, int parts, int size, int peer, size_t budget,
                     struct cursor *at, size_t *used, struct run *out)
{
    while (at->part < parts) {
        const struct tri_block *b = &blocks[at->part * size + peer];
        if (b->row_bytes > 0 && at->row < b->rows)
            break;
        at->part++;
        at->row = 0;
    }
    if (at->part == parts)
        return false;
    const struct tri_block *b = &blocks[at->part * size + peer];
    if (b->rows == 1) {
        *out = (struct run){.rows = *b, .bytes = b->row_bytes};
        at->row = 1;
        return true;
    }
    int64_t room = *used < budget ? (int64_t)((budget - *used) / b->row_bytes) : 0;
    if (room == 0 && *used > 0)
        return false;
    int64_t rows = b->rows - at->row;
    if (room == 0)
        rows = 1; /* a row that is longer than a slot goes as it is: one row has no stride */
    else if (rows > room)
        rows = room;
    out->rows = *b;
    out->rows.data = (char *)b->data + (size_t)at->row * b->stride;
    out->rows.rows = rows;
    out->bytes = (size_t)rows * b->row_bytes;
    out->offset = *used;
    out->packed = rows > 1 && b->stride != b->row_bytes;
    *used += (out->bytes + 255) / 256 * 256;
    at->row += rows;
    return true;
}

static cudaError_t copy_rows(const struct tri_nccl_comm *comm, void *to, size_t to_stride,
                             const void *from, size_t from_stride, const struct tri_block *shape,
                             cudaStream_t stream)
{
    size_t bytes = shape->row_bytes;
    struct tri_launch launch = {.stream = stream, .num_sms = comm->copy_sms};
    if (shape->rows == 1 || (to_stride == bytes && from_stride == bytes))
        return cudaMemcpyAsync(to, from, (size_t)shape->rows * bytes, cudaMemcpyDeviceToDevice,
                               stream);
    cudaError_t code =
        tri_kernel_copy_rows(launch, to, to_stride, from, from_stride, shape->rows, bytes);
    if (code != cudaErrorNotSupported)
        return code;
    return cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, (size_t)shape->rows,
                             cudaMemcpyDeviceToDevice, stream);
}

/* One direction of an exchange. */
struct side {
    const struct tri_block *blocks;
    struct cursor at[TRI_NCCL_MAX_RANKS];
    bool strided; /* some block passes the slots */
    char *slots;
};

struct exchange {
    struct tri_nccl_comm *comm;
    cudaStream_t stream;
    int parts;
    size_t budget; /* of a rank in a round */
    struct side send, recv;
};

static enum tri_status open_side(struct exchange *x, struct side *side,
                                 const struct tri_block *blocks, char **slots)
{
    int size = x->comm->base.size;
    side->blocks = blocks;
    side->strided = false;
    memset(side->at, 0, (size_t)size * sizeof *side->at);
    for (int i = 0; i < x->parts * size; i++)
        if (i % size != x->comm->base.rank)
            side->strided = side->strided || (blocks[i].rows > 1 && blocks[i].row_bytes > 0 &&
                                              blocks[i].stride != blocks[i].row_bytes);
    if (side->strided && *slots == NULL)
        TRI_TRY(tri_cuda_check(cudaMalloc((void **)slots, (size_t)2 * TRI_NCCL_SLOT_BYTES),
                               "allocate the slots of an exchange"));
    side->slots = *slots;
    return TRI_OK;
}

static char *region(const struct exchange *x, const struct side *side, int round, int peer)
{
    return side->slots + (size_t)(round % 2) * TRI_NCCL_SLOT_BYTES + (size_t)peer * x->budget;
}

/* Pack or unpack what a round carries, on a queue beside the stream. The cursors stay. */
static enum tri_status move_round(const struct exchange *x, const struct side *side, int round,
                                  bool pack, cudaStream_t stream)
{
    struct tri_nccl_comm *comm = x->comm;
    for (int r = 0; r < comm->base.size; r++) {
        struct cursor at = side->at[r];
        struct run run;
        size_t used = 0;
        while (r != comm->base.rank &&
               next_run(side->blocks, x->parts, comm->base.size, r, x->budget, &at, &used, &run)) {
            char *slot = region(x, side, round, r) + run.offset;
            const struct tri_block *b = &run.rows;
            if (!run.packed)
                continue;
            TRI_TRY(tri_cuda_check(
                pack ? copy_rows(comm, slot, b->row_bytes, b->data, b->stride, b, stream)
                     : copy_rows(comm, b->data, b->stride, slot, b->row_bytes, b, stream),
                "copy the rows of an exchange"));
        }
    }
    return TRI_OK;
}

/* Queue the sends or receives of a round, inside a group, and move the cursors on. */
static ncclResult_t queue_round(struct exchange *x, struct side *side, int round, bool send)
{
    struct tri_nccl_comm *comm = x->comm;
    const struct tri_nccl_api *api = &comm->job->api;
    ncclResult_t code = ncclSuccess;
    for (int i = 1; i < comm->base.size; i++) {
        int r = (comm->base.rank + i) % comm->base.size;
        struct run run;
        size_t used = 0;
        while (code == ncclSuccess && next_run(side->blocks, x->parts, comm->base.size, r,
                                               x->budget, &side->at[r], &used, &run)) {
            void *data = run.packed ? region(x, side, round, r) + run.offset : run.rows.data;
            code = send ? api->send(data, run.bytes, ncclInt8, r, comm->nccl, x->stream)
                        : api->recv(data, run.bytes, ncclInt8, r, comm->nccl, x->stream);
            if (code == ncclInProgress)
                code = ncclSuccess;
        }
    }
    return code;
}

/* What stays on this rank is copied beside the stream. */
static enum tri_status copy_own(const struct exchange *x, cudaStream_t stream)
{
    int size = x->comm->base.size;
    for (int p = 0; p < x->parts; p++) {
        const struct tri_block *from = &x->send.blocks[p * size + x->comm->base.rank];
        const struct tri_block *to = &x->recv.blocks[p * size + x->comm->base.rank];
        if (from->rows != to->rows || from->row_bytes != to->row_bytes)
            return tri_fail(TRI_COMM,
                            "all-to-all: rank %d sends itself %lld rows of %zu bytes and expects "
                            "%lld of %zu",
                            x->comm->base.rank, (long long)from->rows, from->row_bytes,
                            (long long)to->rows, to->row_bytes);
        if (from->rows > 0 && from->row_bytes > 0 && from->data != to->data)
            TRI_TRY(tri_cuda_check(
                copy_rows(x->comm, to->data, to->stride, from->data, from->stride, from, stream),
                "copy the own part of an exchange"));
    }
    return TRI_OK;
}

/* `waiter` goes on when `other` has come to here. */
static enum tri_status after(cudaStream_t waiter, cudaStream_t other, cudaEvent_t event)
{
    TRI_TRY(tri_cuda_check(cudaEventRecord(event, other), "record an event"));
    return tri_cuda_check(cudaStreamWaitEvent(waiter, event, 0), "wait for an event");
}

static enum tri_status do_round(struct exchange *x, int round)
{
    struct tri_nccl_comm *comm = x->comm;
    const struct tri_nccl_api *api = &comm->job->api;
    int slot = round % 2;
    struct side before = x->recv; /* cursors, for the unpacking behind the receives */
    /* Pack once the slot's last round has left. */
    if (x->send.strided && round >= 2)
        TRI_TRY(tri_cuda_check(cudaStreamWaitEvent(comm->packer, comm->sent[slot], 0),
                               "wait for an event"));
    TRI_TRY(move_round(x, &x->send, round, true, comm->packer));
    if (x->send.strided)
        TRI_TRY(after(x->stream, comm->packer, comm->packed[slot]));
    if (x->recv.strided && round >= 2)
        TRI_TRY(tri_cuda_check(cudaStreamWaitEvent(x->stream, comm->unpacked[slot], 0),
                               "wait for an event"));

    TRI_TRY(tri_nccl_enter(comm, "all-to-all"));
    ncclResult_t code = api->group_start();
    if (code == ncclSuccess)
        code = queue_round(x, &x->recv, round, false);
    if (code == ncclSuccess)
        code = queue_round(x, &x->send, round, true);
    ncclResult_t ended = api->group_end();
    TRI_TRY(tri_nccl_leave(comm, code != ncclSuccess ? code : ended, "all-to-all"));

    /* Behind NCCL's first kernel, which would otherwise wait until it finds multiprocessors. */
    if (round == 0)
        TRI_TRY(copy_own(x, comm->unpacker));
    TRI_TRY(tri_cuda_check(cudaEventRecord(comm->sent[slot], x->stream), "record an event"));
    if (x->recv.strided) {
        TRI_TRY(tri_cuda_check(cudaStreamWaitEvent(comm->unpacker, comm->sent[slot], 0),
                               "wait for an event"));
        TRI_TRY(move_round(x, &before, round, false, comm->unpacker));
        TRI_TRY(tri_cuda_check(cudaEventRecord(comm->unpacked[slot], comm->unpacker),
                               "record an event"));
    }
    return TRI_OK;
}

/* Is everything sent and received? */
static bool is_done(const struct exchange *x)
{
    for (int r = 0; r < x->comm->base.size; r++)
        for (int way = 0; way < 2; way++) {
            const struct side *side = way == 0 ? &x->send : &x->recv;
            struct cursor at = side->at[r];
            struct run run;
            size_t used = 0;
            if (r != x->comm->base.rank && next_run(side->blocks, x->parts, x->comm->base.size, r,
                                                    x->budget, &at, &used, &run))
                return false;
        }
    return true;
}

static enum tri_status exchange(struct exchange *x)
{
    struct tri_nccl_comm *comm = x->comm;
    /* The slots may be in use still, by an exchange that was queued on another stream. */
    TRI_TRY(tri_cuda_check(cudaStreamWaitEvent(x->stream, comm->finished, 0), "wait for an event"));
    TRI_TRY(after(comm->packer, x->stream, comm->ready));
    TRI_TRY(after(comm->unpacker, x->stream, comm->ready));
    if (is_done(x))
        TRI_TRY(copy_own(x, comm->unpacker));
    for (int round = 0; !is_done(x); round++)
        TRI_TRY(do_round(x, round));
    TRI_TRY(after(x->stream, comm->unpacker, comm->ready));
    return tri_cuda_check(cudaEventRecord(comm->finished, x->stream), "record an event");
}

enum tri_status tri_nccl_all_to_all(struct tri_comm *base, struct tri_stream *s, int parts,
                                    const struct tri_block *send, const struct tri_block *recv)
{
    if (s == NULL)
        return tri_nccl_host_all_to_all(base, parts, send, recv);
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    struct exchange x = {.comm = comm, .stream = s->stream, .parts = parts};
    x.budget = TRI_NCCL_SLOT_BYTES / (size_t)base->size / 256 * 256;
    TRI_TRY(tri_nccl_compare(comm, tri_call_all_to_all(base, parts)));
    TRI_TRY(tri_nccl_compare_blocks(comm, parts, send, recv));
    TRI_TRY(open_side(&x, &x.send, send, &comm->pack_slots));
    TRI_TRY(open_side(&x, &x.recv, recv, &comm->unpack_slots));
    TRI_TRY(tri_nccl_begin(comm, x.stream, "all-to-all"));
    TRI_TRY(exchange(&x));
    return tri_nccl_end(comm, x.stream);
}
