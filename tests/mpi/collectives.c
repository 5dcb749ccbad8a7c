/* The communicator of MPI, as one of several processes: every collective; with "fail", a rank that
 * fails, which all others must name; with "late", one that comes after the deadline. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/mpi/mpi.h"
#include "unit/comm/collectives.h"

static enum tri_status one_fails(struct tri_comm *comm)
{
    if (comm->rank == 1)
        return tri_fail(TRI_IO, "the disk of this rank is full");
    enum tri_status st = tri_comm_agree(comm, "nothing", 0);
    CASE_CHECK(st == TRI_PEER);
    CASE_CHECK(strstr(tri_error_text(), "rank 1 failed: the disk of this rank is full") != NULL);
    fprintf(stderr, "rank %d heard of it\n", comm->rank);
    return st;
}

static enum tri_status one_is_late(struct tri_comm *comm)
{
    struct timespec pause = {.tv_sec = 4, .tv_nsec = 0};
    comm->timeout = 1;
    if (comm->rank == 1)
        nanosleep(&pause, NULL);
    enum tri_status st = tri_comm_agree(comm, "nothing", 0);
    CASE_CHECK(st == TRI_COMM || st == TRI_PEER);
    fprintf(stderr, "rank %d did not wait\n", comm->rank);
    return st;
}

int main(int argc, char **argv)
{
    struct tri_comm *world = NULL;
    if (tri_comm_mpi_open(60, &world) != TRI_OK) {
        fprintf(stderr, "error: %s\n", tri_error_text());
        return 1;
    }
    enum tri_status st = argc > 1 && strcmp(argv[1], "fail") == 0   ? one_fails(world)
                         : argc > 1 && strcmp(argv[1], "late") == 0 ? one_is_late(world)
                                                                    : all_cases(world, NULL);
    if (st != TRI_OK)
        fprintf(stderr, "error: %s\n", tri_error_text());
    else if (world->rank == 0)
        printf("all collectives are right on %d ranks\n", world->size);
    tri_comm_mpi_finish(world, st);
    return st != TRI_OK;
}
