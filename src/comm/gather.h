/* Small facts of every rank, known to all of them afterwards. Host memory; built on reduce_host
 * alone, so that every communicator has them. */
#ifndef TRI_COMM_GATHER_H
#define TRI_COMM_GATHER_H

#include "comm/comm.h"

/* all (size, n) = the `values` (n) of every rank, in the order of ranks. comm NULL: one rank. */
enum tri_status tri_comm_gather(struct tri_comm *comm, const int64_t *values, int64_t n,
                                int64_t *all);

/* bytes (count) of rank `root` become those of every rank. Collective. */
enum tri_status tri_comm_hand_round(struct tri_comm *comm, int root, void *bytes, size_t count);

/* Did all ranks come here well? If not, every one of them gets the status and the text of the first
 * that did not, so that none waits for a rank that has given up. Collective. */
enum tri_status tri_comm_all_well(struct tri_comm *comm, enum tri_status mine);

#endif
