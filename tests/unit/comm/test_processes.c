/* Starting a process a rank: this program starts itself, and each rank does what its mode says. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/processes.h"
#include "comm/rendezvous/bootstrap.h"

/* ---- one rank ----------------------------------------------------------------------------------
 */

static volatile sig_atomic_t asked;

static void ask(int number)
{
    asked = number;
}

static void wait_seconds(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

/* Meet the others, then do what the mode says. */
static enum tri_status work(const char *mode, struct tri_rendezvous *rv)
{
    struct tri_rendezvous_group all = tri_rendezvous_all(rv);
    int rank = tri_rendezvous_rank(rv), size = tri_rendezvous_size(rv), got[8];
    TRI_TRY(tri_rendezvous_gather(rv, &all, "ranks", got, &rank, sizeof rank, 20));
    for (int r = 0; r < size; r++)
        if (got[r] != r)
            return tri_fail(TRI_INTERNAL, "rank %d is %d", r, got[r]);
    if (strcmp(mode, "fails") == 0 && rank == 1)
        return tri_fail(TRI_IO, "the disk is full");
    if (strcmp(mode, "is killed") == 0 && rank == 1)
        raise(SIGKILL);
    if (strcmp(mode, "hangs") == 0 && rank == 1)
        exit(1);
    if (strcmp(mode, "hangs") == 0 && rank == 2) {
        signal(SIGTERM, SIG_IGN);
        for (;;)
            wait_seconds(60);
    }
    if (strcmp(mode, "stops") == 0) {
        signal(SIGTERM, ask);
        TRI_TRY(tri_rendezvous_gather(rv, &all, "handlers", NULL, NULL, 0, 20));
        if (rank == 0)
            kill(getppid(), SIGTERM);
        for (int i = 0; i < 200 && !asked; i++)
            wait_seconds(0.05);
        if (!asked)
            return tri_fail(TRI_INTERNAL, "no signal came");
    }
    return tri_rendezvous_gather(rv, &all, "the end", NULL, NULL, 0, 20);
}

static int run_rank(const char *mode)
{
    struct tri_launch_info launch;
    struct tri_rendezvous *rv = NULL;
    if (tri_launch_detect(&launch) != TRI_OK || launch.by != TRI_LAUNCH_SELF ||
        launch.local_rank != launch.rank || getenv("OMP_NUM_THREADS") == NULL)
        return 90;
    enum tri_status st = tri_rendezvous_join(&launch, NULL, 20, &rv);
    if (st == TRI_OK)
        st = work(mode, rv);
    if (st != TRI_OK && rv != NULL)
        tri_rendezvous_fail(rv, st, tri_error_text());
    tri_rendezvous_close(rv);
    return st == TRI_OK ? 0 : st == TRI_PEER ? TRI_PROCESS_HEARD : 1;
}

/* ---- the tests ---------------------------------------------------------------------------------
 */

static enum tri_status start(const char *mode, int ranks, double grace)
{
    char program[] = "test_processes", name[32];
    snprintf(name, sizeof name, "%s", mode);
    char *argv[] = {program, name, NULL};
    return tri_processes_run("/proc/self/exe", argv, ranks, grace);
}

static void ranks_meet_and_end(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        if (start("work", ranks, 20) != TRI_OK)
            fail_msg("%d ranks: %s", ranks, tri_error_text());
}

static void the_first_that_fails_is_named(void **state)
{
    (void)state;
    assert_int_equal(start("fails", 3, 20), TRI_PEER);
    assert_string_equal(tri_error_text(), "rank 1 of 3 failed; its own message is above");
}

static void a_killed_one_is_named(void **state)
{
    (void)state;
    double before = tri_clock();
    assert_int_equal(start("is killed", 3, 20), TRI_PEER);
    assert_non_null(strstr(tri_error_text(), "rank 1 of 3 was killed by signal 9"));
    assert_true(tri_clock() - before < 10);
}

static void one_that_hangs_is_killed_after_the_grace(void **state)
{
    (void)state;
    double before = tri_clock();
    tri_log_set_level(TRI_LOG_ERROR);
    assert_int_equal(start("hangs", 3, 1), TRI_PEER);
    tri_log_set_level(TRI_LOG_INFO);
    assert_string_equal(tri_error_text(), "rank 1 of 3 failed; its own message is above");
    double took = tri_clock() - before;
    assert_true(took >= 1 && took < 10);
}

static void stop_signals_reach_all(void **state)
{
    (void)state;
    if (start("stops", 3, 20) != TRI_OK)
        fail_msg("%s", tri_error_text());
}

static void what_cannot_be_started_is_an_error(void **state)
{
    (void)state;
    char program[] = "nothing";
    char *argv[] = {program, NULL};
    assert_int_equal(tri_processes_run("/nowhere/nothing", argv, 2, 1), TRI_PEER);
    assert_int_equal(tri_processes_run("/nowhere/nothing", argv, 0, 1), TRI_INVALID);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return run_rank(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_meet_and_end),
        cmocka_unit_test(the_first_that_fails_is_named),
        cmocka_unit_test(a_killed_one_is_named),
        cmocka_unit_test(one_that_hangs_is_killed_after_the_grace),
        cmocka_unit_test(stop_signals_reach_all),
        cmocka_unit_test(what_cannot_be_started_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
