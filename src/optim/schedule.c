#include "optim/schedule.h"

#include <math.h>

enum tri_status tri_schedule_resolve(const struct tri_schedule_options *options, double peak,
                                     int64_t total_steps, struct tri_schedule_plan *out)
{
    struct tri_schedule_plan plan = {.name = (enum tri_schedule)options->name,
                                     .peak = peak,
                                     .floor = options->min_lr_ratio * peak,
                                     .total_steps = total_steps};
    plan.warmup_steps = options->warmup_steps >= 0
                            ? options->warmup_steps
                            : (int64_t)ceil(options->warmup_ratio * (double)total_steps);
    plan.decay_steps = (int64_t)ceil(options->decay_ratio * (double)total_steps);
    if (plan.warmup_steps > total_steps)
        return tri_fail(
            TRI_INVALID,
            "scheduler.warmup_steps: %lld is more than the %lld steps of this run; lower "
            "it or set scheduler.warmup_ratio",
            (long long)plan.warmup_steps, (long long)total_steps);
    *out = plan;
    return TRI_OK;
}

static double part_done(int64_t step, int64_t begin, int64_t total)
{
    return total > begin ? (double)(step - 1 - begin) / (double)(total - begin) : 0.0;
}

double tri_schedule_rate(const struct tri_schedule_plan *p, int64_t step)
{
    const double pi = 3.14159265358979323846;
    double fall = p->peak - p->floor;
    if (step <= p->warmup_steps)
        return p->peak * (double)step / (double)p->warmup_steps;
    double x = part_done(step, p->warmup_steps, p->total_steps);
    switch (p->name) {
    case TRI_SCHEDULE_CONSTANT:
        return p->peak;
    case TRI_SCHEDULE_LINEAR:
        return p->peak - fall * x;
    case TRI_SCHEDULE_COSINE:
        return p->floor + fall * 0.5 * (1.0 + cos(pi * x));
    case TRI_SCHEDULE_WSD: {
        int64_t begin = p->total_steps - p->decay_steps;
        if (begin < p->warmup_steps)
            begin = p->warmup_steps;
        return step <= begin ? p->peak : p->peak - fall * part_done(step, begin, p->total_steps);
    }
    }
    return p->peak;
}
