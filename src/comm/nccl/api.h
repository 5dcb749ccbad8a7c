/* Private to comm/nccl: the library, found at run time. */
#ifndef TRI_COMM_NCCL_API_H
#define TRI_COMM_NCCL_API_H

#include <nccl.h>

#include "backend/cuda/libraries.h"

struct tri_nccl_api {
    struct tri_cuda_library library;
    int version; /* 22809 for 2.28.9 */
    ncclResult_t (*get_version)(int *version);
    ncclResult_t (*get_unique_id)(ncclUniqueId *id);
    ncclResult_t (*init)(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                         ncclConfig_t *config);
    ncclResult_t (*get_async_error)(ncclComm_t comm, ncclResult_t *error);
    ncclResult_t (*finalize)(ncclComm_t comm);
    ncclResult_t (*destroy)(ncclComm_t comm);
    ncclResult_t (*abort)(ncclComm_t comm);
    const char *(*error_string)(ncclResult_t result);
    const char *(*last_error)(ncclComm_t comm);
    ncclResult_t (*group_start)(void);
    ncclResult_t (*group_end)(void);
    ncclResult_t (*send)(const void *data, size_t count, ncclDataType_t type, int peer,
                         ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*recv)(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                         cudaStream_t stream);
    ncclResult_t (*all_gather)(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*reduce_scatter)(const void *send, void *recv, size_t count, ncclDataType_t type,
                                   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*all_reduce)(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*broadcast)(const void *send, void *recv, size_t count, ncclDataType_t type,
                              int root, ncclComm_t comm, cudaStream_t stream);
};

/* Find the library and all of its functions. TRI_UNSUPPORTED says what is missing. */
enum tri_status tri_nccl_api_open(struct tri_nccl_api *out);

#endif
