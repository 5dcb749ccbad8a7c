/* Private to comm/nccl. */
#ifndef TRI_COMM_NCCL_PRIVATE_H
#define TRI_COMM_NCCL_PRIVATE_H

#include <pthread.h>

#include "backend/cuda/context.h"
#include "comm/comm.h"
#include "comm/compare.h"
#include "comm/nccl/api.h"
#include "comm/rendezvous/rendezvous.h"

enum {
    TRI_NCCL_IN_FLIGHT = 1024, /* collectives of a communicator that are queued, not done */
    /* Of each of the two slots that strided blocks pass. A round takes some 60 us more than its
     * bytes do, whatever their number. */
    TRI_NCCL_SLOT_BYTES = 128 << 20,
    TRI_NCCL_MAX_RANKS = 1024,
};

/* A collective on its way. */
struct tri_nccl_flight {
    cudaEvent_t begun, done;
    const char *what;
    bool queued;  /* `done` was recorded */
    double since; /* the card came to it; 0: not yet seen */
};

/* The process's part of the job. */
struct tri_nccl_job {
    struct tri_nccl_api api;
    struct tri_rendezvous *rv;
    int device;
    bool compare;         /* TRIREME_COMM_CHECK=1 on any rank */
    pthread_mutex_t lock; /* held in every call of NCCL and for the lists; nobody waits with it */
    pthread_cond_t changed;
    pthread_t watchdog;
    bool ending, aborted;
    double timeout;
    struct tri_nccl_comm *comms; /* that are open */
};

struct tri_nccl_comm {
    struct tri_comm base;
    struct tri_nccl_job *job;
    struct tri_nccl_comm *next;
    ncclComm_t nccl;  /* NULL: one rank, or aborted */
    ncclComm_t dying; /* what `ender` aborts */
    pthread_t ender;
    bool has_ender;
    bool is_world; /* closes the job with it */
    struct tri_rendezvous_group group;
    uint64_t splits; /* so far */

    struct tri_stream side; /* the queue of tri_comm_fork */
    cudaEvent_t forked, joined;

    struct tri_nccl_flight flights[TRI_NCCL_IN_FLIGHT]; /* a ring, the oldest first */
    int first_flight, num_flights;

    /* Of all-to-all: queues beside the stream that pack and unpack, and their two slots. */
    cudaStream_t packer, unpacker;
    cudaEvent_t ready, finished, packed[2], sent[2], unpacked[2];
    int copy_sms;                    /* multiprocessors that packing takes */
    char *pack_slots, *unpack_slots; /* (2 * TRI_NCCL_SLOT_BYTES) or NULL: device memory */
};

static inline struct tri_nccl_comm *tri_nccl_of(struct tri_comm *comm)
{
    return (struct tri_nccl_comm *)(void *)comm;
}

/* ---- calls (call.c) ---- */

/* Before a collective: has the job failed? Then the collective enters the list of flights. */
enum tri_status tri_nccl_begin(struct tri_nccl_comm *comm, cudaStream_t stream, const char *what);
/* After it: `done` is behind everything that it queued. */
enum tri_status tri_nccl_end(struct tri_nccl_comm *comm, cudaStream_t stream);

/* Around each call or group of calls of NCCL. enter locks the job, or fails when it is aborted;
 * leave unlocks it and waits until NCCL has queued its work, which it does on a thread of its own:
 * what is queued on the stream after that comes behind it. */
enum tri_status tri_nccl_enter(struct tri_nccl_comm *comm, const char *what);
enum tri_status tri_nccl_leave(struct tri_nccl_comm *comm, ncclResult_t code, const char *what);

/* Wait for an event of the stream, with the deadline. */
enum tri_status tri_nccl_wait(struct tri_nccl_comm *comm, cudaEvent_t event, const char *what);

/* This rank failed, with its current error text: tell all. Returns `status`. */
enum tri_status tri_nccl_fail(struct tri_nccl_job *job, enum tri_status status);

/* ---- the debug mode, TRIREME_COMM_CHECK=1 (compare.c) ---- */

/* Are all ranks in the same call? */
enum tri_status tri_nccl_compare(struct tri_nccl_comm *comm, struct tri_call mine);
/* Does every rank send what its peer expects? */
enum tri_status tri_nccl_compare_blocks(struct tri_nccl_comm *comm, int parts,
                                        const struct tri_block *send, const struct tri_block *recv);

/* ---- the watchdog (watch.c) ---- */
enum tri_status tri_nccl_watch(struct tri_nccl_job *job);
void tri_nccl_unwatch(struct tri_nccl_job *job);

/* ---- all-to-all (exchange.c) ---- */
enum tri_status tri_nccl_all_to_all(struct tri_comm *comm, struct tri_stream *s, int parts,
                                    const struct tri_block *send, const struct tri_block *recv);
/* The same of host memory: finished when it returns (host.c). */
enum tri_status tri_nccl_host_all_to_all(struct tri_comm *comm, int parts,
                                         const struct tri_block *send,
                                         const struct tri_block *recv);
/* Its queues (exchange_queues.c). */
enum tri_status tri_nccl_exchange_open(struct tri_nccl_comm *comm);
void tri_nccl_exchange_close(struct tri_nccl_comm *comm);

/* ---- life (open.c, job.c) ---- */
/* Make a communicator of `group`; `leader` is the member that makes NCCL's id, in the order of
 * `from`, the group over which it travels. */
enum tri_status tri_nccl_connect(struct tri_nccl_job *job, struct tri_rendezvous_group *from,
                                 int leader, struct tri_rendezvous_group group, double timeout,
                                 struct tri_nccl_comm **out);
void tri_nccl_job_close(struct tri_nccl_job *job); /* when all communicators are closed */
extern const struct tri_comm_ops tri_nccl_ops;
enum tri_status tri_nccl_split(struct tri_comm *comm, int color, int key, struct tri_comm **out);
void tri_nccl_close(struct tri_comm *comm);

#endif
