#include "data/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/options.h"

/* "sequ": keeps these random numbers apart from others of the same seed. */
static const uint64_t sequence_tag = UINT64_C(0x73657175) << 24;

static enum tri_status open_packing(const struct tri_index *index, struct tri_order *order)
{
    struct tri_order_epoch *at = order->at;
    const int64_t most = tri_mixture_most_places(&order->mixture);
    /* More room than there are tokens is of no use, and would cost memory. */
    int64_t capacity = order->max_length, tokens = 0;
    for (int64_t i = 0; i < index->count && tokens < capacity; i++)
        tokens += index->records[i].tokens;
    if (most == index->count && tokens < capacity)
        capacity = tokens;
    at->record = malloc((size_t)most * sizeof *at->record);
    at->length = malloc((size_t)most * sizeof *at->length);
    if (!at->record || !at->length)
        return tri_fail(TRI_NOMEM, "no memory to pack %" PRId64 " samples", most);
    return tri_packing_open(most, capacity, &at->packing);
}

enum tri_status tri_order_open(const struct tri_index *index, struct tri_mixture *mixture,
                               const struct tri_order_rules *rules, struct tri_order *out)
{
    struct tri_order order = {
        .records = index->records,
        .mixture = *mixture,
        .max_length = index->stats.max_length,
        .pack = rules->pack,
        .group = rules->group && !rules->pack,
        .strategy = rules->strategy,
    };
    memset(mixture, 0, sizeof *mixture);
    enum tri_status st = TRI_OK;
    if (order.pack || order.group) {
        order.at = calloc(1, sizeof *order.at);
        if (!order.at)
            st = tri_fail(TRI_NOMEM, "no memory for the order of an epoch");
        else
            order.at->epoch = order.at->window = -1;
    }
    if (st == TRI_OK && order.pack)
        st = open_packing(index, &order);
    if (st != TRI_OK) {
        tri_order_close(&order);
        return st;
    }
    *out = order;
    return TRI_OK;
}

void tri_order_close(struct tri_order *order)
{
    if (order->at) {
        free(order->at->record);
        free(order->at->length);
        tri_packing_close(&order->at->packing);
    }
    free(order->at);
    tri_mixture_close(&order->mixture);
    memset(order, 0, sizeof *order);
}

/* ---- packed ---------------------------------------------------------------------------------- */

static void pack(const struct tri_order *order, int64_t epoch)
{
    struct tri_order_epoch *at = order->at;
    if (at->epoch == epoch)
        return;
    const int64_t places = tri_mixture_places(&order->mixture, epoch);
    for (int64_t place = 0; place < places; place++) {
        at->record[place] = tri_mixture_record(&order->mixture, epoch, place);
        at->length[place] = order->records[at->record[place]].tokens;
    }
    if (order->strategy == TRI_PACKING_BEST_FIT)
        tri_pack_best_fit(&at->packing, at->length, places);
    else
        tri_pack_in_order(&at->packing, at->length, places);
    at->epoch = epoch;
    if (order->strategy == TRI_PACKING_BEST_FIT && tri_mixture_is_even(&order->mixture))
        at->even_sequences = at->packing.num_bins; /* the same lengths in another order */
}

/* ---- grouped --------------------------------------------------------------------------------- */

struct by_length {
    const struct tri_order *order;
    int64_t epoch;
};

static int longer_first(const void *a, const void *b, void *ctx)
{
    const struct by_length *by = ctx;
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const struct tri_mixture *mixture = &by->order->mixture;
    const int64_t left = by->order->records[tri_mixture_record(mixture, by->epoch, i)].tokens;
    const int64_t right = by->order->records[tri_mixture_record(mixture, by->epoch, j)].tokens;
    return left != right ? (left > right ? -1 : 1) : (i > j) - (i < j);
}

static int64_t grouped_place(const struct tri_order *order, int64_t epoch, int64_t place)
{
    struct tri_order_epoch *at = order->at;
    const int64_t window = place / TRI_GROUP_WINDOW, first = window * TRI_GROUP_WINDOW;
    if (at->epoch != epoch || at->window != window) {
        struct by_length by = {order, epoch};
        const int64_t left = tri_mixture_places(&order->mixture, epoch) - first;
        const int64_t count = left < TRI_GROUP_WINDOW ? left : TRI_GROUP_WINDOW;
        for (int64_t i = 0; i < count; i++)
            at->place[i] = first + i;
        qsort_r(at->place, (size_t)count, sizeof *at->place, longer_first, &by);
        at->epoch = epoch;
        at->window = window;
    }
    return at->place[place - first];
}

/* ---- sequences -------------------------------------------------------------------------------
 */

int64_t tri_order_sequences(const struct tri_order *order, int64_t epoch)
{
    if (!order->pack)
        return tri_mixture_places(&order->mixture, epoch);
    if (order->at->even_sequences > 0)
        return order->at->even_sequences;
    pack(order, epoch);
    return order->at->packing.num_bins;
}

bool tri_order_sequence(const struct tri_order *order, int64_t epoch, int64_t sequence,
                        int64_t *first, int64_t *end)
{
    if (epoch < 0 || sequence < 0 || sequence >= tri_order_sequences(order, epoch))
        return false;
    if (!order->pack) {
        *first = sequence;
        *end = sequence + 1;
        return true;
    }
    pack(order, epoch);
    const struct tri_packing *packing = &order->at->packing;
    if (order->mixture.shuffle && order->strategy == TRI_PACKING_BEST_FIT)
        sequence = tri_rng_permute(order->mixture.seed, sequence_tag ^ (uint64_t)epoch,
                                   packing->num_bins, sequence);
    *first = packing->begin[sequence];
    *end = packing->begin[sequence + 1];
    return true;
}

int64_t tri_order_record(const struct tri_order *order, int64_t epoch, int64_t place)
{
    if (order->pack) {
        pack(order, epoch);
        return order->at->record[order->at->packing.item[place]];
    }
    if (order->group)
        place = grouped_place(order, epoch, place);
    return tri_mixture_record(&order->mixture, epoch, place);
}
