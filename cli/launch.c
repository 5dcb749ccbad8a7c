/* What a launcher (mpirun, srun, torchrun) changes for every verb: many processes run the same
 * line, and one of them speaks. */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "cli.h"

struct tri_launch_info tri_cli_launch(void)
{
    struct tri_launch_info launch;
    char text[1024]; /* of an error that the caller is about to print */
    snprintf(text, sizeof text, "%s", tri_error_text());
    if (tri_launch_detect(&launch) != TRI_OK)
        launch = (struct tri_launch_info){.by = TRI_LAUNCH_NONE, .ranks = 1, .local_rank = -1};
    (void)tri_fail(TRI_OK, "%s", text);
    return launch;
}

bool tri_cli_is_first(void)
{
    return tri_cli_launch().rank == 0;
}

enum tri_status tri_cli_check_ranks(const struct tri_launch_info *launch, int64_t ranks)
{
    if (launch->by == TRI_LAUNCH_SELF || launch->ranks == 1 || ranks <= 1)
        return TRI_OK;
    return tri_fail(TRI_INVALID,
                    "ranks: %lld, but a launcher started %d processes already: leave ranks out",
                    (long long)ranks, launch->ranks);
}

enum tri_status tri_cli_take_ranks(struct tri_recipe *recipe)
{
    struct tri_launch_info launch;
    TRI_TRY(tri_launch_detect(&launch));
    TRI_TRY(tri_cli_check_ranks(&launch, recipe->train.ranks));
    if (launch.ranks > 1)
        recipe->train.ranks = launch.ranks;
    return TRI_OK;
}

/* Seconds before this process tells an error: nobody else has that of the first rank, or of a rank
 * alone; others repeat the first one's, or what they heard of another's. */
static time_t patience(enum tri_status status)
{
    const struct tri_launch_info launch = tri_cli_launch();
    if (launch.by == TRI_LAUNCH_SELF || launch.ranks == 1)
        return 0;
    return status == TRI_PEER ? 4 : launch.rank > 0 ? 3 : 0; /* Open MPI takes one or two */
}

void tri_cli_let_others_speak(enum tri_status status)
{
    const struct timespec pause = {.tv_sec = patience(status)};
    if (pause.tv_sec == 0)
        return;
    (void)signal(SIGTERM, SIG_DFL); /* how a launcher ends the others: nothing is left to save */
    nanosleep(&pause, NULL);
}
