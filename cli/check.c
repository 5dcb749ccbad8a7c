#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "verify/check.h"

/* The option of pass/options.h that an argument "--name" names. */
static const struct tri_option *find_option(const char *name)
{
    for (size_t i = 0; i < tri_pass_option_table.count; i++)
        if (strcmp(tri_pass_option_table.options[i].name, name) == 0)
            return &tri_pass_option_table.options[i];
    return NULL;
}

static enum tri_status read_number(const char *option, const char *value, int64_t min, int64_t max,
                                   int *out)
{
    int64_t number;
    enum tri_status st = tri_text_int(value, &number);
    if (st == TRI_OK && (number < min || number > max))
        st = tri_fail(TRI_INVALID, "%s: %lld to %lld are possible", value, (long long)min,
                      (long long)max);
    if (st != TRI_OK) {
        tri_error_prefix("%s", option);
        return st;
    }
    *out = (int)number;
    return TRI_OK;
}

/* Take "--key value" at argv[i]; everything else is a folder. */
static enum tri_status read_argument(int argc, char **argv, int *i, struct tri_pass_options *pass,
                                     struct tri_check_way *way)
{
    const char *argument = argv[*i];
    const char *name = argument + 2;
    if (*i + 1 >= argc)
        return tri_fail(TRI_INVALID, "%s: a value is missing", argument);
    const char *value = argv[++*i];
    if (strcmp(name, "dtype") == 0 || strcmp(name, "model.dtype") == 0) {
        way->dtype = value;
        return TRI_OK;
    }
    if (strcmp(name, "ranks") == 0)
        return read_number(argument, value, 1, 64, &way->ranks);
    if (strcmp(name, "zero") == 0 || strcmp(name, "zero_stage") == 0)
        return read_number(argument, value, 0, 3, &way->zero_stage);
    const struct tri_option *option = find_option(name);
    if (option == NULL)
        return tri_fail(TRI_INVALID, "unknown option --%s; `trireme help check` lists them", name);
    enum tri_status st = tri_option_set(option, &value, 1, pass);
    if (st != TRI_OK)
        tri_error_prefix("--%s", name);
    return st;
}

/* Check each folder; `over` counts those with a number over its bound. */
static enum tri_status check_all(int argc, char **argv, struct tri_pass_options *pass, int *over)
{
    struct tri_check_way way = {.pass = pass, .ranks = 1};
    int folders = 0;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--", 2) == 0)
            TRI_TRY(read_argument(argc, argv, &i, pass, &way));
    for (int i = 1; i < argc; i++) {
        struct tri_check_result result;
        if (strncmp(argv[i], "--", 2) == 0) {
            i++; /* its value */
            continue;
        }
        folders++;
        TRI_TRY(tri_check(argv[i], &way, stdout, &result));
        printf("  %d of %d within bounds\n", result.rows - result.failed, result.rows);
        *over += result.failed > 0;
    }
    if (folders == 0)
        return tri_fail(TRI_INVALID, "a golden folder is missing: trireme check DIR... "
                                     "(tools/golden.py makes one from any model)");
    return TRI_OK;
}

int tri_cli_check(int argc, char **argv)
{
    struct tri_pass_options pass = {0};
    int over = 0;
    enum tri_status st = tri_option_defaults(&tri_pass_option_table, &pass);
    if (st == TRI_OK)
        st = check_all(argc, argv, &pass, &over);
    tri_option_clear(&tri_pass_option_table, &pass);
    return st != TRI_OK ? tri_cli_end(st) : over > 0;
}
