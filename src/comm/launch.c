#include "comm/launch.h"

#include <errno.h>
#include <stdlib.h>

/* The variables of each launcher, in the order in which they are asked. */
static const struct {
    enum tri_launcher by;
    const char *rank, *size;
} launchers[] = {
    {TRI_LAUNCH_TORCHRUN, "RANK", "WORLD_SIZE"},
    {TRI_LAUNCH_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {TRI_LAUNCH_MPI, "PMI_RANK", "PMI_SIZE"},
    {TRI_LAUNCH_MPI, "SLURM_PROCID", "SLURM_NTASKS"},
};

static enum tri_status read_number(const char *name, int *out)
{
    const char *text = getenv(name);
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < 0 || value > 1000000)
        return tri_fail(TRI_INVALID, "the launcher set %s=%.40s, which is no number of ranks", name,
                        text);
    *out = (int)value;
    return TRI_OK;
}

enum tri_status tri_launch_detect(struct tri_launch *out)
{
    struct tri_launch launch = {.by = TRI_LAUNCH_NONE, .ranks = 1};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (getenv(launchers[i].rank) == NULL || getenv(launchers[i].size) == NULL)
            continue;
        TRI_TRY(read_number(launchers[i].rank, &launch.rank));
        TRI_TRY(read_number(launchers[i].size, &launch.ranks));
        launch.by = launchers[i].by;
        break;
    }
    *out = launch;
    return TRI_OK;
}
