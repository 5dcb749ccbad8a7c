#include "train/stop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* Ranks that are threads share these; a lock-free atomic may be written by a handler. */
static atomic_int requested;
static atomic_bool typed; /* Ctrl-C has been pressed */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int watch_errno; /* why signals cannot be watched, or 0 */

/* The kernel sends what is typed; what another process sends (kill, a launcher that passes on its
 * own signal) says that in si_code. */
static void ask(int number, siginfo_t *info, void *context)
{
    (void)context;
    requested = number;
    if (number != SIGINT || info->si_code != SI_KERNEL || !atomic_exchange(&typed, true))
        return;
    (void)signal(SIGINT, SIG_DFL);
    (void)raise(SIGINT); /* delivered when this handler returns */
}

static void watch(void)
{
    static const int asking[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
    /* A failing write is told by its result and must not end the process before it has saved:
     * Ctrl-C also ends the `tee` that reads our messages, and files may be limited in size. */
    static const int ignored[] = {SIGPIPE, SIGXFSZ};
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = ask;
    /* SA_RESTART: no call fails with EINTR because somebody asked. */
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        if (sigaction(asking[i], &action, NULL) != 0)
            watch_errno = errno;
    /* A terminal that closes asks as well, but not under nohup. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        (void)sigaction(SIGHUP, &action, NULL);
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_IGN;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (sigaction(ignored[i], &action, NULL) != 0)
            watch_errno = errno;
}

enum tri_status tri_stop_watch(void)
{
    if (pthread_once(&once, watch) != 0)
        return tri_fail(TRI_INTERNAL, "cannot watch for stop signals");
    if (watch_errno != 0)
        return tri_fail_errno(watch_errno, "cannot watch for stop signals");
    return TRI_OK;
}

int tri_stop_requested(void)
{
    return requested;
}

bool tri_stop_typed(void)
{
    return typed;
}

const char *tri_stop_name(int number)
{
    switch (number) {
    case SIGTERM:
        return "SIGTERM";
    case SIGINT:
        return "SIGINT (Ctrl-C)";
    case SIGHUP:
        return "SIGHUP";
    case SIGUSR1:
        return "SIGUSR1";
    case SIGUSR2:
        return "SIGUSR2";
    default:
        return strsignal(number);
    }
}
