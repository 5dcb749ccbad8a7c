/* Private to comm/rendezvous: exchanges that wait for members at the hub. */
#ifndef TRI_COMM_RENDEZVOUS_EXCHANGE_H
#define TRI_COMM_RENDEZVOUS_EXCHANGE_H

#include "comm/rendezvous/frame.h"

struct tri_hub_exchange {
    struct tri_hub_exchange *next;
    struct tri_frame first; /* what the first member sent: all others must match it */
    int first_rank;
    int came;
    char *parts; /* (size * bytes) */
    int *ranks;  /* (size): rank of the member, -1 until it came */
};

/* Put a member's part into its exchange, which is made when it is the first. *full: the exchange,
 * taken out of the list, when everybody is there; the caller frees it. A part that does not fit the
 * others is TRI_COMM with a text that names both ranks. */
enum tri_status tri_hub_exchange_add(struct tri_hub_exchange **list, int rank,
                                     const struct tri_frame *frame, const char *payload,
                                     struct tri_hub_exchange **full);
void tri_hub_exchange_free(struct tri_hub_exchange *exchange);

/* Write "rank 1, rank 3" into text: who is missing in an exchange of all `size` ranks that rank
 * `asker` is in. Empty when that is not known. */
void tri_hub_exchange_missing(const struct tri_hub_exchange *list, int asker, int size, char *text,
                              size_t bytes);

#endif
