/* How the flat buffers of a model are divided among ranks (ZeRO, Rajbhandari et al. 2020).
 *
 * A unit (the embedding, each layer, the final norm with the head) is what is gathered, used and
 * freed together. Each unit is lengthened with zeros to a multiple of 64 elements a rank, and rank
 * r holds part r of each unit, so that one collective of equal parts gathers or reduces a unit in
 * place. A rank's own buffer is its parts one after the other, which optimizers take for one flat
 * buffer. With one rank a part is the unit, and both kinds of buffer are laid out as the model. */
#ifndef TRI_ZERO_PARTITION_H
#define TRI_ZERO_PARTITION_H

#include <stdbool.h>

#include "model/arch.h"

struct tri_zero_unit {
    int64_t full; /* first element in a buffer of everything */
    int64_t own;  /* first element in a rank's own buffer */
    int64_t part; /* elements of each rank's part */
};

struct tri_partition {
    const struct tri_model *model; /* must outlive it */
    int ranks, rank;
    struct tri_zero_unit *units; /* (model->num_units) */
    int64_t full_elements;       /* of a buffer of everything, padding included */
    int64_t own_elements;        /* of a rank's own buffer */
};

enum tri_status tri_partition_open(const struct tri_model *model, int ranks, int rank,
                                   struct tri_partition *out);
void tri_partition_close(struct tri_partition *partition);

/* Elements of this rank that lie together in every buffer and share one rule of weight decay. */
struct tri_own_run {
    int64_t full, own; /* first element in a buffer of everything, and in the own buffer */
    int64_t count;
    bool decay;
};

/* The runs in the order of the own buffer, which they fill. *param starts as 0; false at the end.
 */
bool tri_partition_next_run(const struct tri_partition *partition, int *param,
                            struct tri_own_run *out);

#endif
