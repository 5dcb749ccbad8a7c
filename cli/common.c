/* What several verbs do. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli.h"

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

int tri_cli_end(enum tri_status status)
{
    if (status == TRI_OK)
        return 0;
    tri_cli_let_others_speak(status);
    const char *text = tri_error_text();
    tri_error("%s", *text == '\0' ? tri_status_text(status) : text);
    return 1;
}
