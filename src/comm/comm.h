/* The collectives contract: everything that ranks say to each other.
 *
 * A communicator is one group of ranks seen by one of them. Implementations: `self` (one rank),
 * `thread` (ranks are threads of one process), `mpi`, `nccl`. All ranks of a group call the same
 * functions in the same order; with TRIREME_COMM_CHECK=1 each call is compared over the ranks first
 * and the first mismatch is an error on all of them.
 *
 * Rules
 * 1. Work is queued on the stream: NCCL runs it in order with the stream's kernels, the CPU
 *    communicators have finished when the call returns. Buffers belong to the call until then. An
 *    all-to-all with the stream NULL is one of host memory everywhere, and has then finished too.
 * 2. No wait is without a deadline. A rank that fails calls tri_comm_abort; every wait of every
 *    other rank of the whole job then ends with TRI_PEER and a text that names the first rank that
 *    failed and its reason. A peer that is gone or late ends in TRI_COMM after `timeout` seconds.
 * 3. Sums of float32 are made in the order of ranks, so that all ranks get the same bits (on the
 *    CPU; NCCL keeps its own order).
 * 4. Zero bytes are allowed everywhere.
 * 5. A communicator may have a queue of its own beside the stream (`fork`, `join`), so that large
 *    transfers run while the stream computes. Nobody has to have one.
 */
#ifndef TRI_COMM_COMM_H
#define TRI_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "base/status.h"
#include "trireme/comm.h" /* tri_comm_abort */

/* `rows` runs of `row_bytes` bytes, `stride` bytes apart: a block of a matrix. */
struct tri_block {
    void *data;
    int64_t rows;
    size_t row_bytes;
    size_t stride;
};

enum tri_reduction { TRI_SUM, TRI_MIN, TRI_MAX };

struct tri_comm;

struct tri_comm_ops {
    const char *name; /* "self", "thread", "mpi", "nccl" */

    /* `parts` exchanges in one: block send[p * size + r] goes to rank r and arrives in its
     * recv[p * size + my rank]; both have the same rows and row_bytes, strides may differ. A block
     * that is one run of bytes on both sides goes fastest as one row. */
    enum tri_status (*all_to_all)(struct tri_comm *comm, struct tri_stream *s, int parts,
                                  const struct tri_block *send, const struct tri_block *recv);
    /* recv (size * bytes) = the `send` of every rank, in the order of ranks. send may be the
     * rank's own part of recv. */
    enum tri_status (*all_gather)(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                  const void *send, size_t bytes);
    /* recv (n) = part `rank` of the sum over ranks of send (size * n); float32 or float64. recv
     * may be that part of send. */
    enum tri_status (*reduce_scatter)(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                      const void *send, int64_t n, enum tri_dtype dtype);
    /* data (n) = reduction over ranks, in place; float32, float64 or int64. */
    enum tri_status (*all_reduce)(struct tri_comm *comm, struct tri_stream *s, void *data,
                                  int64_t n, enum tri_dtype dtype, enum tri_reduction reduction);
    /* data (bytes) = that of rank `root`. */
    enum tri_status (*broadcast)(struct tri_comm *comm, struct tri_stream *s, void *data,
                                 size_t bytes, int root);
    /* The same for values in host memory, whatever the stream's backend; waits. */
    enum tri_status (*reduce_host)(struct tri_comm *comm, void *values, int64_t n,
                                   enum tri_dtype dtype, enum tri_reduction reduction);
    /* See tri_comm_fork and tri_comm_join. Both NULL: this communicator has no queue of its own. */
    enum tri_status (*fork)(struct tri_comm *comm, struct tri_stream *s, struct tri_stream **side);
    enum tri_status (*join)(struct tri_comm *comm, struct tri_stream *s);
    /* A new communicator of the ranks that give the same color, ordered by key, then rank. */
    enum tri_status (*split)(struct tri_comm *comm, int color, int key, struct tri_comm **out);
    /* See tri_comm_abort; `text` is copied. */
    void (*abort)(struct tri_comm *comm, enum tri_status status, const char *text);
    void (*close)(struct tri_comm *comm);
};

/* The head of every communicator; implementations put it first in their own struct. */
struct tri_comm {
    const struct tri_comm_ops *ops;
    int rank;
    int size;
    int world_rank; /* in the whole job: for messages */
    double timeout; /* seconds */
};

void tri_comm_close(struct tri_comm *comm); /* NULL is allowed */

/* *side = the stream to pass to collectives of `comm` that may overlap with what is queued on `s`
 * later. They start after everything that is queued on `s` now, and run in their own order. Without
 * a queue of its own it is `s`. Only collectives are queued on it. */
enum tri_status tri_comm_fork(struct tri_comm *comm, struct tri_stream *s,
                              struct tri_stream **side);
/* What is queued on `s` from now on starts after everything that was queued on the side. */
enum tri_status tri_comm_join(struct tri_comm *comm, struct tri_stream *s);

/* Host scalars over all ranks, in place. Waits. */
enum tri_status tri_comm_sum_double(struct tri_comm *comm, double *values, int64_t n);
enum tri_status tri_comm_sum_int(struct tri_comm *comm, int64_t *values, int64_t n);
enum tri_status tri_comm_max_int(struct tri_comm *comm, int64_t *values, int64_t n);

/* Do all ranks hold the same value? A minimum over (value, -value) tells without a root. On a
 * difference every rank fails with a text that names `what` and both values. */
enum tri_status tri_comm_agree(struct tri_comm *comm, const char *what, int64_t value);

/* Put "rank R: " before the current error text, where that does not begin with a rank itself. */
void tri_error_name_rank(int rank);

#endif
