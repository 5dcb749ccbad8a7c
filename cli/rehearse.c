#include "cli.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "verify/rehearse.h"

static double gib(size_t bytes)
{
    return (double)bytes / 0x1p30;
}

static void print(const struct tri_rehearsal *r)
{
    printf("rehearsed a step over %" PRId64 " tokens a micro-batch in %.1f s\n", r->tokens,
           r->seconds);
    if (r->ranks > 1)
        printf("  as the first of %" PRId64 " ranks in ZeRO stage %d\n", r->ranks, r->zero_stage);
    printf("  weights        %9.3f GiB\n", gib(r->plan.weights));
    printf("  gradients      %9.3f GiB\n", gib(r->plan.gradients));
    printf("  optimizer      %9.3f GiB\n", gib(r->plan.optimizer));
    printf("  step           %9.3f GiB  %.1f KiB a token\n", gib(r->plan.step),
           (double)r->plan.step / 1024 / (double)r->tokens);
    printf("  planned peak   %9.3f GiB\n", gib(r->plan.total));
    printf("  available      %9.3f GiB\n", gib(r->available));
    printf("  measured peak  %9.3f GiB  in the arena\n", gib(r->arena_peak));
    printf("  resident peak  %9.3f GiB  of the process\n", gib(r->rss_peak));
    printf("  allocation trace %016" PRIx64 " (planned %016" PRIx64 ")\n", r->trace, r->plan.trace);
}

int tri_cli_rehearse(int argc, char **argv)
{
    struct tri_recipe *recipe = NULL;
    struct tri_rehearsal r;
    enum tri_status st = tri_cli_recipe(argc, argv, &recipe);
    if (st == TRI_OK)
        st = tri_rehearse(recipe, &r);
    tri_progress_end();
    if (st == TRI_OK)
        print(&r);
    tri_recipe_close(recipe);
    return tri_cli_end(st);
}
