/* Which samples make which sequence of which epoch: shuffling, then packing.
 *
 * The order of an epoch (data/mixture.h) is a permutation chosen by (seed, epoch) alone: it needs
 * no memory, and nothing about it has to be saved. Without packing each place in the order is a
 * sequence. With
 * packing a sequence takes the next places as long as they fit into max_length tokens together, so
 * every sample is in exactly one sequence, and the number of sequences depends on the epoch. */
#ifndef TRI_DATA_ORDER_H
#define TRI_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "data/index.h"
#include "data/mixture.h"

struct tri_order {
    const struct tri_record *records; /* of the index, which outlives the order */
    struct tri_mixture mixture;
    int64_t max_length;
    bool pack;
    /* With packing, the epoch last asked for: sequence i holds the places
     * [begin[i], begin[i + 1]). */
    int64_t *begin; /* (most places + 1) */
    int64_t epoch;
    int64_t num_sequences;
};

/* Takes over the mixture of the index' records, also when it fails. */
enum tri_status tri_order_open(const struct tri_index *index, struct tri_mixture *mixture,
                               bool pack, struct tri_order *out);
void tri_order_close(struct tri_order *order);

/* The record at a place of an epoch. */
int64_t tri_order_record(const struct tri_order *order, int64_t epoch, int64_t place);

/* How many sequences an epoch has. */
int64_t tri_order_sequences(const struct tri_order *order, int64_t epoch);

/* The places [*first, *end) of a sequence; false if the epoch does not have it. */
bool tri_order_sequence(struct tri_order *order, int64_t epoch, int64_t sequence, int64_t *first,
                        int64_t *end);

#endif
