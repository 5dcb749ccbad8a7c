/* The communicator of one rank: the smallest complete implementation. */
#ifndef TRI_COMM_SELF_SELF_H
#define TRI_COMM_SELF_SELF_H

#include "comm/comm.h"

enum tri_status tri_comm_self(struct tri_comm **out);

/* One rank of `size` that talks to nobody: every call succeeds, and sums of host values are as if
 * every rank held the same. What a rank of a job would allocate is counted with it, on one machine
 * and in one thread. With the `ops` of the streams that it gets (NULL: nothing is touched) it also
 * sets what it would have received to zero, for rehearsals. */
enum tri_status tri_comm_dry(int rank, int size, const struct tri_ops *ops, struct tri_comm **out);

#endif
