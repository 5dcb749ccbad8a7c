#include "trireme/loss.h"

#include "comm/comm.h"

int64_t tri_count_trained(const int32_t *labels, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += labels[i] >= 0;
    return count;
}

void tri_loss_add(struct tri_loss_sum *a, struct tri_loss_sum b)
{
    a->sum += b.sum;
    a->count += b.count;
}

enum tri_status tri_loss_reduce(struct tri_comm *comm, struct tri_loss_sum *loss)
{
    struct tri_loss_sum total = *loss;
    if (total.count == 0)
        total.sum = 0;
    if (comm != NULL) {
        TRI_TRY(tri_comm_sum_double(comm, &total.sum, 1));
        TRI_TRY(tri_comm_sum_int(comm, &total.count, 1));
    }
    *loss = total;
    return TRI_OK;
}

double tri_loss_mean(struct tri_loss_sum loss)
{
    return loss.count > 0 ? loss.sum / (double)loss.count : 0.0;
}
