/* Packing: which samples share a sequence.
 *
 * Best-fit decreasing: the longest sample first, each into the sequence with the least room that is
 * still enough, into a new one when there is none. It never needs more than 11/9 of the fewest
 * sequences possible, plus one (Johnson 1973), and on real lengths it leaves about nothing free.
 * Samples of the same length are taken in their order, so the result depends on nothing else.
 *
 * A sample is found its place in constant time: of every amount of room it is known whether a
 * sequence has just that much (a set of bits, 64 to a word, in levels), and which. */
#ifndef TRI_DATA_PACK_H
#define TRI_DATA_PACK_H

#include <stdint.h>

#include "base/status.h"

struct tri_packing {
    int64_t *item;  /* (count) numbers of samples, those of a sequence together and ascending */
    int64_t *begin; /* (num_bins + 1) sequence b holds item[begin[b]] to item[begin[b + 1] - 1] */
    int64_t num_bins;
    /* Private from here: memory for the next packing. */
    int64_t most;
    int64_t capacity; /* of a sequence */
    int64_t *bin;     /* (most) where each sample went */
    int64_t *next;    /* (most) sequences with the same room, linked */
    int64_t *head;    /* (capacity + 1) the first of them, or -1 */
    uint64_t *bits[5];
};

/* Take all memory that packing up to `most` samples into sequences of `capacity` tokens needs: 32
 * bytes a sample and 8 bytes a token of one sequence. Nothing is allocated later. */
enum tri_status tri_packing_open(int64_t most, int64_t capacity, struct tri_packing *out);
void tri_packing_close(struct tri_packing *packing);

/* Pack samples 0 to count - 1 of the given lengths, each from 1 to the capacity. Sequences come in
 * the order of their first samples. */
void tri_pack_best_fit(struct tri_packing *packing, const int64_t *lengths, int64_t count);

/* The same the simple way: each sequence takes the next samples while they fit. */
void tri_pack_in_order(struct tri_packing *packing, const int64_t *lengths, int64_t count);

#endif
