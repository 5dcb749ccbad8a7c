/* `optimizer.*` and `scheduler.*` of a recipe, and gradient_clipping. */
#ifndef TRI_OPTIM_OPTIONS_H
#define TRI_OPTIM_OPTIONS_H

#include <stdint.h>

#include "base/option.h"

struct tri_optim_options {
    char *type;           /* adamw (adam, fusedadam, cpu_adam mean the same: decay is decoupled) */
    double learning_rate; /* required: there is no default */
    double weight_decay;  /* 0.1, on parameters of two or more dimensions */
    double beta1, beta2;  /* betas: [0.9, 0.999] */
    double eps;           /* 1e-8 */
};

enum tri_schedule {
    TRI_SCHEDULE_CONSTANT,
    TRI_SCHEDULE_LINEAR,
    TRI_SCHEDULE_COSINE,
    TRI_SCHEDULE_WSD
};

struct tri_schedule_options {
    int name;             /* enum tri_schedule; linear */
    double warmup_ratio;  /* of all steps; 0.1; used when warmup_steps is -1 */
    int64_t warmup_steps; /* -1: by ratio */
    double min_lr_ratio;  /* the floor as a part of learning_rate; 0 */
    double decay_ratio;   /* wsd: the part of all steps that decays; 0.1 */
};

extern const struct tri_option_table tri_optim_option_table;    /* optimizer.* */
extern const struct tri_option_table tri_schedule_option_table; /* scheduler.* */

#endif
