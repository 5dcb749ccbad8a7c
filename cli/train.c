#include "cli.h"

#include "train/run.h"

static enum tri_status train(struct tri_recipe *recipe)
{
    struct tri_run *run = NULL;
    TRI_TRY(tri_run_open(recipe, TRI_RUN_TRAIN, &run));
    enum tri_status st = tri_run_train(run);
    tri_run_close(run);
    return st;
}

int tri_cli_train(int argc, char **argv)
{
    struct tri_recipe *recipe = NULL;
    enum tri_status st = tri_cli_recipe(argc, argv, &recipe);
    if (st == TRI_OK)
        st = train(recipe);
    tri_recipe_close(recipe);
    return tri_cli_end(st);
}
