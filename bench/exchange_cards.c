/* The exchange on cards, over NCCL. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/cuda/context.h"
#include "base/arena.h"
#include "comm/nccl/nccl.h"
#include "comm/nccl/private.h"
#include "comm/processes.h"
#include "comm/rendezvous/bootstrap.h"
#include "exchange.h"

enum {
    CALLS = 5,  /* that follow each other in one sample */
    DELAYS = 8, /* fills of a buffer ahead of them, some milliseconds, in which all are queued */
};

static const size_t DELAY_BYTES = (size_t)2 << 30;

static void check(enum tri_status status)
{
    if (status != TRI_OK) {
        fprintf(stderr, "bench_exchange: %s\n", tri_error_text());
        exit(1);
    }
}

static void *get_device(size_t bytes)
{
    void *data = NULL;
    check(tri_cuda_check(cudaMalloc(&data, bytes), "allocate"));
    check(tri_cuda_check(cudaMemset(data, 1, bytes), "fill"));
    return data;
}

/* The trainer queues its work far ahead of the card, so queueing takes no time of the card. */
static double time_device(struct exchange_machine *m, enum tri_status (*run)(void *ctx), void *ctx)
{
    static cudaEvent_t begin, end;
    static void *delay;
    cudaStream_t stream = m->exec.stream->stream;
    float milliseconds;
    if (begin == NULL) {
        check(tri_cuda_check(cudaEventCreate(&begin), "create an event"));
        check(tri_cuda_check(cudaEventCreate(&end), "create an event"));
        delay = get_device(DELAY_BYTES);
    }
    for (int i = 0; i < DELAYS; i++)
        check(tri_cuda_check(cudaMemsetAsync(delay, i, DELAY_BYTES, stream), "fill"));
    check(run(ctx)); /* ranks meet here, on their cards */
    check(tri_cuda_check(cudaEventRecord(begin, stream), "record an event"));
    for (int i = 0; i < CALLS; i++)
        check(run(ctx));
    check(tri_cuda_check(cudaEventRecord(end, stream), "record an event"));
    check(tri_cuda_check(cudaStreamSynchronize(stream), "wait for a stream"));
    check(tri_cuda_check(cudaEventElapsedTime(&milliseconds, begin, end), "read a clock"));
    return (double)milliseconds * 1e-3 / CALLS;
}

/* What NCCL does at its best: one send and one receive a rank, the own part too. */
static enum tri_status raw(struct tri_comm *base, struct tri_stream *s, void *to, const void *from,
                           size_t bytes)
{
    struct tri_nccl_comm *comm = tri_nccl_of(base);
    const struct tri_nccl_api *api = &comm->job->api;
    TRI_TRY(tri_nccl_enter(comm, "a raw exchange"));
    ncclResult_t code = api->group_start();
    for (int r = 0; r < base->size && code == ncclSuccess; r++) {
        (void)api->send((const char *)from + (size_t)r * bytes, bytes, ncclInt8, r, comm->nccl,
                        s->stream);
        (void)api->recv((char *)to + (size_t)r * bytes, bytes, ncclInt8, r, comm->nccl, s->stream);
    }
    return tri_nccl_leave(comm, api->group_end(), "a raw exchange");
}

static int run_rank(const struct tri_launch_info *launch, int64_t mib)
{
    struct tri_rendezvous *rv = NULL;
    struct tri_comm *world = NULL;
    bool low = false;
    struct exchange_machine m = {
        .name = "NCCL", .dtype = TRI_BF16, .get = get_device, .time = time_device, .raw = raw};
    check(tri_cuda_choose_card(launch->local_rank));
    check(tri_cuda_open(NULL, &m.exec.backend));
    m.exec.ops = &m.exec.backend->ops;
    m.exec.stream = m.exec.backend->stream;
    check(tri_arena_open(m.exec.backend->memory, (size_t)1 << 34, &m.exec.arena));
    check(tri_rendezvous_join(launch, NULL, 120, &rv));
    check(tri_comm_nccl_open(rv, tri_cuda_card(), 120, &world));
    check(bench_exchange(world, &m, mib, &low));
    tri_comm_close(world);
    tri_rendezvous_close(rv);
    tri_arena_close(m.exec.arena);
    tri_cuda_close(m.exec.backend);
    return low;
}

int bench_exchange_cards(char **argv, int ranks, int64_t mib)
{
    struct tri_launch_info launch;
    check(tri_launch_detect(&launch));
    if (launch.by == TRI_LAUNCH_SELF)
        return run_rank(&launch, mib);
    int cards = tri_cuda_num_cards();
    if (cards < 2)
        return -1;
    check(
        tri_processes_run("/proc/self/exe", argv, ranks > 0 && ranks < cards ? ranks : cards, 20));
    return 0;
}
