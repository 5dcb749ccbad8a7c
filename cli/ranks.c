/* Starting a verb on every rank: as threads, as processes of our own, or as one of the processes of
 * a launcher. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "base/log.h"
#include "cli.h"
#include "comm/mpi/mpi.h"
#include "comm/nccl/nccl.h"
#include "comm/processes.h"
#include "comm/rendezvous/bootstrap.h"

/* Seconds that ranks have to end after one of them failed; a process that does not is killed. */
static const double grace = 20;

/* Seconds within which the hub says which rank failed first. */
static const double news_seconds = 2;

/* What every rank does, and how to start this program again. */
struct job {
    int argc;
    char **argv;
    tri_rank_function *function;
    void *ctx;
};

static enum tri_status run_thread(struct tri_comm *comm, void *ctx)
{
    const struct job *job = ctx;
    if (comm->rank > 0)
        tri_log_mute(); /* the error of whoever failed first is told by the first thread's caller */
    return job->function(comm, job->ctx);
}

/* ---- as one process of a job that a launcher started -------------------------------------------
 */

/* Of the ranks of a job one speaks, about errors all do: in whole lines, since they share the
 * terminal. */
static void be_quiet(const struct tri_launch_info *launch)
{
    (void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
    if (launch->rank > 0)
        tri_log_set_level(TRI_LOG_ERROR);
}

/* A failed job ends in MPI_Abort, which this process does not survive: the error comes first. */
static void end_mpi(struct tri_comm *world, enum tri_status st)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", tri_error_text());
    tri_error_name_rank(world->world_rank);
    int code = tri_cli_end(st);
    (void)tri_fail(st, "%s", text); /* what the others hear */
    tri_comm_mpi_finish(world, st);
    exit(code);
}

static enum tri_status open_mpi(const struct tri_launch_info *launch, double timeout,
                                struct tri_comm **world)
{
    struct tri_comm *made = NULL;
    TRI_TRY(tri_comm_mpi_open(timeout, &made));
    if (made->size != launch->ranks)
        end_mpi(made, tri_fail(TRI_COMM,
                               "the launcher started %d ranks but MPI sees %d: build with the MPI "
                               "whose mpirun or srun plug-in starts it",
                               launch->ranks, made->size));
    *world = made;
    return TRI_OK;
}

static enum tri_status run_mpi(const struct tri_launch_info *launch, const struct job *job,
                               double timeout)
{
    struct tri_comm *world = NULL;
    be_quiet(launch);
    enum tri_status st = open_mpi(launch, timeout, &world);
    if (st == TRI_UNSUPPORTED && launch->rank > 0)
        tri_log_mute(); /* no rank can: the first says so */
    TRI_TRY(st);
    st = job->function(world, job->ctx);
    if (st != TRI_OK)
        end_mpi(world, st);
    tri_comm_mpi_finish(world, st);
    return st;
}

/* The card of this process. A launcher may show each process one card only. */
static enum tri_status choose_card(const struct tri_launch_info *launch)
{
    int cards = tri_cuda_num_cards();
    int card = cards == 1 || launch->local_rank < 0 ? 0 : launch->local_rank;
    if (cards > 0 && card >= cards)
        return tri_fail(TRI_INVALID,
                        "local rank %d has no card: %d are visible on this machine; start one rank "
                        "a card",
                        card, cards);
    return tri_cuda_choose_card(card);
}

/* Tell the others, and find out whether one of them was first: then this rank's error is only the
 * echo of that one's, or the same on all ranks. */
static enum tri_status tell(struct tri_rendezvous *rv, const struct tri_launch_info *launch,
                            enum tri_status st, bool *heard)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", tri_error_text());
    tri_rendezvous_fail(rv, st, text);
    int first = tri_rendezvous_first_failed(rv, news_seconds);
    *heard = first >= 0 && first != launch->rank;
    (void)tri_fail(st, "%s", text);
    if (st != TRI_PEER && launch->by != TRI_LAUNCH_MPI) /* end_mpi says it */
        tri_error_name_rank(launch->rank);
    return st;
}

/* Over NCCL, with a card a process. */
static enum tri_status run_cards(const struct tri_launch_info *launch, const struct job *job,
                                 double timeout)
{
    struct tri_comm *mpi = NULL, *world = NULL;
    struct tri_rendezvous *rv = NULL;
    bool heard = false;
    be_quiet(launch);
    TRI_TRY(choose_card(launch));
    if (launch->by == TRI_LAUNCH_MPI)
        TRI_TRY(open_mpi(launch, timeout, &mpi));
    enum tri_status st = tri_rendezvous_join(launch, mpi, timeout, &rv);
    if (st == TRI_OK)
        st = tri_comm_nccl_open(rv, tri_cuda_card(), timeout, &world);
    if (st == TRI_OK)
        st = job->function(world, job->ctx);
    if (st != TRI_OK && rv != NULL)
        st = tell(rv, launch, st, &heard);
    tri_comm_close(world);
    tri_rendezvous_close(rv);
    if (mpi != NULL && st != TRI_OK)
        end_mpi(mpi, st);
    if (mpi != NULL)
        tri_comm_mpi_finish(mpi, st);
    if (heard && launch->by == TRI_LAUNCH_SELF)
        exit(TRI_PROCESS_HEARD); /* the process that started this one tells who failed */
    return st;
}

/* ---- as what a person started ------------------------------------------------------------------
 */

/* A process a card, each of which is this program again. */
static enum tri_status start_processes(const struct job *job, int count)
{
    static char self[] = "trireme";
    char **argv = calloc((size_t)job->argc + 2, sizeof *argv);
    if (argv == NULL)
        return tri_fail(TRI_NOMEM, "no memory to start ranks");
    argv[0] = self;
    for (int i = 0; i < job->argc; i++)
        argv[i + 1] = job->argv[i];
    enum tri_status st = tri_processes_run("/proc/self/exe", argv, count, grace);
    free(argv);
    return st;
}

/* As tri_machine_open chooses. */
static bool wants_cuda(const struct tri_cli_start *how)
{
    const char *backend = how->backend != NULL ? how->backend : "auto";
    return strcmp(backend, "cuda") == 0 || (strcmp(backend, "auto") == 0 && tri_cuda_available());
}

/* How many ranks to start: `ranks`, or all cards, or one on the CPU. */
static enum tri_status count_ranks(const struct tri_cli_start *how, bool cuda, int *out)
{
    int count = (int)how->ranks;
    int cards = cuda ? tri_cuda_num_cards() : 0;
    if (cuda && cards == 0)
        return tri_cuda_choose_card(0); /* says why there is none */
    if (cuda && count > cards)
        return tri_fail(TRI_INVALID,
                        "ranks: %d, but %d cards are visible (CUDA_VISIBLE_DEVICES): one rank a "
                        "card",
                        count, cards);
    if (count == 0)
        count = cards > 0 ? cards : 1;
    *out = count;
    return TRI_OK;
}

static enum tri_status check_launch(const struct tri_launch_info *launch,
                                    const struct tri_cli_start *how, bool cuda)
{
    if (launch->by == TRI_LAUNCH_SELF || launch->ranks == 1)
        return TRI_OK;
    TRI_TRY(tri_cli_check_ranks(launch, how->ranks));
    if (!cuda && launch->by == TRI_LAUNCH_TORCHRUN)
        return tri_fail(
            TRI_UNSUPPORTED,
            "torchrun starts GPU ranks, and this is the CPU: use `trireme ... --ranks %d` "
            "or `mpirun -np %d trireme ...`; unset RANK and WORLD_SIZE if they were left over",
            launch->ranks, launch->ranks);
    return TRI_OK;
}

enum tri_status tri_cli_start_ranks(int argc, char **argv, const struct tri_cli_start *how,
                                    tri_rank_function *function, void *ctx)
{
    struct job job = {argc, argv, function, ctx};
    struct tri_launch_info launch = {.by = TRI_LAUNCH_NONE, .ranks = 1};
    int count = 1;
    bool cuda = wants_cuda(how);
    TRI_TRY(tri_launch_detect(&launch));
    TRI_TRY(check_launch(&launch, how, cuda));
    /* A launcher that starts one process says nothing about ranks: `ranks` may. */
    if (launch.by == TRI_LAUNCH_NONE || (launch.ranks == 1 && how->ranks > 1))
        TRI_TRY(count_ranks(how, cuda, &count));
    if (launch.ranks == 1 && count == 1) {
        if (cuda && launch.local_rank > 0)
            TRI_TRY(choose_card(&launch));
        return function(NULL, ctx);
    }
    if (launch.ranks > 1)
        return cuda ? run_cards(&launch, &job, how->timeout) : run_mpi(&launch, &job, how->timeout);
    return cuda ? start_processes(&job, count)
                : tri_comm_threads_run(count, how->timeout, run_thread, &job);
}

/* ---- a verb with a recipe ----------------------------------------------------------------------
 */

struct verb {
    int argc;
    char **argv;
    tri_cli_work *work;
    struct tri_recipe *recipe; /* for a rank that is alone */
};

static enum tri_status run_verb(struct tri_comm *comm, void *ctx)
{
    const struct verb *verb = ctx;
    struct tri_recipe *recipe = NULL;
    if (comm == NULL)
        return verb->work(verb->recipe, NULL);
    TRI_TRY(tri_recipe_open(verb->argv[1], verb->argc - 2, verb->argv + 2, &recipe));
    enum tri_status st = verb->work(recipe, comm);
    tri_recipe_close(recipe);
    return st;
}

enum tri_status tri_cli_ranks(int argc, char **argv, tri_cli_work *work)
{
    struct verb verb = {argc, argv, work, NULL};
    TRI_TRY(tri_cli_recipe(argc, argv, &verb.recipe));
    struct tri_cli_start how = {.backend = verb.recipe->pass.backend,
                                .ranks = verb.recipe->train.ranks,
                                .timeout = verb.recipe->train.comm_timeout};
    enum tri_status st = tri_cli_start_ranks(argc, argv, &how, run_verb, &verb);
    tri_recipe_close(verb.recipe);
    return st;
}
