/* What several verbs do. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli.h"
#include "comm/launch.h"
#include "comm/mpi/mpi.h"
#include "comm/thread/thread.h"

enum tri_status tri_cli_recipe(int argc, char **argv, struct tri_recipe **out)
{
    if (argc < 2 || argv[1][0] == '-')
        return tri_fail(TRI_INVALID, "a recipe is missing: trireme %s RECIPE [--key value]...",
                        argv[0]);
    struct tri_recipe *recipe = NULL;
    TRI_TRY(tri_recipe_open(argv[1], argc - 2, argv + 2, &recipe));

    static const char *const levels[] = {"error", "warn", "info", "debug"};
    for (int i = 0; i < 4; i++)
        if (strcmp(recipe->train.log_level, levels[i]) == 0)
            tri_log_set_level((enum tri_log_level)i);
    *out = recipe;
    return TRI_OK;
}

struct ranks {
    int argc;
    char **argv;
    tri_cli_work *work;
};

static enum tri_status run_rank(struct tri_comm *comm, void *ctx)
{
    const struct ranks *ranks = ctx;
    struct tri_recipe *recipe = NULL;
    if (comm->rank > 0)
        tri_log_mute();
    TRI_TRY(tri_recipe_open(ranks->argv[1], ranks->argc - 2, ranks->argv + 2, &recipe));
    enum tri_status st = ranks->work(recipe, comm);
    tri_recipe_close(recipe);
    return st;
}

/* As one process of a job that a launcher started. */
static enum tri_status run_launched(const struct tri_launch *launch, struct ranks *ranks,
                                    double timeout)
{
    struct tri_comm *world = NULL;
    TRI_TRY(tri_comm_mpi_open(timeout, &world));
    enum tri_status st = TRI_OK;
    if (world->size != launch->ranks)
        st = tri_fail(
            TRI_COMM,
            "the launcher started %d ranks but MPI sees %d: build with the MPI whose mpirun "
            "or srun plug-in starts it",
            launch->ranks, world->size);
    else
        st = run_rank(world, ranks);
    tri_comm_mpi_finish(world, st);
    return st;
}

enum tri_status tri_cli_ranks(int argc, char **argv, tri_cli_work *work)
{
    struct ranks ranks = {argc, argv, work};
    struct tri_launch launch;
    struct tri_recipe *recipe = NULL;
    TRI_TRY(tri_cli_recipe(argc, argv, &recipe));
    enum tri_status st = tri_launch_detect(&launch);
    int count = (int)recipe->train.ranks;
    double timeout = recipe->train.comm_timeout;
    if (st == TRI_OK && launch.ranks > 1 && count > 1)
        st = tri_fail(TRI_INVALID,
                      "ranks: %d, but a launcher started %d processes already: leave ranks out",
                      count, launch.ranks);
    else if (st == TRI_OK && launch.ranks > 1 && launch.by == TRI_LAUNCH_TORCHRUN)
        st =
            tri_fail(TRI_UNSUPPORTED,
                     "torchrun starts GPU ranks, and this is the CPU: use `trireme ... --ranks %d` "
                     "or `mpirun -np %d trireme ...`",
                     launch.ranks, launch.ranks);
    else if (st == TRI_OK && launch.ranks == 1 && count == 1)
        st = work(recipe, NULL);
    tri_recipe_close(recipe);
    if (st != TRI_OK || (launch.ranks == 1 && count == 1))
        return st;
    if (launch.ranks > 1)
        return run_launched(&launch, &ranks, timeout);
    return tri_comm_threads_run(count, timeout, run_rank, &ranks);
}

int tri_cli_end(enum tri_status status)
{
    if (status == TRI_OK)
        return 0;
    const char *text = tri_error_text();
    tri_error("%s", *text == '\0' ? tri_status_text(status) : text);
    return 1;
}
