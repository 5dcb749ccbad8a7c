/* trireme data build | inspect */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli.h"
#include "train/run.h"

static void print_ready(const char *what, const struct tri_dataset *data)
{
    const struct tri_data_stats *stats = tri_dataset_stats(data);
    printf(
        "%s: %" PRId64 " sample%s, %" PRId64 " token%s are ready; training uses them while files, "
        "tokenizer and masks stay the same\n",
        what, stats->samples, tri_plural(stats->samples), stats->tokens, tri_plural(stats->tokens));
}

/* Under a launcher one process of each machine builds, since the folder may be the machine's own.
 * Where all machines share it, the others wait and find it ready. */
static enum tri_status build(int argc, char **argv)
{
    struct tri_recipe *recipe = NULL;
    struct tri_run *run = NULL;
    const struct tri_launch_info launch = tri_cli_launch();
    if (launch.local_rank > 0)
        return TRI_OK;
    TRI_TRY(tri_cli_recipe(argc, argv, &recipe));
    if (launch.rank > 0)
        tri_log_set_level(TRI_LOG_ERROR);
    recipe->data.cache = TRI_CACHE_BUILD;
    recipe->data.max_length = 0; /* the tokens are whole: no sample is too long for them */
    recipe->data.eval_max_length = 0;
    recipe->data.pack_samples = false;
    const enum tri_status st = tri_run_open_data(recipe, &run);
    if (st == TRI_OK && launch.rank == 0) {
        if (run->eval != NULL)
            print_ready("data.eval_sources", run->eval);
        print_ready("data.sources", run->data);
    }
    tri_run_close(run);
    tri_recipe_close(recipe);
    return st;
}

/* Take "NAME N" out of the arguments; *value stays as it is when NAME is not there. */
static enum tri_status take_number(int *argc, char **argv, const char *name, int64_t *value)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        if (i + 1 == *argc)
            return tri_fail(TRI_INVALID, "%s: a number is missing", name);
        enum tri_status st = tri_text_int(argv[i + 1], value);
        if (st == TRI_OK && *value < 0)
            st = tri_fail(TRI_INVALID, "%s is below 0", argv[i + 1]);
        if (st != TRI_OK) {
            tri_error_prefix("%s", name);
            return st;
        }
        *argc -= 2;
        for (int k = i; k < *argc; k++)
            argv[k] = argv[k + 2];
        return TRI_OK;
    }
    return TRI_OK;
}

static enum tri_status inspect(int argc, char **argv)
{
    struct tri_recipe *recipe = NULL;
    struct tri_run *run = NULL;
    int64_t samples = 3, tokens = 400;
    if (!tri_cli_is_first())
        return TRI_OK;
    TRI_TRY(take_number(&argc, argv, "-n", &samples));
    TRI_TRY(take_number(&argc, argv, "--tokens", &tokens));
    TRI_TRY(tri_cli_recipe(argc, argv, &recipe));
    enum tri_status st = tri_cli_take_ranks(recipe);
    /* What training refuses is shown here. */
    const bool stops = recipe->data.overlength == TRI_OVERLENGTH_ERROR;
    if (stops)
        recipe->data.overlength = TRI_OVERLENGTH_DROP;
    if (st == TRI_OK)
        st = tri_run_open_data(recipe, &run);
    if (st == TRI_OK && stops)
        recipe->data.overlength = TRI_OVERLENGTH_ERROR;
    if (st == TRI_OK)
        st = tri_cli_inspect(run, samples, tokens);
    tri_run_close(run);
    tri_recipe_close(recipe);
    return st;
}

int tri_cli_data(int argc, char **argv)
{
    static char build_name[] = "data build", inspect_name[] = "data inspect";
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "build") == 0) {
        argv[1] = build_name;
        return tri_cli_end(build(argc - 1, argv + 1));
    }
    if (strcmp(what, "inspect") == 0) {
        argv[1] = inspect_name;
        return tri_cli_end(inspect(argc - 1, argv + 1));
    }
    if (*what == '\0')
        return tri_cli_end(tri_fail(TRI_INVALID, "what to do is missing: trireme data inspect "
                                                 "RECIPE, or trireme data build RECIPE"));
    return tri_cli_end(
        tri_fail(TRI_INVALID, "unknown 'data %.60s': there are data inspect and data build", what));
}
