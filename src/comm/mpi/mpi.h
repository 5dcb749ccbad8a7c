/* Ranks as processes that an MPI launcher started (mpirun, srun). MPI-3.1; buffers in host memory.
 *
 * A build without MPI has the same functions; they say so (absent.c). */
#ifndef TRI_COMM_MPI_MPI_H
#define TRI_COMM_MPI_MPI_H

#include "comm/comm.h"
#include "trireme/comm.h" /* tri_comm_mpi_open, tri_comm_mpi_finish */

/* What the library of MPI calls itself, on one line; NULL without MPI. */
const char *tri_mpi_version(void);

#endif
