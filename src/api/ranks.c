/* Ranks: who they are, what they agree on, and a card for each where a launcher started them. */
#include "backend/cuda/cuda.h"
#include "comm/launch.h"
#include "comm/mpi/mpi.h"
#include "comm/nccl/nccl.h"
#include "comm/rendezvous/bootstrap.h"
#include "trireme/comm.h"

int tri_comm_rank(const struct tri_comm *comm)
{
    return comm != NULL ? comm->rank : 0;
}

int tri_comm_size(const struct tri_comm *comm)
{
    return comm != NULL ? comm->size : 1;
}

enum tri_status tri_comm_any(struct tri_comm *comm, bool mine, bool *any)
{
    int64_t value = mine;
    if (comm != NULL)
        TRI_TRY(tri_comm_max_int(comm, &value, 1));
    *any = value != 0;
    return TRI_OK;
}

/* A launcher may show each process one card only. */
static enum tri_status choose_card(const struct tri_launch_info *launch)
{
    int cards = tri_cuda_num_cards();
    int card = cards == 1 || launch->local_rank < 0 ? 0 : launch->local_rank;
    if (card >= cards)
        return tri_fail(cards == 0 ? TRI_UNSUPPORTED : TRI_INVALID,
                        "local rank %d has no card: %d are visible on this machine; start one rank "
                        "a card, or use tri_comm_threads_run or tri_comm_mpi_open on the CPU",
                        launch->local_rank, cards);
    return tri_cuda_choose_card(card);
}

enum tri_status tri_comm_cards_run(double timeout, tri_rank_function *function, void *ctx)
{
    struct tri_launch_info launch;
    struct tri_comm *mpi = NULL, *world = NULL;
    struct tri_rendezvous *rv = NULL;
    TRI_TRY(tri_launch_detect(&launch));
    if (launch.by == TRI_LAUNCH_NONE)
        return tri_fail(TRI_INVALID, "no launcher started this process: use torchrun, mpirun or "
                                     "srun, one process a card");
    TRI_TRY(choose_card(&launch));
    if (launch.by == TRI_LAUNCH_MPI)
        TRI_TRY(tri_comm_mpi_open(timeout, &mpi));
    enum tri_status st = tri_rendezvous_join(&launch, mpi, timeout, &rv);
    if (st == TRI_OK)
        st = tri_comm_nccl_open(rv, tri_cuda_card(), timeout, &world);
    if (st == TRI_OK)
        st = function(world, ctx);
    if (st != TRI_OK && rv != NULL)
        tri_rendezvous_fail(rv, st, tri_error_text());
    tri_comm_close(world);
    tri_rendezvous_close(rv);
    if (mpi != NULL)
        tri_comm_mpi_finish(mpi, st);
    return st;
}
