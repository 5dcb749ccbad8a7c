/* Ranks as processes with a GPU each, over NCCL. Tensors are in device memory and every collective
 * is queued on a stream of the CUDA backend; host values go over the rendezvous.
 *
 * NCCL's kernels wait for each other on the card, where no deadline reaches them. So a thread
 * watches: when a collective takes longer than `timeout`, when NCCL reports an error, or when the
 * rendezvous says that a rank failed or was killed, all communicators are aborted, which ends their
 * kernels, and the next call of this rank says why.
 *
 * NVLink multicast is off (NCCL_NVLS_ENABLE=0) unless the user has set that variable. */
#ifndef TRI_COMM_NCCL_NCCL_H
#define TRI_COMM_NCCL_NCCL_H

#include "comm/comm.h"
#include "comm/rendezvous/rendezvous.h"

/* The communicator of all ranks of `rv`, which stays the caller's and must outlive it. `device` is
 * the card of this process. Two ranks on one card are refused, and so are different versions of
 * NCCL. Without CUDA or NCCL: TRI_UNSUPPORTED. */
enum tri_status tri_comm_nccl_open(struct tri_rendezvous *rv, int device, double timeout,
                                   struct tri_comm **world);

/* "2.28.9 from /usr/lib/libnccl.so.2", or why it is not there. */
void tri_comm_nccl_describe(char *text, size_t bytes);

#endif
