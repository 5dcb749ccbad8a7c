/* The learning rate of each step. */
#ifndef TRI_OPTIM_SCHEDULE_H
#define TRI_OPTIM_SCHEDULE_H

#include "base/status.h"
#include "optim/options.h"

struct tri_schedule_plan {
    enum tri_schedule name;
    double peak;  /* optimizer.learning_rate */
    double floor; /* min_lr_ratio * peak */
    int64_t total_steps;
    int64_t warmup_steps;
    int64_t decay_steps; /* wsd: the last steps of the run */
};

/* Resolve ratios against the number of steps. A warm-up longer than the run is TRI_INVALID. */
enum tri_status tri_schedule_resolve(const struct tri_schedule_options *options, double peak,
                                     int64_t total_steps, struct tri_schedule_plan *out);

/* Learning rate of update `step`, 1 <= step <= total_steps. Warm-up rises linearly and reaches the
 * peak at step warmup_steps; then, with x in [0, 1] the part of the remaining run that is done
 * before this step,
 *   constant  peak
 *   linear    peak - (peak - floor) x
 *   cosine    floor + (peak - floor) (1 + cos(pi x)) / 2
 *   wsd       peak, then linear to the floor over the last decay_steps (Hu et al. 2024)          */
double tri_schedule_rate(const struct tri_schedule_plan *plan, int64_t step);

#endif
