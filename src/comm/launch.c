#include "comm/launch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* The variables of each launcher, in the order in which they are asked. All that have a name must
 * be there, only `local_rank` need not. */
static const struct {
    enum tri_launcher by;
    const char *rank, *size, *local_rank, *also;
} launchers[] = {
    {TRI_LAUNCH_SELF, "RANK", "WORLD_SIZE", "LOCAL_RANK", "TRIREME_JOB"},
    {TRI_LAUNCH_TORCHRUN, "RANK", "WORLD_SIZE", "LOCAL_RANK", NULL},
    {TRI_LAUNCH_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     NULL},
    {TRI_LAUNCH_MPI, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     NULL},
    {TRI_LAUNCH_MPI, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL},
    /* A batch script has SLURM_PROCID=0 too, but only what srun starts belongs to a step. */
    {TRI_LAUNCH_SLURM, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
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

/* One of the two alone: a launcher that this is not, or half of what somebody meant to set. */
static enum tri_status refuse_half(const char *set, const char *missing)
{
    if (getenv(set) == NULL || getenv(missing) != NULL)
        return TRI_OK;
    return tri_fail(TRI_INVALID,
                    "the environment has %s=%.40s but no %s: set both as torchrun does, or unset "
                    "%s",
                    set, getenv(set), missing, set);
}

/* RANK=0 WORLD_SIZE=1 is often left over in a shell or an image, and then every process that mpirun
 * or srun starts there would take itself for the whole job. torchrun leaves its mark beside them.
 */
static bool may_be_left_over(const struct tri_launch_info *launch)
{
    return launch->by == TRI_LAUNCH_TORCHRUN && launch->ranks == 1 &&
           getenv("TORCHELASTIC_RUN_ID") == NULL;
}

enum tri_status tri_launch_detect(struct tri_launch_info *out)
{
    struct tri_launch_info found = {.by = TRI_LAUNCH_NONE, .ranks = 1, .local_rank = -1};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        struct tri_launch_info launch = {.by = launchers[i].by, .local_rank = -1};
        if (getenv(launchers[i].rank) == NULL || getenv(launchers[i].size) == NULL ||
            (launchers[i].also != NULL && getenv(launchers[i].also) == NULL))
            continue;
        TRI_TRY(read_number(launchers[i].rank, &launch.rank));
        TRI_TRY(read_number(launchers[i].size, &launch.ranks));
        if (launch.rank >= launch.ranks)
            return tri_fail(TRI_INVALID, "the launcher set %s=%d and %s=%d: ranks count from 0",
                            launchers[i].rank, launch.rank, launchers[i].size, launch.ranks);
        if (getenv(launchers[i].local_rank) != NULL)
            TRI_TRY(read_number(launchers[i].local_rank, &launch.local_rank));
        if (found.by == TRI_LAUNCH_NONE || launch.ranks > 1)
            found = launch;
        if (!may_be_left_over(&found))
            break;
    }
    if (found.by == TRI_LAUNCH_NONE) {
        TRI_TRY(refuse_half("RANK", "WORLD_SIZE"));
        TRI_TRY(refuse_half("WORLD_SIZE", "RANK"));
    }
    *out = found;
    return TRI_OK;
}
