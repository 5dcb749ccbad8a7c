/* How the processes of a launcher find each other. */
#ifndef TRI_COMM_RENDEZVOUS_BOOTSTRAP_H
#define TRI_COMM_RENDEZVOUS_BOOTSTRAP_H

#include "comm/comm.h"
#include "comm/launch.h"
#include "comm/rendezvous/rendezvous.h"

/* Join the job of `launch`.
 *
 * MPI: `mpi` is its communicator of all ranks, over which rank 0 says where it is. Without it, and
 * for torchrun and Slurm, rank 0 is at MASTER_ADDR and listens on the first free port of
 * MASTER_PORT, MASTER_PORT + 1, ... MASTER_PORT + 15; torchrun's own store is at MASTER_PORT, so
 * there the first is MASTER_PORT + 1. Slurm: without these variables rank 0 is on the first node of
 * the job and the port follows from its number. */
enum tri_status tri_rendezvous_join(const struct tri_launch_info *launch, struct tri_comm *mpi,
                                    double timeout, struct tri_rendezvous **out);

/* The first name of a Slurm node list: "node[007-010,12],gpu1" gives "node007". */
enum tri_status tri_slurm_first_node(const char *list, char *name, size_t bytes);

#endif
