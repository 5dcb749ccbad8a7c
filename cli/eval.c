#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "train/run.h"

static enum tri_status evaluate(struct tri_recipe *recipe)
{
    struct tri_run *run = NULL;
    struct tri_eval_result r;
    TRI_TRY(tri_run_open(recipe, TRI_RUN_EVAL, &run));
    enum tri_status st = tri_run_eval(run, &r);
    tri_run_close(run);
    if (st != TRI_OK)
        return st;
    printf("eval loss %.6f, perplexity %.3f: %" PRId64 " trained of %" PRId64 " tokens in %" PRId64
           " sequences, %.1f s\n",
           r.loss, exp(r.loss), r.trained, r.tokens, r.sequences, r.seconds);
    return TRI_OK;
}

int tri_cli_eval(int argc, char **argv)
{
    struct tri_recipe *recipe = NULL;
    enum tri_status st = tri_cli_recipe(argc, argv, &recipe);
    if (st == TRI_OK)
        st = evaluate(recipe);
    tri_recipe_close(recipe);
    return tri_cli_end(st);
}
