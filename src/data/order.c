#include "data/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* "data": keeps these random numbers apart from others of the same seed. */
static const uint64_t stream_tag = UINT64_C(0x64617461) << 24;

enum tri_status tri_order_open(const struct tri_index *index, uint64_t seed, bool shuffle,
                               bool pack, struct tri_order *out)
{
    struct tri_order order = {
        .records = index->records,
        .num_records = index->count,
        .max_length = index->stats.max_length,
        .seed = seed,
        .shuffle = shuffle,
        .pack = pack,
        .epoch = -1,
    };
    if (pack) {
        order.begin = malloc((size_t)(index->count + 1) * sizeof *order.begin);
        if (!order.begin)
            return tri_fail(TRI_NOMEM, "no memory to pack %" PRId64 " samples", index->count);
    }
    *out = order;
    return TRI_OK;
}

void tri_order_close(struct tri_order *order)
{
    free(order->begin);
    memset(order, 0, sizeof *order);
}

int64_t tri_order_record(const struct tri_order *order, int64_t epoch, int64_t place)
{
    if (!order->shuffle)
        return place;
    return tri_rng_permute(order->seed, stream_tag ^ (uint64_t)epoch, order->num_records, place);
}

/* Pack an epoch; `begin` is filled unless it is NULL. Returns the number of sequences. */
static int64_t pack_epoch(const struct tri_order *order, int64_t epoch, int64_t *begin)
{
    int64_t sequences = 0;
    int64_t room = -1; /* left in the open sequence; there is none yet */
    for (int64_t place = 0; place < order->num_records; place++) {
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
        begin[sequences] = order->num_records;
    return sequences;
}

int64_t tri_order_sequences(const struct tri_order *order, int64_t epoch)
{
    if (!order->pack)
        return order->num_records;
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
