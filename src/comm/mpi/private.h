/* Private to comm/mpi. */
#ifndef TRI_COMM_MPI_PRIVATE_H
#define TRI_COMM_MPI_PRIVATE_H

#include <mpi.h>

#include "comm/comm.h"

/* The job: one for the process. */
struct tri_mpi_job {
    MPI_Comm news; /* carries nothing but the news that a rank failed */
    int rank, size;
    bool failed; /* this rank said so, or heard it */
};

struct tri_mpi_comm {
    struct tri_comm base;
    MPI_Comm mpi;
    struct tri_mpi_job *job;
    void *scratch; /* (size * block) float64: what a reduction gathers at a time */
};

/* Wait for `count` requests, and for nothing longer than the deadline; the news of a failed rank
 * ends it too. `what` names the collective. */
enum tri_status tri_mpi_wait(struct tri_mpi_comm *comm, MPI_Request *requests, int count,
                             const char *what);

/* Tell everybody, once. */
void tri_mpi_tell(struct tri_mpi_job *job, enum tri_status status, const char *text);

/* TRI_COMM with MPI's own words. */
enum tri_status tri_mpi_failed(int code, const char *what);

#endif
