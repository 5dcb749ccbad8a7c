/* Stop signals: a request that is looked at between steps, never an interruption of one. */
#ifndef TRI_TRAIN_STOP_H
#define TRI_TRAIN_STOP_H

#include "base/status.h"

/* From now on SIGTERM, SIGINT and SIGHUP only ask; a second one of the same kind ends the process
 * at once. SIGPIPE and SIGXFSZ are ignored: writes report their failures themselves. */
enum tri_status tri_stop_watch(void);

/* The signal that asked, or 0. */
int tri_stop_requested(void);

#endif
