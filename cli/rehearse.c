#include "cli.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/text.h"
#include "verify/rehearse.h"

/* A row of the table. */
static void row(const char *name, size_t bytes, const char *note)
{
    printf("  %-14s %10s%s%s\n", name, tri_bytes((double)bytes).s, note[0] != '\0' ? "  " : "",
           note);
}

static void print(const struct tri_rehearsal *r)
{
    char step[64];
    snprintf(step, sizeof step, "%s a token",
             tri_bytes((double)r->plan.step / (double)r->tokens).s);
    printf("rehearsed a step over %" PRId64 " tokens a micro-batch in %.1f s\n", r->tokens,
           r->seconds);
    if (r->ranks > 1)
        printf("  as the first of %" PRId64 " ranks in ZeRO stage %d\n", r->ranks, r->zero_stage);
    row("weights", r->plan.weights, "");
    row("gradients", r->plan.gradients, "");
    row("optimizer", r->plan.optimizer, "");
    row("step", r->plan.step, step);
    row("planned peak", r->plan.total, "");
    row("available", r->available, "");
    row("measured peak", r->arena_peak, "in the arena");
    row("resident peak", r->rss_peak, "of the process");
    printf("  allocation trace %016" PRIx64 " (planned %016" PRIx64 ")\n", r->trace, r->plan.trace);
}

int tri_cli_rehearse(int argc, char **argv)
{
    struct tri_recipe *recipe = NULL;
    struct tri_rehearsal r;
    if (!tri_cli_is_first())
        return 0;
    enum tri_status st = tri_cli_recipe(argc, argv, &recipe);
    if (st == TRI_OK)
        st = tri_cli_take_ranks(recipe);
    if (st == TRI_OK)
        st = tri_rehearse(recipe, &r);
    tri_progress_end();
    if (st == TRI_OK)
        print(&r);
    tri_recipe_close(recipe);
    return tri_cli_end(st);
}
