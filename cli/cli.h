/* The command line: one file a verb, one row a verb in verbs.c. */
#ifndef TRI_CLI_CLI_H
#define TRI_CLI_CLI_H

#include <stddef.h>

#include "comm/launch.h"
#include "comm/thread/thread.h"
#include "recipe/recipe.h"

struct tri_cli_verb {
    const char *name;
    const char *usage;   /* what stands behind the name */
    const char *summary; /* one line for the list of verbs */
    const char *help;    /* the rest of its page */
    /* argv[0] is the verb. Returns the exit code: 0 or 1. */
    int (*run)(int argc, char **argv);
};
extern const struct tri_cli_verb tri_cli_verbs[];
extern const size_t tri_cli_num_verbs;

int tri_cli_train(int argc, char **argv);
int tri_cli_eval(int argc, char **argv);
int tri_cli_data(int argc, char **argv);
int tri_cli_verify(int argc, char **argv);
int tri_cli_check(int argc, char **argv);
int tri_cli_rehearse(int argc, char **argv);
int tri_cli_info(int argc, char **argv);
int tri_cli_help(int argc, char **argv);
int tri_cli_version(int argc, char **argv);

/* The verb of this name, or NULL. */
const struct tri_cli_verb *tri_cli_find(const char *name);

/* The verb that `name` was probably meant to be, or NULL. */
const struct tri_cli_verb *tri_cli_nearest(const char *name);

/* Fail with "unknown verb 'x'; did you mean 'y'?". */
enum tri_status tri_cli_unknown(const char *name);

/* Open the recipe argv[1] with the overrides behind it: "RECIPE [--key value]...". The log level
 * of the recipe is in force from here on. */
enum tri_status tri_cli_recipe(int argc, char **argv, struct tri_recipe **out);

/* The same, and then run `work` on every rank that the recipe asks for (`ranks`): each with its own
 * copy of the recipe, all but the first silent. `world` is NULL when there is one rank. */
typedef enum tri_status tri_cli_work(struct tri_recipe *recipe, struct tri_comm *world);
enum tri_status tri_cli_ranks(int argc, char **argv, tri_cli_work *work);

/* Who started this process. Alone where the environment contradicts itself, which whoever starts
 * ranks refuses. */
struct tri_launch_info tri_cli_launch(void);

/* Of the processes of a launcher the first describes; for the others there is nothing to do. */
bool tri_cli_is_first(void);

/* `ranks` in the recipe and a launcher's processes are two numbers for one thing. */
enum tri_status tri_cli_check_ranks(const struct tri_launch_info *launch, int64_t ranks);

/* Let the recipe have the ranks of the launcher, if there is one, for the numbers that depend on
 * them. */
enum tri_status tri_cli_take_ranks(struct tri_recipe *recipe);

/* What decides how ranks are started. */
struct tri_cli_start {
    const char *backend; /* of pass/options.h; NULL: auto */
    int64_t ranks;       /* 0: all cards, or one on the CPU */
    double timeout;      /* comm.timeout */
};

/* Run `function` on every rank: as threads, as processes that are this program with the same
 * arguments again (`argv`, the verb first), or as one of a launcher's. `world` is NULL for a rank
 * that is alone. */
enum tri_status tri_cli_start_ranks(int argc, char **argv, const struct tri_cli_start *how,
                                    tri_rank_function *function, void *ctx);

/* The part of `data inspect` behind its arguments: what the data of an opened run is made of. Shows
 * the first `samples` sequences, `tokens` of each. */
struct tri_run;
enum tri_status tri_cli_inspect(struct tri_run *run, int64_t samples, int64_t tokens);

/* Before an error of this status is told (launch.c). */
void tri_cli_let_others_speak(enum tri_status status);

/* The end of a verb: print the error, if there is one, and give the exit code. Of a launcher's
 * processes the first speaks at once and the others a little later: what all of them found is then
 * told once, since the launcher ends them. */
int tri_cli_end(enum tri_status status);

#endif
