#include "data/mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* "data" and "part": they keep these random numbers apart from others of the same seed. */
static const uint64_t order_tag = UINT64_C(0x64617461) << 24;
static const uint64_t part_tag = UINT64_C(0x70617274) << 24;

enum tri_status tri_mixture_open(const struct tri_mixture_part *parts, int64_t num_parts,
                                 uint64_t seed, bool shuffle, struct tri_mixture *out)
{
    struct tri_mixture mixture = {.num_parts = num_parts, .seed = seed, .shuffle = shuffle};
    double least = 0, most = 0;
    for (int64_t i = 0; i < num_parts; i++) {
        least += floor((double)parts[i].count * parts[i].weight);
        most += (double)parts[i].count * parts[i].weight;
    }
    /* Whole numbers are exact in a double up to 2^53, and some epochs have to come before that. */
    if (!(most < 0x1p40))
        return tri_fail(TRI_INVALID, "data.weights make %g samples an epoch: lower them", most);
    if (least < 1)
        return tri_fail(TRI_INVALID,
                        "data.weights leave some epoch without a sample (%g samples in all): raise "
                        "them",
                        most);
    mixture.parts = malloc((size_t)num_parts * sizeof *mixture.parts);
    if (!mixture.parts)
        return tri_fail(TRI_NOMEM, "no memory for a mixture");
    memcpy(mixture.parts, parts, (size_t)num_parts * sizeof *mixture.parts);
    *out = mixture;
    return TRI_OK;
}

void tri_mixture_close(struct tri_mixture *mixture)
{
    free(mixture->parts);
    memset(mixture, 0, sizeof *mixture);
}

/* Places of a part before an epoch begins. */
static int64_t places_before(const struct tri_mixture_part *part, int64_t epoch)
{
    if (part->weight == 1)
        return part->count * epoch;
    return (int64_t)floor((double)epoch * ((double)part->count * part->weight));
}

static int64_t places_of(const struct tri_mixture_part *part, int64_t epoch)
{
    return places_before(part, epoch + 1) - places_before(part, epoch);
}

int64_t tri_mixture_places(const struct tri_mixture *mixture, int64_t epoch)
{
    int64_t places = 0;
    for (int64_t i = 0; i < mixture->num_parts; i++)
        places += places_of(&mixture->parts[i], epoch);
    return places;
}

int64_t tri_mixture_most_places(const struct tri_mixture *mixture)
{
    int64_t places = 0;
    for (int64_t i = 0; i < mixture->num_parts; i++)
        places += (int64_t)ceil((double)mixture->parts[i].count * mixture->parts[i].weight);
    return places;
}

bool tri_mixture_is_even(const struct tri_mixture *mixture)
{
    for (int64_t i = 0; i < mixture->num_parts; i++)
        if (mixture->parts[i].weight != floor(mixture->parts[i].weight))
            return false;
    return true;
}

/* The record at a place of the endless walk through a part. */
static int64_t record_of(const struct tri_mixture *mixture, int64_t number, int64_t place)
{
    const struct tri_mixture_part *part = &mixture->parts[number];
    const int64_t pass = place / part->count;
    int64_t at = place % part->count;
    if (mixture->shuffle && part->weight != 1) /* else the order of the epoch does it */
        at = tri_rng_permute(mixture->seed, (part_tag ^ (uint64_t)number) + ((uint64_t)pass << 20),
                             part->count, at);
    return part->first + at;
}

int64_t tri_mixture_record(const struct tri_mixture *mixture, int64_t epoch, int64_t place)
{
    if (mixture->shuffle)
        place = tri_rng_permute(mixture->seed, order_tag ^ (uint64_t)epoch,
                                tri_mixture_places(mixture, epoch), place);
    int64_t i = 0;
    for (int64_t places; i < mixture->num_parts - 1; i++, place -= places) {
        places = places_of(&mixture->parts[i], epoch);
        if (place < places)
            break;
    }
    return record_of(mixture, i, places_before(&mixture->parts[i], epoch) + place);
}
