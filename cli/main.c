/* trireme VERB ...: find the verb, run it. */
#include <stdio.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "backend/cpu/cpu.h"
#include "base/log.h"
#include "cli.h"

/* The runtime of OpenMP ends the process where a system does not give it its threads, without a
 * word that helps. */
static enum tri_status check_threads(void)
{
#ifdef _OPENMP
    if (omp_get_max_threads() > TRI_CPU_MOST_THREADS)
        return tri_fail(TRI_INVALID,
                        "OMP_NUM_THREADS asks for %d threads and %d are allowed: set it to the "
                        "number of cores, or unset it",
                        omp_get_max_threads(), TRI_CPU_MOST_THREADS);
#endif
    return TRI_OK;
}

static int dispatch(int argc, char **argv)
{
    char *help[] = {"help", NULL};
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return tri_cli_help(1, help);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return tri_cli_version(1, help);
    const struct tri_cli_verb *verb = tri_cli_find(argv[1]);
    if (verb == NULL)
        return tri_cli_end(tri_cli_unknown(argv[1]));
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            char *page[] = {"help", argv[1], NULL};
            return tri_cli_help(2, page);
        }
    enum tri_status st = check_threads();
    return st != TRI_OK ? tri_cli_end(st) : verb->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    if (!tri_cli_is_first())
        tri_log_set_level(TRI_LOG_ERROR);
    int code = dispatch(argc, argv);
    /* A full disk behind standard output shows only here. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0)
        code = tri_cli_end(tri_fail(TRI_IO, "cannot write to standard output"));
    return code;
}
