/* Private to comm/thread: what the ranks of a group share. */
#ifndef TRI_COMM_THREAD_GROUP_H
#define TRI_COMM_THREAD_GROUP_H

#include <pthread.h>

#include "comm/comm.h"
#include "comm/compare.h"

enum { TRI_THREAD_TEXT = 512, TRI_THREAD_MAX_RANKS = 256 };

/* The whole job: one flag that every wait of every group looks at. */
struct tri_thread_job {
    pthread_mutex_t lock;
    _Atomic int failed; /* 0, or 1 + world rank of the first that failed */
    enum tri_status status;
    char text[TRI_THREAD_TEXT];
};

/* What a rank shows the others while it is in a call. */
struct tri_thread_call {
    struct tri_call call; /* all ranks must show the same */
    const void *a;        /* what the op needs: a buffer, an array of blocks */
    int64_t x, y;
};

struct tri_thread_group {
    struct tri_thread_job *job;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size;
    int waiting; /* ranks in the barrier */
    int64_t generation;
    int users;                     /* communicators that are open */
    struct tri_thread_call *calls; /* (size) */
};

enum tri_status tri_thread_group_open(struct tri_thread_job *job, int size,
                                      struct tri_thread_group **out);
/* The last user frees it. */
void tri_thread_group_leave(struct tri_thread_group *group);

/* Show `call`, wait for all, and compare: ranks in different calls are an error on all of them.
 * Ends early when the job failed (TRI_PEER) or after comm->timeout seconds (TRI_COMM), and then
 * fails the job. */
enum tri_status tri_thread_meet(struct tri_thread_group *group, const struct tri_comm *comm,
                                struct tri_thread_call call);

/* Wait until all who met have read what the others showed. Everybody must come here before he
 * returns, whatever went wrong, also in other groups: what he showed lies on his stack. */
enum tri_status tri_thread_part(struct tri_thread_group *group, const struct tri_comm *comm,
                                const char *what);

void tri_thread_fail(struct tri_thread_job *job, int world_rank, enum tri_status status,
                     const char *text);

#endif
