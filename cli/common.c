/* What several verbs do. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli.h"
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

enum tri_status tri_cli_ranks(int argc, char **argv, tri_cli_work *work)
{
    struct ranks ranks = {argc, argv, work};
    struct tri_recipe *recipe = NULL;
    TRI_TRY(tri_cli_recipe(argc, argv, &recipe));
    int count = (int)recipe->train.ranks;
    double timeout = recipe->train.comm_timeout;
    enum tri_status st = count == 1 ? work(recipe, NULL) : TRI_OK;
    tri_recipe_close(recipe);
    return count == 1 ? st : tri_comm_threads_run(count, timeout, run_rank, &ranks);
}

int tri_cli_end(enum tri_status status)
{
    if (status == TRI_OK)
        return 0;
    const char *text = tri_error_text();
    tri_error("%s", *text == '\0' ? tri_status_text(status) : text);
    return 1;
}
