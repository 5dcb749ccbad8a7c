/* A build without CUDA or without NCCL's header. */
#include "comm/nccl/nccl.h"

#include <stdio.h>

static const char why[] =
    "this program was built without NCCL: install the CUDA toolkit and NCCL's header (libnccl-dev) "
    "and build again, or train on one card (ranks: 1)";

enum tri_status tri_comm_nccl_open(struct tri_rendezvous *rv, int device, double timeout,
                                   struct tri_comm **world)
{
    (void)rv;
    (void)device;
    (void)timeout;
    (void)world;
    return tri_fail(TRI_UNSUPPORTED, "%s", why);
}

void tri_comm_nccl_describe(char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", why);
}
