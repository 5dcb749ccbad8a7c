/* A build without MPI. */
#include "comm/mpi/mpi.h"

enum tri_status tri_comm_mpi_open(double timeout, struct tri_comm **world)
{
    (void)timeout;
    (void)world;
    return tri_fail(
        TRI_UNSUPPORTED,
        "this build has no MPI: install libopenmpi-dev or libmpich-dev and build again, "
        "or start ranks on one machine with --ranks");
}

const char *tri_mpi_version(void)
{
    return NULL;
}

void tri_comm_mpi_finish(struct tri_comm *world, enum tri_status status)
{
    (void)status;
    tri_comm_close(world);
}
