/* What the NCCL communicator must do, as functions of a rank; tensors are in device memory. */
#ifndef TESTS_GPU_NCCL_CASES_H
#define TESTS_GPU_NCCL_CASES_H

#include "comm/comm.h"

/* The stream of the rank's card. */
enum tri_status nccl_case_all_to_all(struct tri_comm *comm, struct tri_stream *s);
enum tri_status nccl_case_rounds(struct tri_comm *comm, struct tri_stream *s);
enum tri_status nccl_case_reductions(struct tri_comm *comm, struct tri_stream *s);
enum tri_status nccl_case_gather(struct tri_comm *comm, struct tri_stream *s);
enum tri_status nccl_case_queue(struct tri_comm *comm, struct tri_stream *s);
enum tri_status nccl_case_host(struct tri_comm *comm, struct tri_stream *s);
enum tri_status nccl_case_host_blocks(struct tri_comm *comm, struct tri_stream *s);
enum tri_status nccl_case_split(struct tri_comm *comm, struct tri_stream *s);

#endif
