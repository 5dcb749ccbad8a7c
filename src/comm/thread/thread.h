/* Ranks as threads of one process: the embedded default, and the test bed of everything
 * distributed.
 *
 * Ranks read each other's buffers directly between two barriers, so nothing is copied twice. */
#ifndef TRI_COMM_THREAD_THREAD_H
#define TRI_COMM_THREAD_THREAD_H

#include "comm/comm.h"

/* What a rank does. `comm` is the communicator of all ranks; it is closed by the caller. */
typedef enum tri_status tri_rank_function(struct tri_comm *comm, void *ctx);

/* Run `function` on `ranks` threads at once and wait for all. A rank that returns a failure aborts
 * the others. The result is the failure of the first rank that failed, with its text, or TRI_OK. */
enum tri_status tri_comm_threads_run(int ranks, double timeout, tri_rank_function *function,
                                     void *ctx);

#endif
