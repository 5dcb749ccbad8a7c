/* Joining the job of a launcher, and leaving it. */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "comm/launch.h"
#include "comm/mpi/mpi.h"
#include "comm/mpi/private.h"

#ifdef OPEN_MPI
static const enum tri_mpi_library library = TRI_OPEN_MPI;
#define NETWORK "`mpirun --mca btl_tcp_if_include 10.0.0.0/8 ...`"
#else
static const enum tri_mpi_library library = TRI_MPICH;
#define NETWORK "`mpirun -iface eth0 ...`"
#endif

static const char advice_network[] =
    "the ranks do not reach each other; where machines have several networks name the one that "
    "connects them, as in " NETWORK "; raise comm.timeout if they are only slow";

const char tri_mpi_advice_stuck[] =
    "a peer is gone or stuck; raise comm.timeout if it is only slow";

const char *tri_mpi_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int bytes = 0;
    if (MPI_Get_library_version(text, &bytes) != MPI_SUCCESS)
        text[0] = '\0';
    text[strcspn(text, ",\n")] = '\0'; /* how it was built follows */
    for (char *p = text; *p != '\0'; p++)
        *p = *p == '\t' ? ' ' : *p;
    return text;
}

static enum tri_status join(struct tri_mpi_job *job, double timeout, struct tri_comm **out)
{
    int provided;
    MPI_Comm ranks;
    TRI_MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "MPI_Init");
    TRI_MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &ranks), "MPI_Init");
    TRI_MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &job->news), "MPI_Init");
    TRI_MPI_TRY(MPI_Comm_rank(ranks, &job->rank), "MPI_Init");
    TRI_MPI_TRY(MPI_Comm_size(ranks, &job->size), "MPI_Init");
    TRI_MPI_TRY(MPI_Comm_set_errhandler(job->news, MPI_ERRORS_RETURN), "MPI_Init");
    return tri_mpi_new_comm(ranks, job, timeout, out);
}

/* The first exchange between all ranks: those that cannot reach each other are found here. It
 * carries whether calls are to be compared. A launcher of several machines hands on no variables of
 * ours, so one rank that has TRIREME_COMM_CHECK=1 is enough. */
static enum tri_status meet(struct tri_comm *world)
{
    bool wanted = tri_compare_wanted();
    bool *all = calloc((size_t)world->size, sizeof *all);
    if (all == NULL)
        return tri_fail(TRI_NOMEM, "no memory for %d ranks", world->size);
    enum tri_status st = world->ops->all_gather(world, NULL, all, &wanted, sizeof wanted);
    struct tri_mpi_job *job = ((struct tri_mpi_comm *)world)->job;
    for (int r = 0; r < world->size && st == TRI_OK; r++)
        job->compare = job->compare || all[r];
    free(all);
    return st;
}

enum tri_status tri_comm_mpi_open(double timeout, struct tri_comm **world)
{
    static struct tri_mpi_job job;
    struct tri_launch_info launch;
    struct tri_mpi_guard guard;
    struct tri_comm *made = NULL;
    TRI_TRY(tri_launch_detect(&launch));
    TRI_TRY(tri_launch_check_mpi(&launch, library, 0));
    TRI_TRY(tri_mpi_guard_begin(&guard, launch.rank, timeout, "MPI_Init", advice_network));
    enum tri_status st = join(&job, timeout, &made);
    tri_mpi_guard_end(&guard);
    TRI_TRY(st);
    st = tri_launch_check_mpi(&launch, library, made->size);
    if (st != TRI_OK) {
        tri_comm_mpi_finish(made, TRI_OK); /* nobody else has to hear of it */
        return st;
    }
    st = meet(made);
    if (st != TRI_OK) {
        tri_error("%s", tri_error_text()); /* MPI_Abort does not return */
        tri_comm_mpi_finish(made, st);
        return st;
    }
    *world = made;
    return TRI_OK;
}

/* Nobody waits for this rank any more. */
static void finalize(struct tri_mpi_job *job, double timeout)
{
    struct tri_mpi_guard guard;
    bool guarded = tri_mpi_guard_begin(&guard, job->rank, timeout, "MPI_Finalize",
                                       tri_mpi_advice_stuck) == TRI_OK;
    MPI_Comm_free(&job->news);
    MPI_Finalize();
    if (guarded)
        tri_mpi_guard_end(&guard);
}

void tri_comm_mpi_finish(struct tri_comm *world, enum tri_status status)
{
    struct tri_mpi_job *job = ((struct tri_mpi_comm *)world)->job;
    double timeout = world->timeout;
    /* A rank that is still in a collective is named here: MPI_Finalize would only wait. */
    if (status == TRI_OK) {
        status = tri_mpi_compare((struct tri_mpi_comm *)world, tri_call_plain(world, "the end"));
        if (status != TRI_OK)
            tri_error("%s", tri_error_text()); /* nobody else can */
    }
    if (status != TRI_OK)
        tri_mpi_tell(job, status, tri_error_text());
    bool failed = job->failed;
    tri_comm_close(world);
    if (!failed) {
        finalize(job, timeout);
        return;
    }
    /* Give the others time to hear of it and to say so themselves, then end what is left. */
    struct timespec pause = {.tv_sec = 1, .tv_nsec = 0};
    nanosleep(&pause, NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
