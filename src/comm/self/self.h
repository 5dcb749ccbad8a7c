/* The communicator of one rank: the smallest complete implementation. */
#ifndef TRI_COMM_SELF_SELF_H
#define TRI_COMM_SELF_SELF_H

#include "comm/comm.h"

enum tri_status tri_comm_self(struct tri_comm **out);

/* One rank of `size` that talks to nobody: every call succeeds and moves nothing, and sums of host
 * values are as if every rank held the same. What a rank of a
 * job would allocate is counted and rehearsed with it, on one machine and in one thread. */
enum tri_status tri_comm_dry(int rank, int size, struct tri_comm **out);

#endif
