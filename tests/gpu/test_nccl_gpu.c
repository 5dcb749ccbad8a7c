/* The NCCL communicator on all cards of this machine: the program starts itself once a card. One
 * run in which everything works, and one for each way in which a rank can be lost. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/cuda/context.h"
#include "base/clock.h"
#include "comm/nccl/nccl.h"
#include "comm/processes.h"
#include "comm/rendezvous/bootstrap.h"
#include "gpu/nccl_cases.h"
#include "unit/comm/collectives.h"

enum { SKIPPED = 77, COUNT = 1 << 24 };

/* ---- one rank ----------------------------------------------------------------------------------
 */

static enum tri_status all_is_well(struct tri_comm *comm, struct tri_stream *s)
{
    static const struct {
        const char *name;
        enum tri_status (*run)(struct tri_comm *, struct tri_stream *);
    } cases[] = {
        {"all-to-all", nccl_case_all_to_all},
        {"all-to-all in rounds", nccl_case_rounds},
        {"all-reduce", nccl_case_reductions},
        {"gather, scatter, broadcast", nccl_case_gather},
        {"the own queue", nccl_case_queue},
        {"host values", nccl_case_host},
        {"all-to-all of host memory", nccl_case_host_blocks},
        {"split groups", nccl_case_split},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double start = tri_clock();
        TRI_TRY(cases[i].run(comm, s));
        if (comm->rank == 0)
            printf("  %-28s ok  %6.2f s\n", cases[i].name, tri_clock() - start);
        fflush(stdout);
    }
    return TRI_OK;
}

/* One collective, and what is left of the job after it. */
static enum tri_status sum_and_wait(struct tri_comm *comm, struct tri_stream *s, float *data)
{
    TRI_TRY(comm->ops->all_reduce(comm, s, data, COUNT, TRI_F32, TRI_SUM));
    TRI_TRY(tri_cuda_check(cudaStreamSynchronize(s->stream), "wait for a stream"));
    return tri_comm_agree(comm, "nothing", 0);
}

/* Rank 1 is lost between two sums, in the way of `mode`; the others wait on their cards. */
static enum tri_status one_is_lost(struct tri_comm *comm, struct tri_stream *s, const char *mode)
{
    float *data = NULL;
    struct timespec pause = {.tv_sec = 1, .tv_nsec = 0};
    TRI_TRY(tri_cuda_check(cudaMalloc((void **)&data, COUNT * sizeof *data), "allocate"));
    TRI_TRY(tri_cuda_check(cudaMemset(data, 0, COUNT * sizeof *data), "clear"));
    TRI_TRY(sum_and_wait(comm, s, data));
    if (comm->rank == 1) {
        nanosleep(&pause, NULL); /* the others are on their cards by now */
        if (strcmp(mode, "killed") == 0)
            raise(SIGKILL);
        if (strcmp(mode, "failed") == 0)
            return tri_fail(TRI_NONFINITE, "the loss is NaN");
        pause.tv_sec = 8; /* late */
        nanosleep(&pause, NULL);
    }
    return sum_and_wait(comm, s, data);
}

/* Rank 1 is lost while the others wait for it on their cards in two communicators at once: none can
 * be ended for good before both are told. */
static enum tri_status lost_in_two(struct tri_comm *comm, struct tri_stream *s)
{
    float *data = NULL;
    struct tri_comm *group = NULL;
    struct tri_stream *side;
    struct timespec pause = {.tv_sec = 1, .tv_nsec = 0};
    TRI_TRY(tri_cuda_check(cudaMalloc((void **)&data, 2 * COUNT * sizeof *data), "allocate"));
    TRI_TRY(tri_cuda_check(cudaMemset(data, 0, 2 * COUNT * sizeof *data), "clear"));
    TRI_TRY(sum_and_wait(comm, s, data));
    TRI_TRY(comm->ops->split(comm, 0, comm->rank, &group));
    enum tri_status st = sum_and_wait(group, s, data);
    if (st == TRI_OK && comm->rank == 1) {
        nanosleep(&pause, NULL);
        raise(SIGKILL);
    }
    if (st == TRI_OK)
        st = tri_comm_fork(comm, s, &side);
    if (st == TRI_OK)
        st = comm->ops->all_reduce(comm, side, data + COUNT, COUNT, TRI_F32, TRI_SUM);
    if (st == TRI_OK)
        st = sum_and_wait(group, s, data);
    char text[1024];
    snprintf(text, sizeof text, "%s", tri_error_text());
    tri_comm_close(group);
    return st == TRI_OK ? TRI_OK : tri_fail(st, "%s", text);
}

/* Ranks in different calls, with TRIREME_COMM_CHECK=1. */
static enum tri_status apart(struct tri_comm *comm, struct tri_stream *s)
{
    float *data = NULL;
    TRI_TRY(tri_cuda_check(cudaMalloc((void **)&data, 4096), "allocate"));
    return comm->rank == 1 ? comm->ops->all_reduce(comm, s, data, 10, TRI_F32, TRI_SUM)
                           : comm->ops->broadcast(comm, s, data, 10, 0);
}

/* What each rank must say in each mode; NULL: nothing is asked of it. */
static const char *expected(const char *mode, int rank)
{
    if (strncmp(mode, "killed", 6) == 0)
        return rank == 1 ? NULL : "rank 1 failed: its process ended without a word";
    if (strcmp(mode, "failed") == 0)
        return rank == 1 ? "the loss is NaN" : "rank 1 failed: the loss is NaN";
    if (strcmp(mode, "late") == 0)
        return rank == 1 ? "failed: rank " : "waited 2 s in all-reduce";
    if (strcmp(mode, "apart") == 0)
        return "ranks went apart";
    if (strcmp(mode, "one card") == 0)
        return "ranks 0 and 1 both use card 0";
    return NULL;
}

static enum tri_status run_mode(const char *mode, struct tri_comm *world, struct tri_stream *s)
{
    if (strcmp(mode, "well") == 0)
        return all_is_well(world, s);
    if (strcmp(mode, "apart") == 0)
        return apart(world, s);
    if (strcmp(mode, "killed in 2") == 0)
        return lost_in_two(world, s);
    return one_is_lost(world, s, mode);
}

/* Returns the exit code. `report` gets a byte when the rank ended as it must. */
static int run_rank(const char *mode, int report)
{
    struct tri_rendezvous *rv = NULL;
    struct tri_backend *backend = NULL;
    struct tri_comm *world = NULL;
    int rank = (int)strtol(getenv("RANK"), NULL, 10);
    bool one_card = strcmp(mode, "one card") == 0;
    double timeout = strcmp(mode, "late") == 0 ? 2 : 60;
    enum tri_status st = tri_cuda_choose_card(one_card ? 0 : rank);
    struct tri_launch_info launch;
    if (st == TRI_OK)
        st = tri_launch_detect(&launch);
    if (st == TRI_OK)
        st = tri_rendezvous_join(&launch, NULL, 60, &rv);
    if (st == TRI_OK)
        st = tri_cuda_open(NULL, &backend);
    if (st == TRI_OK)
        st = tri_comm_nccl_open(rv, tri_cuda_card(), 60, &world);
    if (st == TRI_OK) {
        world->timeout = timeout;
        st = run_mode(mode, world, backend->stream);
    }
    char text[1024];
    snprintf(text, sizeof text, "%s", st == TRI_OK ? "" : tri_error_text());
    if (st != TRI_OK && rv != NULL)
        tri_rendezvous_fail(rv, st, text);
    const char *want = expected(mode, rank);
    bool good = want == NULL ? st == TRI_OK : st != TRI_OK && strstr(text, want) != NULL;
    if (!good)
        printf("  %s: rank %d: %s: '%s'\n", mode, rank, tri_status_text(st), text);
    if (good && write(report, "+", 1) != 1)
        good = false;
    fflush(stdout);
    tri_comm_close(world);
    tri_cuda_close(backend);
    tri_rendezvous_close(rv);
    return good ? 0 : 1;
}

/* ---- all ranks ---------------------------------------------------------------------------------
 */

/* Run a mode on `ranks` cards; true when every rank ended as it must, within `seconds`. */
static bool run_all(char *self, const char *mode, int ranks, double seconds)
{
    int report[2];
    char number[16], name[16], reports[1024];
    if (pipe(report) != 0)
        return false;
    snprintf(number, sizeof number, "%d", report[1]);
    snprintf(name, sizeof name, "%s", mode);
    char *argv[] = {self, name, number, NULL};
    double start = tri_clock();
    enum tri_status st = tri_processes_run("/proc/self/exe", argv, ranks, 20);
    double took = tri_clock() - start;
    close(report[1]);
    ssize_t good = read(report[0], reports, sizeof reports);
    close(report[0]);
    bool killed = strncmp(mode, "killed", 6) == 0;
    bool said = !killed || (st == TRI_PEER && strstr(tri_error_text(), "rank 1 of ") != NULL &&
                            strstr(tri_error_text(), "killed by signal 9") != NULL);
    bool ok = said && good == ranks - killed && took < seconds;
    printf("%-12s %d ranks: %zd of %d ended as they must, %.1f s (at most %.0f): %s\n", mode, ranks,
           good, ranks - killed, took, seconds, ok ? "ok" : "FAILED");
    fflush(stdout);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return run_rank(argv[1], (int)strtol(argv[2], NULL, 10));
    char what[700];
    int cards = tri_cuda_num_cards();
    tri_comm_nccl_describe(what, sizeof what);
    printf("%d cards, NCCL %s\n", cards, what);
    if (cards < 2 || strstr(what, " from ") == NULL) {
        printf("skipped: two cards and NCCL are needed\n");
        return SKIPPED;
    }
    if (argc == 2) /* one mode, by hand */
        return run_all(argv[0], argv[1], cards, 300) ? 0 : 1;
    bool ok = run_all(argv[0], "well", cards, 300);
    if (cards > 2)
        ok = run_all(argv[0], "well", cards - 1, 300) && ok;
    ok = run_all(argv[0], "failed", cards, 40) && ok;
    ok = run_all(argv[0], "killed", cards, 40) && ok;
    for (int again = 0; again < 3; again++)
        ok = run_all(argv[0], "killed in 2", cards, 15) && ok;
    ok = run_all(argv[0], "late", cards, 40) && ok;
    ok = run_all(argv[0], "one card", cards, 40) && ok;
    setenv("TRIREME_COMM_CHECK", "1", 1);
    ok = run_all(argv[0], "apart", cards, 40) && ok;
    ok = run_all(argv[0], "well", 2, 300) && ok;
    printf("%s\n", ok ? "all ranks ended as they must" : "FAILED");
    return ok ? 0 : 1;
}
