/* AdamW over flat buffers laid out like the parameters, and the global norm that clips it. */
#ifndef TRI_OPTIM_OPTIMIZER_H
#define TRI_OPTIM_OPTIMIZER_H

#include "backend/backend.h"
#include "model/arch.h"
#include "optim/options.h"

struct tri_optimizer {
    struct tri_exec exec;
    const struct tri_model *model;
    struct tri_optim_options options;
    enum tri_dtype act, stat;
    void *weights; /* flat, act */
    void *master;  /* flat, stat; the weights themselves when act is stat */
    void *m, *v;   /* flat, stat: moments */
    void *grads;   /* flat, stat */
    int64_t step;  /* updates done */
    double *norm2; /* in backend memory */
};

/* Take memory for the moments (zero) and, when the weights have fewer bits, for a master copy. */
enum tri_status tri_optimizer_open(struct tri_exec exec, const struct tri_model *model,
                                   const struct tri_optim_options *options, enum tri_dtype act,
                                   enum tri_dtype stat, void *weights, void *grads,
                                   struct tri_optimizer *out);

/* L2 norm over all gradients. Waits. */
enum tri_status tri_optimizer_grad_norm(struct tri_optimizer *o, double *norm);

/* One update: step += 1; gradients are multiplied by `grad_scale` first (clipping). Weight decay
 * applies to parameters of two or more dimensions. */
enum tri_status tri_optimizer_update(struct tri_optimizer *o, double lr, double grad_scale);

/* Set all gradients to zero. */
enum tri_status tri_optimizer_zero_grads(struct tri_optimizer *o);

#endif
