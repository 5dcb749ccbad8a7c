#include "comm/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/rendezvous/rendezvous.h"

extern char **environ;

enum { MAX_RANKS = 256, MINE = 9 /* variables that are set for a rank */ };

static const int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct process {
    pid_t pid; /* 0: it has ended */
    bool killed;
};

struct processes {
    struct process list[MAX_RANKS];
    int count, alive;
    int first, how;  /* the rank that failed first, and its status; -1: none */
    bool first_told; /* it failed for a reason of its own */
    double kill_by;
};

static const char *const names[MINE] = {
    "RANK",        "LOCAL_RANK",  "WORLD_SIZE",        "LOCAL_WORLD_SIZE", "MASTER_ADDR",
    "MASTER_PORT", "TRIREME_JOB", "TRIREME_LISTEN_FD", "OMP_NUM_THREADS"};

static bool is_mine(const char *entry)
{
    for (int i = 0; i < MINE; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(entry, names[i], length) == 0 && entry[length] == '=')
            return true;
    }
    return false;
}

/* The environment of a rank: ours, with its own variables. `text` (MINE) holds those. */
static char **make_environment(int rank, int ranks, const struct tri_rendezvous_place *place,
                               int listen_fd, char text[MINE][128])
{
    size_t count = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN) / ranks;
    const char *threads = getenv("OMP_NUM_THREADS");
    const int values[MINE] = {rank, rank, ranks, ranks, 0, place->port, 0, listen_fd, 0};
    while (environ[count] != NULL)
        count++;
    char **list = malloc((count + MINE + 1) * sizeof *list);
    if (list == NULL)
        return NULL;
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_mine(environ[i]))
            list[used++] = environ[i];
    for (int i = 0; i < MINE; i++) {
        snprintf(text[i], sizeof text[i], "%s=%d", names[i], values[i]);
        list[used++] = text[i];
    }
    snprintf(text[4], sizeof text[4], "%s=127.0.0.1", names[4]);
    snprintf(text[6], sizeof text[6], "%s=%s", names[6], place->token);
    /* Ranks share the cores. */
    if (threads != NULL)
        snprintf(text[8], sizeof text[8], "%s=%.100s", names[8], threads);
    else
        snprintf(text[8], sizeof text[8], "%s=%ld", names[8], cores > 1 ? cores : 1);
    list[used] = NULL;
    return list;
}

/* Start one rank. Between fork and exec only what is allowed there: nothing is allocated. */
static enum tri_status start(const char *path, char *const *argv, char *const *environment,
                             int keep_fd, const sigset_t *mask, pid_t *pid)
{
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        return tri_fail_errno(errno, "cannot start a process for each rank");
    if (child == 0) {
        /* Should we be killed, nobody else would end the ranks. */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        if (keep_fd >= 0)
            (void)fcntl(keep_fd, F_SETFD, 0);
        (void)sigprocmask(SIG_SETMASK, mask, NULL);
        (void)execve(path, argv, environment);
        static const char text[] = "error: cannot run this program again for a rank\n";
        ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
        _exit(127);
    }
    *pid = child;
    return TRI_OK;
}

static void signal_all(const struct processes *all, int number)
{
    for (int r = 0; r < all->count; r++)
        if (all->list[r].pid > 0)
            (void)kill(all->list[r].pid, number);
}

/* A rank ended: was it well, and was it the first that was not? */
static void note_end(struct processes *all, int rank, int how, double grace)
{
    all->list[rank].pid = 0;
    all->alive--;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return;
    bool own =
        !all->list[rank].killed && !(WIFEXITED(how) && WEXITSTATUS(how) == TRI_PROCESS_HEARD);
    if (all->first < 0)
        all->kill_by = tri_clock() + grace;
    if (all->first < 0 || (own && !all->first_told)) {
        all->first = rank;
        all->how = how;
        all->first_told = own;
    }
}

static void reap(struct processes *all, double grace)
{
    for (int r = 0; r < all->count; r++) {
        int how;
        if (all->list[r].pid > 0 && waitpid(all->list[r].pid, &how, WNOHANG) == all->list[r].pid)
            note_end(all, r, how, grace);
    }
}

static void kill_rest(struct processes *all)
{
    for (int r = 0; r < all->count; r++)
        all->list[r].killed = all->list[r].killed || all->list[r].pid > 0;
    signal_all(all, SIGKILL);
}

/* Until all have ended. A signal from the terminal has reached the ranks already, since they are in
 * our process group: another one would end them before they have saved. */
static void wait_for_all(struct processes *all, const sigset_t *waited, double grace)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 500 * 1000 * 1000};
    bool killed = false;
    while (all->alive > 0) {
        siginfo_t info;
        int number = sigtimedwait(waited, &info, &pause);
        if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL)
            signal_all(all, number);
        reap(all, grace);
        if (all->first >= 0 && !killed && all->alive > 0 && tri_clock() > all->kill_by) {
            tri_warn("%d ranks have not ended %.0f s after rank %d failed: they are killed",
                     all->alive, grace, all->first);
            kill_rest(all);
            killed = true;
        }
    }
}

static enum tri_status explain(const struct processes *all)
{
    if (all->first < 0)
        return TRI_OK;
    if (WIFSIGNALED(all->how))
        return tri_fail(
            TRI_PEER, "rank %d of %d was killed by signal %d (%s)%s; the others were stopped",
            all->first, all->count, WTERMSIG(all->how), strsignal(WTERMSIG(all->how)),
            WTERMSIG(all->how) == SIGKILL ? ": did the machine run out of memory?" : "");
    return tri_fail(TRI_PEER, "rank %d of %d failed; its own message is above", all->first,
                    all->count);
}

static enum tri_status make_token(char *token, size_t bytes)
{
    uint64_t words[2];
    if (getrandom(words, sizeof words, 0) != (ssize_t)sizeof words)
        return tri_fail_errno(errno, "no random numbers for the name of a job");
    snprintf(token, bytes, "%016llx%016llx", (unsigned long long)words[0],
             (unsigned long long)words[1]);
    return TRI_OK;
}

static enum tri_status start_all(struct processes *all, const char *path, char *const *argv,
                                 int ranks, const sigset_t *mask)
{
    struct tri_rendezvous_place place = {.num_ports = 1};
    int fd = -1;
    enum tri_status st = TRI_OK;
    TRI_TRY(make_token(place.token, sizeof place.token));
    TRI_TRY(tri_rendezvous_listen(&place, true, &fd));
    for (int r = 0; r < ranks && st == TRI_OK; r++) {
        char text[MINE][128];
        char **environment = make_environment(r, ranks, &place, r == 0 ? fd : -1, text);
        if (environment == NULL)
            st = tri_fail(TRI_NOMEM, "no memory to start ranks");
        else
            st = start(path, argv, environment, r == 0 ? fd : -1, mask, &all->list[r].pid);
        free(environment);
        if (st == TRI_OK) {
            all->count++;
            all->alive++;
        }
    }
    close(fd); /* rank 0 has it */
    return st;
}

enum tri_status tri_processes_run(const char *path, char *const *argv, int ranks, double grace)
{
    struct processes all = {.first = -1};
    sigset_t waited, before;
    if (ranks < 1 || ranks > MAX_RANKS)
        return tri_fail(TRI_INVALID, "%d ranks on one machine: 1 to %d are possible", ranks,
                        MAX_RANKS);
    sigemptyset(&waited);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&waited, signals[i]);
    if (pthread_sigmask(SIG_BLOCK, &waited, &before) != 0)
        return tri_fail(TRI_INTERNAL, "cannot block signals");
    fflush(NULL);
    enum tri_status st = start_all(&all, path, argv, ranks, &before);
    if (st != TRI_OK)
        kill_rest(&all);
    wait_for_all(&all, &waited, grace);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st != TRI_OK ? st : explain(&all);
}
