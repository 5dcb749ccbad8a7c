/* AdamW over flat buffers laid out like the parameters. */
#ifndef TRI_OPTIM_OPTIMIZER_H
#define TRI_OPTIM_OPTIMIZER_H

#include "optim/options.h"
#include "zero/zero.h"

/* State is kept for the own part of the parameters alone. */
struct tri_optimizer {
    struct tri_exec exec;
    struct tri_zero *zero; /* weights and gradients; not owned */
    struct tri_optim_options options;
    void *master; /* own buffer, stat; the weights themselves when act is stat */
    void *m, *v;  /* own buffers, stat: moments */
    int64_t step; /* updates done */
};

/* Take memory for the moments (zero) and, when the weights have fewer bits, for a master copy. */
enum tri_status tri_optimizer_open(struct tri_exec exec, struct tri_zero *zero,
                                   const struct tri_optim_options *options,
                                   struct tri_optimizer *out);

/* One update of the own part: step += 1; gradients are multiplied by `grad_scale` first (clipping).
 * Weight decay applies to parameters of two or more dimensions. */
enum tri_status tri_optimizer_update(struct tri_optimizer *o, double lr, double grad_scale);

#endif
