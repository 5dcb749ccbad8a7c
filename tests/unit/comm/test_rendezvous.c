/* The rendezvous of processes: each case forks the ranks of a job, and looks at how each ended. */
#include "ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/rendezvous/frame.h"

enum { MAX = 8, TEXT = 600 };

/* A job: what its processes are given, and what became of them. */
struct job {
    struct tri_rendezvous_place place;
    int size, listen_fd;
    double timeout;
    enum tri_status (*work)(struct tri_rendezvous *rv, const struct job *job);
    int pipes[MAX][2]; /* a rank's error text comes through it */
    pid_t pids[MAX];
    enum tri_status status[MAX];
    int signals[MAX];
    char text[MAX][TEXT];
};

static void open_job(struct job *job, int size, double timeout,
                     enum tri_status (*work)(struct tri_rendezvous *, const struct job *))
{
    memset(job, 0, sizeof *job);
    job->size = size;
    job->timeout = timeout;
    job->work = work;
    strcpy(job->place.hosts, "127.0.0.1");
    strcpy(job->place.token, "test");
    job->place.num_ports = 1;
    assert_int_equal(tri_rendezvous_listen(&job->place, true, &job->listen_fd), TRI_OK);
}

/* Start one process that says it is `rank` of `size`. */
static void start(struct job *job, int process, int rank, int size)
{
    assert_int_equal(pipe(job->pipes[process]), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        job->pids[process] = pid;
        close(job->pipes[process][1]);
        return;
    }
    struct tri_rendezvous *rv = NULL;
    if (process > 0)
        close(job->listen_fd);
    enum tri_status st = tri_rendezvous_open(&job->place, rank, size, job->timeout,
                                             process == 0 ? job->listen_fd : -1, &rv);
    if (st == TRI_OK)
        st = job->work(rv, job);
    if (st != TRI_OK) {
        char text[TEXT];
        snprintf(text, sizeof text, "%.590s", tri_error_text());
        if (write(job->pipes[process][1], text, strlen(text)) < 0)
            _exit(100);
        if (rv != NULL)
            tri_rendezvous_fail(rv, st, text);
    }
    tri_rendezvous_close(rv);
    _exit((int)st);
}

static void finish(struct job *job, int processes)
{
    close(job->listen_fd);
    for (int i = 0; i < processes; i++) {
        int how;
        ssize_t n = read(job->pipes[i][0], job->text[i], TEXT - 1);
        job->text[i][n > 0 ? n : 0] = '\0';
        close(job->pipes[i][0]);
        assert_int_equal(waitpid(job->pids[i], &how, 0), job->pids[i]);
        job->status[i] = WIFEXITED(how) ? (enum tri_status)WEXITSTATUS(how) : TRI_OK;
        job->signals[i] = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    }
}

static void run(struct job *job)
{
    for (int r = 0; r < job->size; r++)
        start(job, r, r, job->size);
    finish(job, job->size);
}

#define SAYS(job, rank, words)                                                                     \
    do {                                                                                           \
        if (strstr((job)->text[rank], words) == NULL)                                              \
            fail_msg("rank %d does not say '%s' but '%s'", rank, words, (job)->text[rank]);        \
    } while (0)

/* ---- what works -------------------------------------------------------------------------------
 */

static enum tri_status exchange_values(struct tri_rendezvous *rv, const struct job *job)
{
    struct tri_rendezvous_group all = tri_rendezvous_all(rv);
    int rank = tri_rendezvous_rank(rv);
    static char large[TRI_RENDEZVOUS_MAX_BYTES], many[MAX * TRI_RENDEZVOUS_MAX_BYTES];
    for (int round = 0; round < 50; round++) {
        int mine = 100 * rank + round, got[MAX];
        TRI_TRY(tri_rendezvous_gather(rv, &all, "numbers", got, &mine, sizeof mine, 20));
        for (int r = 0; r < job->size; r++)
            CHECK(got[r] == 100 * r + round);
    }
    memset(large, 'a' + rank, sizeof large);
    TRI_TRY(tri_rendezvous_gather(rv, &all, "large", many, large, sizeof large, 20));
    for (int r = 0; r < job->size; r++)
        for (size_t i = 0; i < sizeof large; i += 1023)
            CHECK(many[(size_t)r * sizeof large + i] == 'a' + r);
    /* Even and odd ranks, in reversed order, at the same time as nothing at all. */
    struct tri_rendezvous_group half = {.id = 10 + (uint64_t)(rank % 2)};
    half.size = (job->size + 1 - rank % 2) / 2;
    half.place = half.size - 1 - rank / 2;
    int got[MAX];
    TRI_TRY(tri_rendezvous_gather(rv, &half, "halves", got, &rank, sizeof rank, 20));
    for (int i = 0; i < half.size; i++)
        CHECK(got[i] == rank % 2 + 2 * (half.size - 1 - i));
    return tri_rendezvous_gather(rv, &all, "nothing", NULL, NULL, 0, 20);
}

static void values_reach_all(void **state)
{
    (void)state;
    for (int size = 1; size <= MAX; size += size < 3 ? 1 : 5) {
        struct job job;
        open_job(&job, size, 20, exchange_values);
        run(&job);
        for (int r = 0; r < size; r++)
            if (job.status[r] != TRI_OK)
                fail_msg("rank %d of %d: %s", r, size, job.text[r]);
    }
}

/* ---- ranks that are lost ----------------------------------------------------------------------
 */

static enum tri_status fail_on_two(struct tri_rendezvous *rv, const struct job *job)
{
    (void)job;
    struct tri_rendezvous_group all = tri_rendezvous_all(rv);
    if (tri_rendezvous_rank(rv) == 2)
        return tri_fail(TRI_NONFINITE, "the loss is NaN");
    return tri_rendezvous_gather(rv, &all, "the gradient norm", NULL, NULL, 0, 20);
}

static void a_failing_rank_is_named(void **state)
{
    (void)state;
    struct job job;
    double before = tri_clock();
    open_job(&job, 4, 20, fail_on_two);
    run(&job);
    assert_int_equal(job.status[2], TRI_NONFINITE);
    for (int r = 0; r < 4; r++)
        if (r != 2) {
            assert_int_equal(job.status[r], TRI_PEER);
            SAYS(&job, r, "rank 2 failed: the loss is NaN (this rank was in the gradient norm)");
        }
    assert_true(tri_clock() - before < 4); /* news travels, nobody waits for a deadline */
}

static enum tri_status wait_long(struct tri_rendezvous *rv, const struct job *job)
{
    struct tri_rendezvous_group all = tri_rendezvous_all(rv);
    TRI_TRY(tri_rendezvous_gather(rv, &all, "first", NULL, NULL, 0, 20));
    if (tri_rendezvous_rank(rv) == (int)strtol(job->place.token, NULL, 10)) {
        raise(SIGKILL);
        return TRI_OK;
    }
    return tri_rendezvous_gather(rv, &all, "second", NULL, NULL, 0, 20);
}

/* The hub's own process, rank 0, is the special one. */
static void a_killed_rank_is_named(void **state)
{
    (void)state;
    for (int victim = 0; victim < 3; victim++) {
        struct job job;
        double before = tri_clock();
        char words[64];
        open_job(&job, 3, 20, wait_long);
        snprintf(job.place.token, sizeof job.place.token, "%d", victim);
        run(&job);
        snprintf(words, sizeof words, "rank %d failed: its process ended without a word", victim);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(job.signals[r], r == victim ? SIGKILL : 0);
            if (r != victim) {
                assert_int_equal(job.status[r], TRI_PEER);
                SAYS(&job, r, words);
            }
        }
        assert_true(tri_clock() - before < 4);
    }
}

static enum tri_status one_is_late(struct tri_rendezvous *rv, const struct job *job)
{
    (void)job;
    struct tri_rendezvous_group all = tri_rendezvous_all(rv);
    struct timespec pause = {.tv_sec = 1, .tv_nsec = 0};
    if (tri_rendezvous_rank(rv) == 1)
        nanosleep(&pause, NULL);
    return tri_rendezvous_gather(rv, &all, "a sum", NULL, NULL, 0, 0.3);
}

static void waiting_ends_at_the_deadline(void **state)
{
    (void)state;
    struct job job;
    open_job(&job, 2, 20, one_is_late);
    run(&job);
    assert_int_equal(job.status[0], TRI_COMM);
    SAYS(&job, 0, "rank 0 waited 0.3 s in a sum");
    SAYS(&job, 0, "not there: rank 1");
    assert_int_equal(job.status[1], TRI_PEER);
    SAYS(&job, 1, "rank 0 failed");
    SAYS(&job, 1, "not there: rank 1");
}

static enum tri_status go_apart(struct tri_rendezvous *rv, const struct job *job)
{
    (void)job;
    struct tri_rendezvous_group all = tri_rendezvous_all(rv);
    char some[16] = {0}, got[16 * MAX];
    bool odd = tri_rendezvous_rank(rv) == 1;
    return tri_rendezvous_gather(rv, &all, odd ? "the loss" : "the norm", got, some, odd ? 8 : 16,
                                 20);
}

static void ranks_that_go_apart_hear_it(void **state)
{
    (void)state;
    struct job job;
    open_job(&job, 3, 20, go_apart);
    run(&job);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(job.status[r], TRI_COMM);
        SAYS(&job, r, "ranks went apart: rank ");
        SAYS(&job, r, "rank 1 ");
        SAYS(&job, r, "the loss of 8 bytes");
        SAYS(&job, r, "the norm of 16 bytes");
    }
}

/* ---- jobs that do not come together -----------------------------------------------------------
 */

static enum tri_status nothing(struct tri_rendezvous *rv, const struct job *job)
{
    (void)rv;
    (void)job;
    return TRI_OK;
}

static void a_rank_that_never_comes_is_named(void **state)
{
    (void)state;
    struct job job;
    open_job(&job, 4, 0.5, nothing);
    start(&job, 0, 0, 4);
    start(&job, 1, 2, 4);
    finish(&job, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job.status[i], TRI_COMM);
        SAYS(&job, i, "2 of 4 ranks came in time; not there: 1 3");
    }
}

static void other_sizes_and_doubles_are_refused(void **state)
{
    (void)state;
    struct job job;
    open_job(&job, 2, 20, nothing);
    start(&job, 0, 0, 2);
    start(&job, 1, 1, 3);
    finish(&job, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job.status[i], TRI_COMM);
        SAYS(&job, i, "a process came as rank 1 of 3 ranks, but rank 0 waits for 2");
    }
    open_job(&job, 2, 20, nothing);
    start(&job, 0, 0, 2);
    start(&job, 1, 0, 2);
    finish(&job, 2);
    for (int i = 0; i < 2; i++)
        SAYS(&job, i, "two processes came as rank 0");
}

static void nobody_there_is_an_error(void **state)
{
    (void)state;
    struct tri_rendezvous_place place = {.hosts = "127.0.0.1", .num_ports = 1};
    struct tri_rendezvous *rv = NULL;
    int fd;
    assert_int_equal(tri_rendezvous_listen(&place, true, &fd), TRI_OK);
    close(fd); /* a port that is free, for sure enough */
    assert_int_equal(tri_rendezvous_open(&place, 1, 2, 0.2, -1, &rv), TRI_COMM);
    assert_non_null(strstr(tri_error_text(), "found no rank 0 of this job at 127.0.0.1"));
}

/* The hub is behind a job with another token and a service that says nothing sensible; strangers
 * that send rubbish do it no harm. */
static void others_on_our_ports_do_no_harm(void **state)
{
    (void)state;
    struct job other, job;
    open_job(&other, 2, 20, exchange_values);
    open_job(&job, 2, 20, exchange_values);
    strcpy(other.place.token, "another job");
    int low = job.place.port < other.place.port ? job.place.port : other.place.port;
    int high = job.place.port + other.place.port - low;
    if (high - low > 64) { /* the system gave ports far apart: only the token is tested */
        low = other.place.port;
        high = low;
    }
    start(&other, 0, 0, 2);
    start(&job, 0, 0, 2);
    struct tri_rendezvous_place all = job.place;
    all.port = low;
    all.num_ports = high - low + 1;
    if (low == high) {
        struct tri_rendezvous *rv = NULL;
        strcpy(all.token, "test");
        assert_int_equal(tri_rendezvous_open(&all, 1, 2, 0.3, -1, &rv), TRI_COMM);
        all = job.place;
    }
    job.place = all;
    start(&job, 1, 1, 2);
    finish(&job, 2);
    start(&other, 1, 1, 2);
    finish(&other, 2);
    for (int i = 0; i < 2; i++) {
        if (job.status[i] != TRI_OK || other.status[i] != TRI_OK)
            fail_msg("%s / %s", job.text[i], other.text[i]);
    }
}

/* Connect to the hub and send it some bytes; what it answers is of no interest. */
static void send_rubbish(int port, const void *data, size_t bytes)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
    close(fd);
}

static void rubbish_does_no_harm(void **state)
{
    (void)state;
    struct job job;
    char bytes[8192];
    open_job(&job, 3, 20, exchange_values);
    start(&job, 0, 0, 3);
    for (int kind = -1; kind <= TRI_FRAME_KINDS; kind++)
        for (int size = 0; size < 3; size++) {
            /* Frames of every kind, whole or cut, from somebody who does not know the token. */
            uint32_t payload = size == 0 ? 0 : size == 1 ? TRI_RENDEZVOUS_TOKEN : UINT32_MAX;
            struct tri_frame frame = tri_frame_make((enum tri_frame_kind)kind, payload);
            frame.place = size == 0 ? INT32_MAX : 1;
            frame.size = size == 0 ? INT32_MIN : 3;
            memset(bytes, kind == -1 ? 0xFF : 'x', sizeof bytes);
            if (kind >= 0)
                memcpy(bytes, &frame, sizeof frame);
            send_rubbish(job.place.port, bytes, sizeof bytes);
            send_rubbish(job.place.port, bytes, sizeof frame - 1);
        }
    start(&job, 1, 1, 3);
    start(&job, 2, 2, 3);
    finish(&job, 3);
    for (int i = 0; i < 3; i++)
        if (job.status[i] != TRI_OK)
            fail_msg("%s", job.text[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_reach_all),
        cmocka_unit_test(a_failing_rank_is_named),
        cmocka_unit_test(a_killed_rank_is_named),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(ranks_that_go_apart_hear_it),
        cmocka_unit_test(a_rank_that_never_comes_is_named),
        cmocka_unit_test(other_sizes_and_doubles_are_refused),
        cmocka_unit_test(nobody_there_is_an_error),
        cmocka_unit_test(others_on_our_ports_do_no_harm),
        cmocka_unit_test(rubbish_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
