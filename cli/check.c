#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "verify/check.h"

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
                                     struct tri_check_way *way, int *ranks)
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
        return read_number(argument, value, 1, 64, ranks);
    if (strcmp(name, "zero") == 0 || strcmp(name, "zero_stage") == 0)
        return read_number(argument, value, 0, 3, &way->zero_stage);
    const struct tri_option *option = tri_option_find(&tri_pass_option_table, name);
    if (option == NULL)
        return tri_fail(TRI_INVALID, "unknown option --%s; `trireme help check` lists them", name);
    enum tri_status st = tri_option_set(option, &value, 1, pass);
    if (st != TRI_OK)
        tri_error_prefix("--%s", name);
    return st;
}

/* The folders and how to compute them. */
struct request {
    int argc;
    char **argv;
    struct tri_check_way way;
    int over; /* folders with a number over its bound; of the first rank */
};

static bool is_option(const char *argument)
{
    return strncmp(argument, "--", 2) == 0;
}

/* Check each folder on one rank. */
static enum tri_status check_all(struct tri_comm *world, void *ctx)
{
    struct request *request = ctx;
    bool first = world == NULL || world->rank == 0;
    int over = 0;
    for (int i = 1; i < request->argc; i++) {
        struct tri_check_result result;
        if (is_option(request->argv[i])) {
            i++; /* its value */
            continue;
        }
        TRI_TRY(tri_check(request->argv[i], &request->way, world, first ? stdout : NULL, &result));
        if (first)
            printf("  %d of %d within bounds\n", result.rows - result.failed, result.rows);
        over += result.failed > 0;
    }
    if (first)
        request->over = over;
    return TRI_OK;
}

static enum tri_status check(struct request *request, struct tri_pass_options *pass)
{
    struct tri_cli_start how = {.ranks = 1, .timeout = 600};
    int folders = 0;
    int ranks = 1;
    for (int i = 1; i < request->argc; i++)
        if (is_option(request->argv[i]))
            TRI_TRY(read_argument(request->argc, request->argv, &i, pass, &request->way, &ranks));
        else
            folders++;
    if (folders == 0)
        return tri_fail(TRI_INVALID, "a golden folder is missing: trireme check DIR... "
                                     "(tools/golden.py makes one from any model)");
    how.backend = pass->backend;
    how.ranks = ranks;
    return tri_cli_start_ranks(request->argc, request->argv, &how, check_all, request);
}

int tri_cli_check(int argc, char **argv)
{
    struct tri_pass_options pass = {0};
    struct request request = {.argc = argc, .argv = argv, .way = {.pass = &pass}};
    enum tri_status st = tri_option_defaults(&tri_pass_option_table, &pass);
    if (st == TRI_OK)
        st = check(&request, &pass);
    tri_option_clear(&tri_pass_option_table, &pass);
    return st != TRI_OK ? tri_cli_end(st) : request.over > 0;
}
