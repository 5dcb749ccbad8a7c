/* Which samples make which sequence of which epoch: shuffling, then packing or grouping.
 *
 * The order of an epoch (data/mixture.h) is a permutation chosen by (seed, epoch) alone: it needs
 * no memory, and nothing about it has to be saved. Without packing each place in the order is a
 * sequence; grouped by length, places are sorted within windows, the longest first, so that the
 * sequences of a step, which lie in one window, take about as long as each other.
 *
 * With packing (data/pack.h) every sample of the epoch is in exactly one sequence. Best-fit packing
 * puts the longest first, so the sequences are shuffled once more. All of it is a function of the
 * lengths, the seed and the epoch. */
#ifndef TRI_DATA_ORDER_H
#define TRI_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "data/index.h"
#include "data/mixture.h"
#include "data/pack.h"

enum { TRI_GROUP_WINDOW = 512 };

/* The epoch last asked for, made when it is. */
struct tri_order_epoch {
    int64_t epoch; /* -1: none yet */
    /* Packed: */
    int64_t *record; /* (most places) at each place of the mixture */
    int64_t *length; /* (most places) their tokens */
    struct tri_packing packing;
    int64_t even_sequences; /* of every epoch when they are all alike; 0: not known */
    /* Grouped: the window at hand. */
    int64_t window; /* -1: none yet */
    int64_t place[TRI_GROUP_WINDOW];
};

struct tri_order {
    const struct tri_record *records; /* of the index, which outlives the order */
    struct tri_mixture mixture;
    int64_t max_length;
    bool pack, group;
    int strategy;               /* enum tri_packing_strategy */
    struct tri_order_epoch *at; /* NULL: neither packed nor grouped */
};

struct tri_order_rules {
    bool pack;
    int strategy; /* enum tri_packing_strategy */
    bool group;   /* by length, when not packed */
};

/* Takes over the mixture of the index' records, also when it fails. */
enum tri_status tri_order_open(const struct tri_index *index, struct tri_mixture *mixture,
                               const struct tri_order_rules *rules, struct tri_order *out);
void tri_order_close(struct tri_order *order);

/* How many sequences an epoch has. */
int64_t tri_order_sequences(const struct tri_order *order, int64_t epoch);

/* The places [*first, *end) of a sequence; false if the epoch does not have it. */
bool tri_order_sequence(const struct tri_order *order, int64_t epoch, int64_t sequence,
                        int64_t *first, int64_t *end);

/* The record at a place of a sequence of this epoch. */
int64_t tri_order_record(const struct tri_order *order, int64_t epoch, int64_t place);

#endif
