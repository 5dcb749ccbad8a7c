#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "train/run.h"

static enum tri_status evaluate(struct tri_recipe *recipe, struct tri_comm *world)
{
    struct tri_run *run = NULL;
    struct tri_eval_result r;
    TRI_TRY(tri_run_open(recipe, TRI_RUN_EVAL, world, &run));
    enum tri_status st = tri_run_eval(run, &r);
    if (st == TRI_OK && tri_mesh_is_first(&run->mesh))
        printf("eval loss %.6f, perplexity %.3f: %" PRId64 " trained of %" PRId64
               " token%s in %" PRId64 " sequence%s, %.1f s\n",
               r.loss, exp(r.loss), r.trained, r.tokens, tri_plural(r.tokens), r.sequences,
               tri_plural(r.sequences), r.seconds);
    tri_run_close(run);
    return st;
}

int tri_cli_eval(int argc, char **argv)
{
    return tri_cli_end(tri_cli_ranks(argc, argv, evaluate));
}
