/* `rehearse`: a step at full length with every allocation made and touched, in seconds. */
#ifndef TRI_VERIFY_REHEARSE_H
#define TRI_VERIFY_REHEARSE_H

#include "recipe/recipe.h"
#include "train/memory.h"

struct tri_rehearsal {
    struct tri_memory_plan plan; /* counted beforehand */
    int64_t tokens;              /* of one micro-batch */
    int64_t ranks;               /* of which this is the first */
    int zero_stage;              /* what they divide among them */
    uint64_t trace;              /* of what the rehearsal allocated; equals plan.trace */
    size_t arena_peak;           /* bytes; equals plan.total */
    size_t rss_peak;             /* of the process */
    size_t available;            /* bytes that a run could take */
    double seconds;
};

/* With several ranks, what the first of them would take: its share of the sequence.
 *
 * Every op runs on its first tile, and every page that it would have written to is touched. Needs
 * config.json and data.max_length, but neither weights nor data. */
enum tri_status tri_rehearse(struct tri_recipe *recipe, struct tri_rehearsal *out);

#endif
