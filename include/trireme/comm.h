/* Ranks: the threads or processes that share the work.
 *
 * A communicator is a group of ranks as one of them sees it. All ranks of a group make the same
 * collective calls in the same order. No wait is without a deadline: when a rank fails, the others
 * end with TRI_PEER and a text that names it; a rank that is gone or late is TRI_COMM. */
#ifndef TRIREME_COMM_H
#define TRIREME_COMM_H

#include <stdbool.h>

#include "trireme/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tri_comm; /* opaque */

/* What a rank does. `comm` is the communicator of all ranks; it is closed by the caller. */
typedef enum tri_status tri_rank_function(struct tri_comm *comm, void *ctx);

/* Run `function` on `ranks` threads of this process at once and wait for all; `timeout` in seconds.
 * A rank that returns a failure ends the others. The result is the failure of the first rank that
 * failed, with its text, or TRI_OK. Tensors are in host memory. */
enum tri_status tri_comm_threads_run(int ranks, double timeout, tri_rank_function *function,
                                     void *ctx);

/* Join the job of an MPI launcher (mpirun, srun): once in a process, before any other call.
 * TRI_UNSUPPORTED in a build without MPI, and where this MPI cannot reach the launcher. A call that
 * waits inside of MPI (here, in a split and in tri_comm_mpi_finish) for longer than `timeout` says
 * so on standard error and ends the process: nothing else can end it. */
enum tri_status tri_comm_mpi_open(double timeout, struct tri_comm **world);

/* Leave it. After a failure on this rank or another one the launcher is told to end the job, so
 * that no process is left behind. */
void tri_comm_mpi_finish(struct tri_comm *world, enum tri_status status);

/* Run `function` as one of the processes, with a card each, that torchrun, mpirun or srun started:
 * ranks over NCCL, tensors in memory of the card. A device that names no card is on that of this
 * process. TRI_UNSUPPORTED without CUDA or cards, TRI_INVALID without a launcher. */
enum tri_status tri_comm_cards_run(double timeout, tri_rank_function *function, void *ctx);

/* This rank and their number. NULL: one rank. */
int tri_comm_rank(const struct tri_comm *comm);
int tri_comm_size(const struct tri_comm *comm);

/* Does any rank say yes? Replicas whose data end at different times go on together as long as some
 * have data, those that have none with empty steps. Collective; NULL: one rank. */
enum tri_status tri_comm_any(struct tri_comm *comm, bool mine, bool *any);

/* Tell all ranks of the job to stop: this one failed with its current error text. For ranks that
 * cannot return from their rank function soon. More than once is allowed. */
void tri_comm_abort(struct tri_comm *comm, enum tri_status status);

#ifdef __cplusplus
}
#endif

#endif
