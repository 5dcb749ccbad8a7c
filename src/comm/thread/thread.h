/* Ranks as threads of one process: the embedded default, and the test bed of everything
 * distributed.
 *
 * Ranks read each other's buffers directly between two barriers, so nothing is copied twice. */
#ifndef TRI_COMM_THREAD_THREAD_H
#define TRI_COMM_THREAD_THREAD_H

#include "comm/comm.h"
#include "trireme/comm.h" /* tri_comm_threads_run */

#endif
