/* Signals that ask a run to stop, each test in a process of its own. */
#include "unit/scratch.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "train/heartbeat.h"
#include "train/stop.h"

/* What a child says by its exit status. */
enum { WELL = 0, NOT_WATCHED, LOST, NOT_ASKED };

enum { SECONDS = 20 /* after which a child that hangs is ended */ };

static int end_of(pid_t pid)
{
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return how;
}

static void assert_well(pid_t pid)
{
    int how = end_of(pid);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != WELL)
        fail_msg("the child ended with wait status %#x", (unsigned)how);
}

/* A launcher and the system may send a signal each, and the second one may come in a save. */
static int ask_again_and_again(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    (void)signal(SIGHUP, SIG_DFL); /* the tests may run under nohup */
    if (tri_stop_watch() != TRI_OK || tri_stop_requested() != 0)
        return NOT_WATCHED;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (int times = 0; times < 3; times++)
            if (kill(getpid(), numbers[i]) != 0 || tri_stop_requested() != numbers[i])
                return NOT_ASKED;
    return WELL;
}

static void a_signal_only_asks_however_often(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(SECONDS);
        _exit(ask_again_and_again());
    }
    assert_well(pid);
}

static void a_later_rank_of_the_process_erases_no_request(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(SECONDS);
        if (tri_stop_watch() != TRI_OK || raise(SIGTERM) != 0 || tri_stop_watch() != TRI_OK)
            _exit(NOT_WATCHED);
        _exit(tri_stop_requested() == SIGTERM ? WELL : LOST);
    }
    assert_well(pid);
}

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(NOT_WATCHED);
}

/* Read from the terminal until `word` was there. */
static void hear(int terminal, const char *word)
{
    char text[512] = "";
    size_t bytes = 0;
    while (strstr(text, word) == NULL) {
        ssize_t n = read(terminal, text + bytes, sizeof text - 1 - bytes);
        if (n <= 0)
            fail_msg("the child ended before it said \"%s\": %s", word, text);
        bytes += (size_t)n;
        text[bytes] = '\0';
    }
}

static void a_second_ctrl_c_ends_the_process(void **state)
{
    (void)state;
    int terminal;
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct timespec moment = {.tv_nsec = 1000 * 1000};
        alarm(SECONDS);
        if (tri_stop_watch() != TRI_OK)
            _exit(NOT_WATCHED);
        /* One that somebody sent is not one that was typed. */
        if (kill(getpid(), SIGINT) != 0 || kill(getpid(), SIGUSR1) != 0)
            _exit(NOT_WATCHED);
        say("watching\n");
        while (tri_stop_requested() != SIGINT)
            (void)nanosleep(&moment, NULL);
        say("asked\n");
        for (;;)
            (void)nanosleep(&moment, NULL);
    }
    hear(terminal, "watching");
    assert_int_equal(write(terminal, "\003", 1), 1);
    hear(terminal, "asked");
    assert_int_equal(write(terminal, "\003", 1), 1);
    int how = end_of(pid);
    close(terminal);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGINT);
}

/* A run whose step goes on for hours hears a signal: what it says must not wait for it. */
static pid_t start_step(int *terminal)
{
    pid_t pid = forkpty(terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    struct tri_heartbeat *heartbeat;
    alarm(SECONDS);
    if (tri_stop_watch() != TRI_OK || tri_heartbeat_open(0.01, &heartbeat) != TRI_OK)
        _exit(NOT_WATCHED);
    tri_heartbeat_stop_after(heartbeat, "this step", ", then saving", tri_clock() + 11 * 3600 - 30);
    say("watching\n");
    for (;;)
        (void)pause();
}

static int64_t count_of(const char *text, const char *word)
{
    int64_t n = 0;
    for (; (text = strstr(text, word)) != NULL; text++)
        n++;
    return n;
}

/* What comes within a second. */
static void hear_all(int terminal, char *text, size_t room)
{
    struct pollfd ready = {.fd = terminal, .events = POLLIN};
    const double end = tri_clock() + 1;
    size_t bytes = 0;
    while (tri_clock() < end && bytes + 1 < room) {
        if (poll(&ready, 1, 10) <= 0)
            continue;
        ssize_t n = read(terminal, text + bytes, room - 1 - bytes);
        bytes += n > 0 ? (size_t)n : 0;
    }
    text[bytes] = '\0';
}

static void a_signal_is_answered_at_once_and_once(void **state)
{
    (void)state;
    int terminal;
    char text[1024];
    pid_t pid = start_step(&terminal);
    hear(terminal, "watching");
    assert_int_equal(kill(pid, SIGTERM), 0);
    hear(terminal, "SIGTERM: stopping after this step (eta 10h59m), then saving\r\n");
    assert_int_equal(kill(pid, SIGUSR1), 0);
    hear_all(terminal, text, sizeof text);
    assert_int_equal(count_of(text, "stopping"), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)end_of(pid);
    close(terminal);
}

static void a_ctrl_c_is_told_what_a_second_one_does(void **state)
{
    (void)state;
    int terminal;
    pid_t pid = start_step(&terminal);
    hear(terminal, "watching");
    assert_int_equal(write(terminal, "\003", 1), 1);
    hear(terminal, "SIGINT (Ctrl-C): stopping after this step (eta 10h59m), then saving; Ctrl-C "
                   "again ends now without saving\r\n");
    assert_int_equal(write(terminal, "\003", 1), 1);
    int how = end_of(pid);
    close(terminal);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGINT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_only_asks_however_often),
        cmocka_unit_test(a_later_rank_of_the_process_erases_no_request),
        cmocka_unit_test(a_second_ctrl_c_ends_the_process),
        cmocka_unit_test(a_signal_is_answered_at_once_and_once),
        cmocka_unit_test(a_ctrl_c_is_told_what_a_second_one_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
