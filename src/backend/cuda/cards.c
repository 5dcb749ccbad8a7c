/* Which card is this process's. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/probe.h"

static int card;

int tri_cuda_num_cards(void)
{
    struct tri_cuda_info info;
    tri_cuda_probe_card(0, &info);
    return info.available ? info.num_cards : 0;
}

int tri_cuda_card(void)
{
    return card;
}

enum tri_status tri_cuda_choose_card(int device)
{
    struct tri_cuda_info info;
    tri_cuda_probe_card(device, &info);
    if (!info.available)
        return tri_fail(TRI_UNSUPPORTED, "%s", info.problem);
    card = device;
    return TRI_OK;
}
