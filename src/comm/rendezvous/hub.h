/* Private to comm/rendezvous: the hub, a thread of rank 0 that all ranks are connected to. */
#ifndef TRI_COMM_RENDEZVOUS_HUB_H
#define TRI_COMM_RENDEZVOUS_HUB_H

#include "comm/rendezvous/rendezvous.h"

struct tri_hub;

/* Serve `size` ranks that know the token; `listen_fd` is taken over, also on failure. When they are
 * not all there after `timeout` seconds, those that are hear who is missing. */
enum tri_status tri_hub_open(int listen_fd, const char *token, int size, double timeout,
                             struct tri_hub **out);

/* Wait up to `seconds` until all ranks have left, then end. */
void tri_hub_close(struct tri_hub *hub, double seconds); /* NULL is allowed */

#endif
