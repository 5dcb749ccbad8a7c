/* Signs of life while nothing reports: the last news is told again with how long it is ago.
 *
 * A layer over a million tokens takes minutes, and on a card the passes report long before their
 * work is done. A run without a word looks dead, above all in its first step. */
#ifndef TRI_TRAIN_HEARTBEAT_H
#define TRI_TRAIN_HEARTBEAT_H

#include "base/status.h"

struct tri_heartbeat;

/* Start the thread that beats every `seconds`. */
enum tri_status tri_heartbeat_open(double seconds, struct tri_heartbeat **out);
void tri_heartbeat_close(struct tri_heartbeat *heartbeat); /* NULL is allowed, here and below */

/* News: shown now as a progress line, and again at every beat until there are others. Without a
 * heartbeat it is only shown now. */
void tri_heartbeat_say(struct tri_heartbeat *heartbeat, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a stop signal waits for now, such as "this step", what comes `then` ("" or ", then saving"),
 * and the clock at which it should be over (NAN: not known). The heartbeat's thread answers the
 * first signal with that, within a tenth of a second; so does it the first Ctrl-C at the terminal,
 * with what a second one does. NULL: a signal waits for the next work. The texts must stay. */
void tri_heartbeat_stop_after(struct tri_heartbeat *heartbeat, const char *what, const char *then,
                              double end);

/* Nothing is at work: stay silent until the next news. */
void tri_heartbeat_rest(struct tri_heartbeat *heartbeat);

#endif
