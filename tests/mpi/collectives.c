/* The communicator of MPI, as one of several processes: every collective; with "fail", a rank that
 * fails, which all others must name; with "late", "absent" and "lost", one that comes after the
 * deadline to a collective, to MPI_Init and to MPI_Comm_split; with the name of a difference, ranks
 * whose calls do not fit, which the debug mode must tell. */
#include <stdio.h>
#include <stdlib.h>
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

static void be_late(void)
{
    struct timespec pause = {.tv_sec = 6, .tv_nsec = 0};
    nanosleep(&pause, NULL);
}

static enum tri_status one_is_late(struct tri_comm *comm)
{
    comm->timeout = 1;
    if (comm->rank == 1)
        be_late();
    enum tri_status st = tri_comm_agree(comm, "nothing", 0);
    CASE_CHECK(st == TRI_COMM || st == TRI_PEER);
    CASE_CHECK(comm->rank == 1 || st == TRI_PEER ||
               strstr(tri_error_text(), "; not there: rank 1") != NULL);
    fprintf(stderr, "rank %d did not wait\n", comm->rank);
    return st;
}

/* The others are in a call of MPI that has no deadline of its own. */
static enum tri_status one_is_lost(struct tri_comm *comm)
{
    struct tri_comm *all = NULL;
    comm->timeout = 3;
    if (comm->rank == 1) {
        TRI_TRY(tri_comm_agree(comm, "a split of ranks", 0)); /* as the split begins */
        be_late();
    }
    TRI_TRY(comm->ops->split(comm, 0, comm->rank, &all));
    tri_comm_close(all);
    return TRI_OK;
}

/* ---- ranks that go apart, under TRIREME_COMM_CHECK=1 -------------------------------------------
 */

static enum tri_status other_call(struct tri_comm *comm)
{
    double x[4] = {0};
    return comm->rank == 1 ? comm->ops->all_reduce(comm, NULL, x, 4, TRI_F64, TRI_SUM)
                           : comm->ops->broadcast(comm, NULL, x, sizeof x, 0);
}

static enum tri_status other_size(struct tri_comm *comm)
{
    double x[4] = {0};
    return comm->ops->all_reduce(comm, NULL, x, comm->rank == 1 ? 3 : 4, TRI_F64, TRI_SUM);
}

static enum tri_status other_dtype(struct tri_comm *comm)
{
    double x[4] = {0};
    return comm->ops->all_reduce(comm, NULL, x, 4, comm->rank == 1 ? TRI_F32 : TRI_F64, TRI_SUM);
}

static enum tri_status other_root(struct tri_comm *comm)
{
    double x[4] = {0};
    return comm->ops->broadcast(comm, NULL, x, sizeof x, comm->rank == 1);
}

static enum tri_status other_blocks(struct tri_comm *comm)
{
    char data[2][CASE_MAX_RANKS][8] = {{{0}}};
    struct tri_block send[CASE_MAX_RANKS], recv[CASE_MAX_RANKS];
    for (int r = 0; r < comm->size; r++) {
        send[r] = (struct tri_block){data[0][r], 1, 8, 8};
        recv[r] = (struct tri_block){data[1][r], 1, comm->rank == 1 ? 4u : 8u, 8};
    }
    return comm->ops->all_to_all(comm, NULL, 1, send, recv);
}

/* In a group that is not the whole job, where ranks have other numbers. */
static enum tri_status other_call_in_a_group(struct tri_comm *comm)
{
    struct tri_comm *pair = NULL;
    int64_t x = 0;
    TRI_TRY(comm->ops->split(comm, comm->rank > 0, comm->rank, &pair));
    enum tri_status st =
        comm->rank == 2 ? tri_comm_sum_int(pair, &x, 1) : tri_comm_max_int(pair, &x, 1);
    tri_comm_close(pair);
    return st != TRI_OK || comm->rank > 0 ? st : tri_comm_sum_int(comm, &x, 1);
}

static enum tri_status early_end(struct tri_comm *comm)
{
    int64_t x = 0;
    return comm->rank == 1 ? TRI_OK : tri_comm_sum_int(comm, &x, 1);
}

static const struct mode {
    const char *name;
    enum tri_status (*run)(struct tri_comm *comm);
    bool check;
} modes[] = {
    {"fail", one_fails, false},     {"late", one_is_late, false},
    {"lost", one_is_lost, false},   {"absent", one_is_late, false},
    {"call", other_call, true},     {"size", other_size, true},
    {"dtype", other_dtype, true},   {"root", other_root, true},
    {"blocks", other_blocks, true}, {"group", other_call_in_a_group, true},
    {"end", early_end, true},
};

static const struct mode *find_mode(const char *name)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, name) == 0)
            return &modes[i];
    return NULL;
}

/* One rank alone asks for the debug mode, as where a launcher hands on no variables. */
static bool is_last(void)
{
    const char *open_mpi = getenv("OMPI_COMM_WORLD_RANK");
    const char *rank = open_mpi != NULL ? open_mpi : getenv("PMI_RANK");
    return rank != NULL && strcmp(rank, "2") == 0;
}

int main(int argc, char **argv)
{
    const struct mode *mode = argc > 1 ? find_mode(argv[1]) : NULL;
    struct tri_comm *world = NULL;
    if (argc > 1 && mode == NULL) {
        fprintf(stderr, "error: no mode is called %s\n", argv[1]);
        return 2;
    }
    bool absent = mode != NULL && strcmp(mode->name, "absent") == 0;
    if (mode != NULL && mode->check && is_last())
        setenv("TRIREME_COMM_CHECK", "1", 1);
    if (absent && is_last())
        be_late();
    if (tri_comm_mpi_open(absent ? 1 : 60, &world) != TRI_OK) {
        fprintf(stderr, "error: %s\n", tri_error_text());
        return 1;
    }
    enum tri_status st = mode != NULL ? mode->run(world) : all_cases(world, NULL);
    if (st != TRI_OK)
        fprintf(stderr, "error: %s\n", tri_error_text());
    else if (world->rank == 0)
        printf("all collectives are right on %d ranks\n", world->size);
    tri_comm_mpi_finish(world, st);
    return st != TRI_OK;
}
