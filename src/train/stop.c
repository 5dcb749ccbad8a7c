#include "train/stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t requested;

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
    return TRI_OK;
}

int tri_stop_requested(void)
{
    return (int)requested;
}
