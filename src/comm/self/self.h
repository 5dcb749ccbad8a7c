/* The communicator of one rank: the smallest complete implementation. */
#ifndef TRI_COMM_SELF_SELF_H
#define TRI_COMM_SELF_SELF_H

#include "comm/comm.h"

enum tri_status tri_comm_self(struct tri_comm **out);

#endif
