/* Who started this process: the variables of each launcher, and the order in which they count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm/rendezvous/bootstrap.h"

static const char *const variables[] = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "TRIREME_JOB",
                                        "TORCHELASTIC_RUN_ID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MV2_COMM_WORLD_RANK",
                                        "MV2_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_STEP_NUM_TASKS",
                                        "PMIX_NAMESPACE",
                                        "OMPI_MCA_pmix",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_JOB_NODELIST",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        NULL};

/* Nothing but "NAME=value NAME=value". */
static void set(const char *settings)
{
    char copy[512], *rest = NULL;
    for (int i = 0; variables[i] != NULL; i++)
        unsetenv(variables[i]);
    strcpy(copy, settings);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value = '\0';
        assert_int_equal(setenv(word, value + 1, 1), 0);
    }
}

static void assert_launch(const char *settings, enum tri_launcher by, int rank, int ranks,
                          int local_rank)
{
    struct tri_launch_info launch;
    set(settings);
    if (tri_launch_detect(&launch) != TRI_OK)
        fail_msg("%s: %s", settings, tri_error_text());
    if (launch.by != by || launch.rank != rank || launch.ranks != ranks ||
        launch.local_rank != local_rank)
        fail_msg("%s: launcher %d, rank %d of %d, local %d", settings, launch.by, launch.rank,
                 launch.ranks, launch.local_rank);
}

static void each_launcher_is_known(void **state)
{
    (void)state;
    assert_launch("", TRI_LAUNCH_NONE, 0, 1, -1);
    assert_launch("RANK=3 WORLD_SIZE=8 LOCAL_RANK=1", TRI_LAUNCH_TORCHRUN, 3, 8, 1);
    assert_launch("RANK=3 WORLD_SIZE=8", TRI_LAUNCH_TORCHRUN, 3, 8, -1);
    assert_launch("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 TRIREME_JOB=x", TRI_LAUNCH_SELF, 1, 2, 1);
    assert_launch("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0",
                  TRI_LAUNCH_MPI, 2, 4, 0);
    assert_launch("PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=1", TRI_LAUNCH_MPI, 2, 4, 1);
    assert_launch("MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2", TRI_LAUNCH_MPI, 0, 2, -1);
    assert_launch("SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=6 SLURM_LOCALID=2 SLURM_STEP_ID=0",
                  TRI_LAUNCH_SLURM, 5, 6, 2);
    /* srun -n 2 in a job of four tasks */
    assert_launch("SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=1",
                  TRI_LAUNCH_SLURM, 1, 2, -1);
}

static void what_is_no_launcher_is_none(void **state)
{
    (void)state;
    /* A batch script that Slurm runs, before any srun. */
    assert_launch("SLURM_PROCID=0 SLURM_NTASKS=6 SLURM_LOCALID=0", TRI_LAUNCH_NONE, 0, 1, -1);
    /* The shell that salloc opens on the first node, as a step of its own. */
    assert_launch("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=4294967290",
                  TRI_LAUNCH_NONE, 0, 1, -1);
}

/* Variables of somebody else must not make every process of a job take itself for all of it. */
static void what_is_left_over_hides_no_launcher(void **state)
{
    (void)state;
    const char *mpi = "RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4";
    char torchrun[200] = "TORCHELASTIC_RUN_ID=x ";
    assert_launch("RANK=0 WORLD_SIZE=1", TRI_LAUNCH_TORCHRUN, 0, 1, -1);
    assert_launch(mpi, TRI_LAUNCH_MPI, 2, 4, -1);
    assert_launch("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 PMI_RANK=0 PMI_SIZE=1", TRI_LAUNCH_TORCHRUN, 0,
                  1, 0);
    assert_launch(
        "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=6 SLURM_STEP_ID=0",
        TRI_LAUNCH_SLURM, 5, 6, -1);
    assert_launch(strcat(torchrun, mpi), TRI_LAUNCH_TORCHRUN, 0, 1, -1);
    assert_launch("RANK=7 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4", TRI_LAUNCH_MPI, 2, 4, -1);

    struct tri_launch_info launch;
    set("RANK=3");
    assert_int_equal(tri_launch_detect(&launch), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "RANK=3 but no WORLD_SIZE"));
    set("WORLD_SIZE=3");
    assert_int_equal(tri_launch_detect(&launch), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "WORLD_SIZE=3 but no RANK"));
}

/* torchrun inside mpirun inside srun: the innermost one started this process. */
static void the_order_is_that_of_nesting(void **state)
{
    (void)state;
    const char *slurm = "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0";
    char all[400];
    strcpy(all, slurm);
    assert_launch(all, TRI_LAUNCH_SLURM, 1, 2, -1);
    strcat(all, " PMI_RANK=2 PMI_SIZE=4");
    assert_launch(all, TRI_LAUNCH_MPI, 2, 4, -1);
    strcat(all, " OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8");
    assert_launch(all, TRI_LAUNCH_MPI, 3, 8, -1);
    strcat(all, " RANK=4 WORLD_SIZE=16");
    assert_launch(all, TRI_LAUNCH_TORCHRUN, 4, 16, -1);
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"RANK=x WORLD_SIZE=2",  "RANK=0 WORLD_SIZE=2x",
                                      "RANK=-1 WORLD_SIZE=2", "RANK=2 WORLD_SIZE=2",
                                      "RANK=0 WORLD_SIZE=0",  "RANK=0 WORLD_SIZE=99999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tri_launch_info launch;
        set(bad[i]);
        if (tri_launch_detect(&launch) != TRI_INVALID)
            fail_msg("%s is accepted", bad[i]);
        assert_non_null(strstr(tri_error_text(), "the launcher set "));
    }
}

/* What is said where this MPI cannot reach the launcher; NULL: it can. */
static void assert_world(const char *settings, enum tri_mpi_library library, int world,
                         const char *refusal)
{
    struct tri_launch_info launch;
    set(settings);
    assert_int_equal(tri_launch_detect(&launch), TRI_OK);
    enum tri_status st = tri_launch_check_mpi(&launch, library, world);
    assert_int_equal(st, refusal == NULL ? TRI_OK : TRI_UNSUPPORTED);
    if (refusal != NULL && strstr(tri_error_text(), refusal) == NULL)
        fail_msg("%s: %s", settings, tri_error_text());
}

static void assert_mpi(const char *settings, enum tri_mpi_library library, const char *refusal)
{
    assert_world(settings, library, 0, refusal);
}

static void an_mpi_that_cannot_reach_its_launcher_is_refused(void **state)
{
    (void)state;
#define STEP "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0"
    static const char pmix[] = STEP " PMIX_NAMESPACE=slurm.pmix.6.0";
    static const char pmi2[] = STEP " PMI_RANK=1 PMI_SIZE=2";
    static const char mpirun[] = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=1";
    static const char hydra[] = "PMI_RANK=1 PMI_SIZE=2";
    char chosen[200];
    assert_mpi(STEP, TRI_OPEN_MPI,
               "srun started 2 tasks that Open MPI cannot connect: use `srun "
               "--mpi=pmix ...`");
    assert_mpi(STEP, TRI_MPICH,
               "srun started 2 tasks that MPICH cannot connect: use `srun "
               "--mpi=pmi2 ...`");
    assert_mpi(pmi2, TRI_OPEN_MPI, "use `srun --mpi=pmix ...`");
    assert_mpi(pmi2, TRI_MPICH, NULL);
    assert_mpi(strcat(strcpy(chosen, pmi2), " OMPI_MCA_pmix=s2"), TRI_OPEN_MPI, NULL);
    assert_mpi(pmix, TRI_OPEN_MPI, NULL);
    assert_mpi(mpirun, TRI_OPEN_MPI, NULL);
    assert_mpi("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", TRI_MPICH,
               "the mpirun of Open MPI started 2 ranks of a program that is built with MPICH");
    assert_mpi(hydra, TRI_MPICH, NULL);
    assert_mpi(hydra, TRI_OPEN_MPI, "use mpirun.openmpi");
    assert_mpi("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=0", TRI_OPEN_MPI, NULL);
    assert_mpi("", TRI_OPEN_MPI, NULL);
    /* What only MPI_Init tells: MPICH may have been built for PMIx, and was not. */
    assert_mpi(pmix, TRI_MPICH, NULL);
    assert_world(pmix, TRI_MPICH, 1, "use `srun --mpi=pmi2 ...`");
    assert_world(pmix, TRI_MPICH, 2, NULL);
    assert_mpi("RANK=1 WORLD_SIZE=2", TRI_OPEN_MPI, "Open MPI sees each of them alone");
    assert_world(hydra, TRI_MPICH, 1, "MPICH sees each of them alone");
#undef STEP
}

static void assert_first_node(const char *list, const char *want)
{
    char name[64];
    if (tri_slurm_first_node(list, name, sizeof name) != TRI_OK)
        fail_msg("%s: %s", list, tri_error_text());
    assert_string_equal(name, want);
}

static void the_first_node_of_a_list(void **state)
{
    (void)state;
    assert_first_node("gpu7", "gpu7");
    assert_first_node("gpu7,gpu9", "gpu7");
    assert_first_node("node[007-010,12],gpu1", "node007");
    assert_first_node("node[12,14]", "node12");
    assert_first_node("n[3-4]-ib.cluster,n9", "n3-ib.cluster");
    assert_first_node("rack[2-3]node[007-010],gpu1", "rack2node007");
    static const char *const bad[] = {
        "",
        ",a",
        "node[",
        "node[]",
        "node[1-3",
        "n[1-2]m[",
        "a-name-that-is-far-too-long-for-any-machine-in-this-world-and-the-next"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char name[64];
        if (tri_slurm_first_node(bad[i], name, sizeof name) != TRI_INVALID)
            fail_msg("'%s' is accepted", bad[i]);
    }
}

static void a_place_to_meet_is_needed(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "MASTER_ADDR=localhost",
                                      "MASTER_ADDR=localhost MASTER_PORT=x",
                                      "MASTER_ADDR=localhost MASTER_PORT=99999"};
    struct tri_launch_info launch = {.by = TRI_LAUNCH_TORCHRUN, .ranks = 2, .rank = 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tri_rendezvous *rv = NULL;
        set(bad[i]);
        assert_int_equal(tri_rendezvous_join(&launch, NULL, 0.1, &rv), TRI_INVALID);
        assert_non_null(strstr(tri_error_text(), "MASTER_PORT"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_launcher_is_known),
        cmocka_unit_test(what_is_no_launcher_is_none),
        cmocka_unit_test(what_is_left_over_hides_no_launcher),
        cmocka_unit_test(the_order_is_that_of_nesting),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(an_mpi_that_cannot_reach_its_launcher_is_refused),
        cmocka_unit_test(the_first_node_of_a_list),
        cmocka_unit_test(a_place_to_meet_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
