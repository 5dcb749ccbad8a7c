/* Are all ranks in the same call? The debug mode TRIREME_COMM_CHECK=1 asks that before each
 * collective; rank threads always do, since it costs them nothing. How calls reach the other ranks
 * is the communicator's affair; what is compared, and what a mismatch is called, is here. */
#ifndef TRI_COMM_COMPARE_H
#define TRI_COMM_COMPARE_H

#include "comm/comm.h"

/* What a rank is about to do. Plain bytes, so that it can be sent as it is. */
struct tri_call {
    char what[20];      /* "all-reduce" */
    char of[36];        /* behind the amount: "float32 (sum)"; empty: there is no amount */
    int64_t amount;     /* bytes, elements or parts */
    int64_t world_rank; /* whose call it is: not compared */
};

bool tri_compare_wanted(void); /* TRIREME_COMM_CHECK=1 in this process */

struct tri_call tri_call_plain(const struct tri_comm *comm, const char *what);
struct tri_call tri_call_all_to_all(const struct tri_comm *comm, int parts);
struct tri_call tri_call_all_gather(const struct tri_comm *comm, size_t bytes);
struct tri_call tri_call_broadcast(const struct tri_comm *comm, size_t bytes, int root);
/* Also of a reduce-scatter, which is a sum of `n` for each rank. */
struct tri_call tri_call_reduce(const struct tri_comm *comm, const char *what, int64_t n,
                                enum tri_dtype dtype, enum tri_reduction reduction);

/* TRI_COMM with a text that has both calls and both ranks when they are not the same. */
enum tri_status tri_call_compare(const struct tri_call *mine, const struct tri_call *other);

/* The same of all `size` calls of a group. */
enum tri_status tri_calls_compare(const struct tri_call *mine, const struct tri_call *all,
                                  int size);

/* Does rank `from` of a group send, as part `part` of an all-to-all, what rank `to` expects? */
enum tri_status tri_block_compare(int part, int from, const struct tri_block *sent, int to,
                                  const struct tri_block *expected);

/* The same of what every rank sends to this one: `all` is (size, parts * size). */
enum tri_status tri_blocks_compare(const struct tri_comm *comm, int parts,
                                   const struct tri_block *all, const struct tri_block *recv);

#endif
