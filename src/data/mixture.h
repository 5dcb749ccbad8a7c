/* How often the samples of each source are seen: weights of a mixture.
 *
 * A source of n records and weight w gives n * w places to an epoch: 1 is every record once, 2
 * twice, 0.5 half of them. Its places go on from epoch to epoch through permutations of the source,
 * so a record is seen again only when all others of its source have been: after any number of
 * epochs the counts of two records differ by at most one, and with 0.5 two epochs see everything
 * once.
 *
 * The record at a place is a function of (seed, epoch, place): nothing is stored, nothing has to be
 * saved to resume. */
#ifndef TRI_DATA_MIXTURE_H
#define TRI_DATA_MIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Records [first, first + count) of the index come from one source. */
struct tri_mixture_part {
    int64_t first, count;
    double weight; /* above 0 */
};

struct tri_mixture {
    struct tri_mixture_part *parts;
    int64_t num_parts;
    uint64_t seed;
    bool shuffle;
};

/* The parts are copied. Every epoch must have a place. */
enum tri_status tri_mixture_open(const struct tri_mixture_part *parts, int64_t num_parts,
                                 uint64_t seed, bool shuffle, struct tri_mixture *out);
void tri_mixture_close(struct tri_mixture *mixture);

/* Places of an epoch, and the most that any epoch has. */
int64_t tri_mixture_places(const struct tri_mixture *mixture, int64_t epoch);
int64_t tri_mixture_most_places(const struct tri_mixture *mixture);

/* Does every epoch have the same records? */
bool tri_mixture_is_even(const struct tri_mixture *mixture);

/* The record at a place of an epoch. */
int64_t tri_mixture_record(const struct tri_mixture *mixture, int64_t epoch, int64_t place);

#endif
