/* Private to comm/mpi. */
#ifndef TRI_COMM_MPI_PRIVATE_H
#define TRI_COMM_MPI_PRIVATE_H

#include <mpi.h>
#include <pthread.h>
#include <time.h>

#include "comm/comm.h"
#include "comm/compare.h"

/* The job: one for the process. */
struct tri_mpi_job {
    MPI_Comm news; /* carries nothing but the news that a rank failed */
    int rank, size;
    bool failed;  /* this rank said so, or heard it */
    bool compare; /* TRIREME_COMM_CHECK=1 on any rank */
};

struct tri_mpi_comm {
    struct tri_comm base;
    MPI_Comm mpi;
    struct tri_mpi_job *job;
    void *scratch; /* (size * block) float64: what a reduction gathers at a time */
};

#define TRI_MPI_TRY(call, what)                                                                    \
    do {                                                                                           \
        int mpi_code_ = (call);                                                                    \
        if (mpi_code_ != MPI_SUCCESS)                                                              \
            return tri_mpi_failed(mpi_code_, what);                                                \
    } while (0)

/* TRI_COMM with MPI's own words. */
enum tri_status tri_mpi_failed(int code, const char *what);

/* ---- waiting (wait.c, guard.c) ---- */

/* Wait for `count` requests, and for nothing longer than the deadline; the news of a failed rank
 * ends it too. peers[i] is the rank that request i receives from, or -1. `what` names the
 * collective. */
enum tri_status tri_mpi_wait(struct tri_mpi_comm *comm, MPI_Request *requests, const int *peers,
                             int count, const char *what);

/* Around a call of MPI that may wait for ever: after `timeout` seconds the process says what it was
 * in, with the advice, and ends. The texts must live as long. */
struct tri_mpi_guard {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct timespec until;
    bool over;
    int rank;
    double timeout;
    const char *what, *advice;
};
enum tri_status tri_mpi_guard_begin(struct tri_mpi_guard *guard, int rank, double timeout,
                                    const char *what, const char *advice);
void tri_mpi_guard_end(struct tri_mpi_guard *guard);
extern const char tri_mpi_advice_stuck[];

/* Tell everybody, once. */
void tri_mpi_tell(struct tri_mpi_job *job, enum tri_status status, const char *text);

enum tri_status tri_mpi_new_comm(MPI_Comm mpi, struct tri_mpi_job *job, double timeout,
                                 struct tri_comm **out);

/* ---- blocks between all ranks (exchange.c) ---- */

struct tri_block tri_mpi_flat_block(const void *data, size_t bytes);

/* Every rank's block to every other; `what` names the collective in errors. */
enum tri_status tri_mpi_exchange(struct tri_mpi_comm *comm, int parts, const struct tri_block *send,
                                 const struct tri_block *recv, const char *what);

/* ---- the debug mode, TRIREME_COMM_CHECK=1 (compare.c) ---- */

/* Are all ranks in the same call? */
enum tri_status tri_mpi_compare(struct tri_mpi_comm *comm, struct tri_call mine);
/* Does every rank send what its peer expects? */
enum tri_status tri_mpi_compare_blocks(struct tri_mpi_comm *comm, int parts,
                                       const struct tri_block *send, const struct tri_block *recv);

#endif
