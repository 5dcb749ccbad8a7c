#include "data/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum tri_status tri_order_open(const struct tri_index *index, struct tri_mixture *mixture,
                               bool pack, struct tri_order *out)
{
    struct tri_order order = {
        .records = index->records,
        .mixture = *mixture,
        .max_length = index->stats.max_length,
        .pack = pack,
        .epoch = -1,
    };
    memset(mixture, 0, sizeof *mixture);
    if (pack) {
        const int64_t most = tri_mixture_most_places(&order.mixture);
        order.begin = malloc((size_t)(most + 1) * sizeof *order.begin);
        if (!order.begin) {
            tri_order_close(&order);
            return tri_fail(TRI_NOMEM, "no memory to pack %" PRId64 " samples", most);
        }
    }
    *out = order;
    return TRI_OK;
}

void tri_order_close(struct tri_order *order)
{
    free(order->begin);
    tri_mixture_close(&order->mixture);
    memset(order, 0, sizeof *order);
}

int64_t tri_order_record(const struct tri_order *order, int64_t epoch, int64_t place)
{
    return tri_mixture_record(&order->mixture, epoch, place);
}

/* Pack an epoch; `begin` is filled unless it is NULL. Returns the number of sequences. */
static int64_t pack_epoch(const struct tri_order *order, int64_t epoch, int64_t *begin)
{
    int64_t sequences = 0;
    int64_t room = -1; /* left in the open sequence; there is none yet */
    const int64_t places = tri_mixture_places(&order->mixture, epoch);
    for (int64_t place = 0; place < places; place++) {
        const int64_t tokens = order->records[tri_order_record(order, epoch, place)].tokens;
        if (tokens > room) {
            if (begin)
                begin[sequences] = place;
            sequences++;
            room = order->max_length;
        }
        room -= tokens;
    }
    if (begin)
        begin[sequences] = places;
    return sequences;
}

int64_t tri_order_sequences(const struct tri_order *order, int64_t epoch)
{
    if (!order->pack)
        return tri_mixture_places(&order->mixture, epoch);
    return epoch == order->epoch ? order->num_sequences : pack_epoch(order, epoch, NULL);
}

bool tri_order_sequence(struct tri_order *order, int64_t epoch, int64_t sequence, int64_t *first,
                        int64_t *end)
{
    if (order->pack && epoch != order->epoch) {
        order->num_sequences = pack_epoch(order, epoch, order->begin);
        order->epoch = epoch;
    }
    if (epoch < 0 || sequence < 0 || sequence >= tri_order_sequences(order, epoch))
        return false;
    *first = order->pack ? order->begin[sequence] : sequence;
    *end = order->pack ? order->begin[sequence + 1] : sequence + 1;
    return true;
}
