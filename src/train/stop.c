#include "train/stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Ranks that are threads share it; a lock-free atomic may be written by a handler. */
static _Atomic int requested;

static void ask(int signal_number)
{
    requested = signal_number;
}

enum tri_status tri_stop_watch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = ask;
    /* SA_RESETHAND: the second signal finds the default action. SA_RESTART: no call fails with
     * EINTR because somebody asked. */
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    requested = 0;
    if (sigaction(SIGTERM, &action, NULL) != 0 || sigaction(SIGINT, &action, NULL) != 0)
        return tri_fail_errno(errno, "cannot watch for stop signals");
    /* A terminal that closes asks as well, but not under nohup. */
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        (void)sigaction(SIGHUP, &action, NULL);
    /* A failing write is told by its result and must not end the process before it has saved:
     * Ctrl-C also ends the `tee` that reads our messages, and files may be limited in size. */
    action.sa_handler = SIG_IGN;
    action.sa_flags = 0;
    if (sigaction(SIGPIPE, &action, NULL) != 0 || sigaction(SIGXFSZ, &action, NULL) != 0)
        return tri_fail_errno(errno, "cannot ignore the signals of failing writes");
    return TRI_OK;
}

int tri_stop_requested(void)
{
    return requested;
}
