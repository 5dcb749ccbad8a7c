/* The process's part of the job: the library, the card, the thread that watches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/nccl/nccl.h"
#include "comm/nccl/private.h"

/* What must fit together: the library and the cards. */
static enum tri_status check_ranks(struct tri_nccl_job *job, double timeout)
{
    struct rank {
        int version, device, compare;
        char uuid[16], bus[32], host[64];
    };
    struct rank mine, all[TRI_NCCL_MAX_RANKS];
    struct tri_rendezvous_group ranks = tri_rendezvous_all(job->rv);
    struct cudaDeviceProp prop;
    memset(&mine, 0, sizeof mine);
    TRI_TRY(tri_cuda_check(cudaGetDeviceProperties(&prop, job->device), "look at the card"));
    mine.version = job->api.version;
    mine.device = job->device;
    mine.compare = tri_compare_wanted();
    memcpy(mine.uuid, &prop.uuid, sizeof mine.uuid);
    snprintf(mine.bus, sizeof mine.bus, "%04x:%02x:%02x", (unsigned)prop.pciDomainID,
             (unsigned)prop.pciBusID, (unsigned)prop.pciDeviceID);
    if (gethostname(mine.host, sizeof mine.host - 1) != 0)
        mine.host[0] = '\0';
    ranks.id = 2; /* the world's own group counts its exchanges from 0 */
    TRI_TRY(tri_rendezvous_gather(job->rv, &ranks, "the cards", all, &mine, sizeof mine, timeout));
    for (int r = 0; r < ranks.size; r++) {
        /* A launcher may hand on no variables: one rank that has it is enough. */
        job->compare = job->compare || all[r].compare != 0;
        if (all[r].version != all[0].version)
            return tri_fail(TRI_COMM,
                            "rank 0 has NCCL %d and rank %d has %d: install the same everywhere, "
                            "or name one with TRIREME_NCCL",
                            all[0].version, r, all[r].version);
        for (int q = 0; q < r; q++)
            if (memcmp(all[q].uuid, all[r].uuid, sizeof all[r].uuid) == 0)
                return tri_fail(TRI_INVALID,
                                "ranks %d and %d both use card %d (PCI %s) of %s: start one rank a "
                                "card, and check LOCAL_RANK and CUDA_VISIBLE_DEVICES",
                                q, r, all[r].device, all[r].bus, all[r].host);
    }
    return TRI_OK;
}

static void free_job(struct tri_nccl_job *job)
{
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

static enum tri_status open_job(struct tri_rendezvous *rv, int device, double timeout,
                                struct tri_nccl_job **out)
{
    pthread_condattr_t monotonic;
    struct tri_nccl_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a communicator");
    pthread_mutex_init(&job->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&job->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    job->rv = rv;
    job->device = device;
    job->timeout = timeout;
    enum tri_status st = tri_nccl_api_open(&job->api);
    if (st == TRI_OK)
        st = tri_cuda_check(cudaSetDevice(device), "use the card");
    if (st == TRI_OK)
        st = check_ranks(job, timeout);
    if (st == TRI_OK)
        st = tri_nccl_watch(job);
    if (st != TRI_OK) {
        free_job(job);
        return st;
    }
    *out = job;
    return TRI_OK;
}

enum tri_status tri_comm_nccl_open(struct tri_rendezvous *rv, int device, double timeout,
                                   struct tri_comm **world)
{
    struct tri_nccl_job *job = NULL;
    struct tri_nccl_comm *comm = NULL;
    struct tri_rendezvous_group ranks = tri_rendezvous_all(rv);
    struct tri_rendezvous_group group = ranks;
    if (ranks.size > TRI_NCCL_MAX_RANKS)
        return tri_fail(TRI_UNSUPPORTED, "%d ranks; at most %d", ranks.size, TRI_NCCL_MAX_RANKS);
    TRI_TRY(open_job(rv, device, timeout, &job));
    group.id = 3;
    enum tri_status st = tri_nccl_connect(job, &ranks, 0, group, timeout, &comm);
    if (st != TRI_OK) {
        tri_nccl_job_close(job);
        return st;
    }
    comm->is_world = true;
    *world = &comm->base;
    return TRI_OK;
}

void tri_nccl_job_close(struct tri_nccl_job *job)
{
    tri_nccl_unwatch(job);
    free_job(job);
}
