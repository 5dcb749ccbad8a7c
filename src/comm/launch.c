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
    /* A batch script has SLURM_PROCID=0 and SLURM_NTASKS too, but only what srun starts belongs to
     * a step with tasks. */
    {TRI_LAUNCH_SLURM, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
};

/* The shell that salloc opens on a node is a step of its own, with one of Slurm's reserved numbers:
 * a person is there, not a job of one rank. */
static bool is_shell(const char *step)
{
    return strtoul(step, NULL, 10) >= 0xfffffff0u;
}

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
        if (launch.by == TRI_LAUNCH_SLURM && is_shell(getenv("SLURM_STEP_ID")))
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

static bool is_set(const char *name)
{
    return getenv(name) != NULL;
}

/* Do the variables show a way to the other ranks? */
static bool may_connect(enum tri_mpi_library library)
{
    bool pmix = is_set("PMIX_NAMESPACE");
    bool pmi = is_set("PMI_RANK");
    if (library == TRI_MPICH)
        return pmi || pmix;
    /* An Open MPI that was built for Slurm's PMI2 has to be told so: there is no other sign. */
    return is_set("OMPI_COMM_WORLD_SIZE") || pmix || (pmi && is_set("OMPI_MCA_pmix"));
}

enum tri_status tri_launch_check_mpi(const struct tri_launch_info *launch,
                                     enum tri_mpi_library library, int world)
{
    static const struct {
        const char *name, *other, *mpirun, *kind, *srun;
    } texts[] = {
        [TRI_OPEN_MPI] = {"Open MPI", "MPICH", "mpirun.openmpi", "mpich", "pmix"},
        [TRI_MPICH] = {"MPICH", "Open MPI", "mpirun.mpich", "openmpi", "pmi2"},
    };
    bool foreign = is_set(library == TRI_MPICH ? "OMPI_COMM_WORLD_SIZE" : "PMI_RANK");
    if (launch->ranks == 1 || world > 1 || (world == 0 && may_connect(library)))
        return TRI_OK;
    if (is_set("SLURM_STEP_ID") && !is_set("OMPI_COMM_WORLD_SIZE"))
        return tri_fail(
            TRI_UNSUPPORTED,
            "srun started %d tasks that %s cannot connect: use `srun --mpi=%s ...` (srun "
            "--mpi=list shows what this Slurm has) or, inside of salloc or sbatch, `mpirun ...`",
            launch->ranks, texts[library].name, texts[library].srun);
    if (foreign)
        return tri_fail(TRI_UNSUPPORTED,
                        "the mpirun of %s started %d ranks of a program that is built with %s: use "
                        "%s, or build with -DTRIREME_MPI_KIND=%s",
                        texts[library].other, launch->ranks, texts[library].name,
                        texts[library].mpirun, texts[library].kind);
    return tri_fail(TRI_UNSUPPORTED,
                    "a launcher started %d ranks, and %s sees each of them alone: start them with "
                    "%s",
                    launch->ranks, texts[library].name, texts[library].mpirun);
}
