/* Ranks as processes that an MPI launcher started (mpirun, srun). MPI-3.1; buffers in host memory.
 *
 * A build without MPI has the same functions; they say so (absent.c). */
#ifndef TRI_COMM_MPI_MPI_H
#define TRI_COMM_MPI_MPI_H

#include "comm/comm.h"

/* Join the job: once in a process, before any other call. `timeout` in seconds. */
enum tri_status tri_comm_mpi_open(double timeout, struct tri_comm **world);

/* Leave it. After a failure on this rank or another one the launcher is told to end the job, so
 * that no process is left behind. */
void tri_comm_mpi_finish(struct tri_comm *world, enum tri_status status);

#endif
