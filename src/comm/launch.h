/* Who started this process, and as how many. */
#ifndef TRI_COMM_LAUNCH_H
#define TRI_COMM_LAUNCH_H

#include "base/status.h"

enum tri_launcher {
    TRI_LAUNCH_NONE,     /* a person: one process, which may start ranks itself */
    TRI_LAUNCH_SELF,     /* this program, a process a card (processes.h) */
    TRI_LAUNCH_TORCHRUN, /* torchrun, accelerate, deepspeed: RANK, WORLD_SIZE, MASTER_ADDR */
    TRI_LAUNCH_MPI,      /* mpirun, or srun with an MPI plug-in */
    TRI_LAUNCH_SLURM,    /* srun */
};

struct tri_launch_info {
    enum tri_launcher by;
    int ranks; /* that the launcher says it started; 1 without one */
    int rank;
    int local_rank; /* among those of this machine: its card. -1: the launcher did not say */
};

/* From the environment: RANK and WORLD_SIZE, then Open MPI's, PMI's and Slurm's variables. A world
 * of one that torchrun did not make counts only where no other launcher speaks of several ranks;
 * RANK or WORLD_SIZE alone is refused. */
enum tri_status tri_launch_detect(struct tri_launch_info *out);

enum tri_mpi_library { TRI_OPEN_MPI, TRI_MPICH };

/* Can ranks that were started so meet through this MPI? One that cannot reach its launcher ends the
 * process in MPI_Init with a page about how it was built, or leaves each rank alone: this says what
 * to type. `world` is the number of ranks that MPI sees, 0 before MPI_Init. */
enum tri_status tri_launch_check_mpi(const struct tri_launch_info *launch,
                                     enum tri_mpi_library library, int world);

#endif
