/* What an all-to-all works with, for the life of a communicator: queues, events, room. */
#include "comm/nccl/private.h"

enum { SENDING_SMS = 32 /* multiprocessors that packing leaves to NCCL's kernels */ };

enum tri_status tri_nccl_exchange_open(struct tri_nccl_comm *comm)
{
    cudaEvent_t *const events[] = {&comm->ready,       &comm->packed[0], &comm->packed[1],
                                   &comm->sent[0],     &comm->sent[1],   &comm->unpacked[0],
                                   &comm->unpacked[1], &comm->finished};
    int least, greatest, sms;
    TRI_TRY(tri_cuda_check(
        cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, comm->job->device),
        "count multiprocessors"));
    comm->copy_sms = sms > 2 * SENDING_SMS ? sms - SENDING_SMS : sms;
    TRI_TRY(tri_cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "see priorities"));
    TRI_TRY(
        tri_cuda_check(cudaStreamCreateWithPriority(&comm->packer, cudaStreamNonBlocking, greatest),
                       "create a stream"));
    TRI_TRY(tri_cuda_check(
        cudaStreamCreateWithPriority(&comm->unpacker, cudaStreamNonBlocking, greatest),
        "create a stream"));
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        TRI_TRY(tri_cuda_check(cudaEventCreateWithFlags(events[i], cudaEventDisableTiming),
                               "create an event"));
    return TRI_OK;
}

void tri_nccl_exchange_close(struct tri_nccl_comm *comm)
{
    cudaEvent_t events[] = {comm->ready,   comm->packed[0],   comm->packed[1],   comm->sent[0],
                            comm->sent[1], comm->unpacked[0], comm->unpacked[1], comm->finished};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i] != NULL)
            (void)cudaEventDestroy(events[i]);
    if (comm->packer != NULL)
        (void)cudaStreamDestroy(comm->packer);
    if (comm->unpacker != NULL)
        (void)cudaStreamDestroy(comm->unpacker);
    (void)cudaFree(comm->pack_slots);
    (void)cudaFree(comm->unpack_slots);
}
