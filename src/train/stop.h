/* Stop signals: a request that is looked at between steps, never an interruption of one. */
#ifndef TRI_TRAIN_STOP_H
#define TRI_TRAIN_STOP_H

#include <stdbool.h>

#include "base/status.h"

/* From now on SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 only ask, however often they come:
 * launchers send several, also while a checkpoint is being written. The way out is a second Ctrl-C
 * at the terminal, which ends the process at once. SIGPIPE and SIGXFSZ are ignored: writes report
 * their failures themselves.
 *
 * Every rank calls this, since a launcher may signal any of them. Ranks that are threads share what
 * the first of them has set up, and no request is lost. */
enum tri_status tri_stop_watch(void);

/* The signal that asked last, or 0. */
int tri_stop_requested(void);

/* Has Ctrl-C been pressed at the terminal? Then the next one ends the process. */
bool tri_stop_typed(void);

/* "SIGTERM": as it is written in commands. */
const char *tri_stop_name(int number);

#endif
