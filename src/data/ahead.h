/* Lines read before their turn, on all threads.
 *
 * Lines are added to the index one after the other, so that the first bad one is the one that is
 * named. Reading them, which parses, renders and encodes, takes the time, and may be done
 * beforehand and in any order. Lines that cannot be read are left for their turn. */
#ifndef TRI_DATA_AHEAD_H
#define TRI_DATA_AHEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "data/sample.h"

struct tri_ahead;

enum tri_status tri_ahead_open(struct tri_ahead **out);
void tri_ahead_close(struct tri_ahead *ahead); /* NULL is allowed */

/* Read the next few megabytes of `data`, whole lines, and forget those read before. Returns how
 * many bytes they are. */
size_t tri_ahead_fill(struct tri_ahead *ahead, const struct tri_sample_rules *rules,
                      const char *data, size_t bytes);

/* The sample of the line at this address, which is the caller's from then on; its unread columns
 * are noted in the rules. False if it was not read: read it now. */
bool tri_ahead_take(struct tri_ahead *ahead, const struct tri_sample_rules *rules, const char *line,
                    struct tri_sample *out);

#endif
