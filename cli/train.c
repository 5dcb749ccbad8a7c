#include <string.h>

#include "cli.h"

#include "base/log.h"
#include "train/run.h"

/* Every key with its effective value and where that came from, before anything runs. */
static enum tri_status show_recipe(const struct tri_recipe *recipe)
{
    if (strcmp(recipe->train.log_level, "info") != 0 &&
        strcmp(recipe->train.log_level, "debug") != 0)
        return TRI_OK;
    return tri_recipe_dump(recipe, stderr);
}

static enum tri_status train(struct tri_recipe *recipe, struct tri_comm *world)
{
    struct tri_run *run = NULL;
    enum tri_status st = TRI_OK;
    TRI_TRY(tri_run_open(recipe, TRI_RUN_TRAIN, world, &run));
    if (world == NULL && recipe->train.zero_stage > TRI_ZERO_FIRST)
        tri_info("zero_stage: no effect, there is one rank (`trireme help ranks`)");
    if (tri_mesh_is_first(&run->mesh))
        st = show_recipe(recipe);
    if (st == TRI_OK)
        st = tri_run_train(run);
    tri_run_close(run);
    return st;
}

int tri_cli_train(int argc, char **argv)
{
    return tri_cli_end(tri_cli_ranks(argc, argv, train));
}
