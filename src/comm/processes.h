/* One process a rank on this machine: started, watched and ended by the process that the user
 * started. */
#ifndef TRI_COMM_PROCESSES_H
#define TRI_COMM_PROCESSES_H

#include "base/status.h"

/* A rank that ended only because it heard of another one's end exits with this code, so that the
 * first failure is named. */
enum { TRI_PROCESS_HEARD = 3 };

/* Run `path` with argv (NULL at its end) `ranks` times, with RANK, LOCAL_RANK, WORLD_SIZE,
 * LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TRIREME_JOB and TRIREME_LISTEN_FD in the environment
 * (comm/rendezvous/bootstrap.h reads them), and wait for all. Signals that ask to stop go to every
 * rank. When a rank fails, the others have `grace` seconds to end, then they are killed. TRI_PEER
 * with a text that says which rank failed first, and how. */
enum tri_status tri_processes_run(const char *path, char *const *argv, int ranks, double grace);

#endif
