#include "train/length.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"

/* Do the steps that are left have other learning rates than they would have had? `next` is the
 * first of them. Schedules of two lengths that differ at all differ there, or where the shorter
 * ends. */
static bool rates_differ(const struct tri_schedule_plan *a, const struct tri_schedule_plan *b,
                         int64_t next)
{
    int64_t end = a->total_steps < b->total_steps ? a->total_steps : b->total_steps;
    return tri_schedule_rate(a, next) != tri_schedule_rate(b, next) ||
           (end > next && tri_schedule_rate(a, end) != tri_schedule_rate(b, end));
}

static enum tri_status compare_length(const struct tri_run *run, const struct tri_recipe *before)
{
    const struct tri_train_options *was = &before->train;
    const struct tri_train_options *is = &run->recipe->train;
    int64_t next = run->state.step + 1;
    int64_t total = was->train_iters;
    struct tri_schedule_plan plan;
    char change[128];
    if (total <= 0)
        TRI_TRY(tri_loader_steps(run->loader, was->epochs, &total));
    if (total == run->schedule.total_steps || next > run->schedule.total_steps)
        return TRI_OK;
    TRI_TRY(
        tri_schedule_resolve(&before->scheduler, before->optimizer.learning_rate, total, &plan));
    if (!rates_differ(&plan, &run->schedule, next))
        return TRI_OK;
    if (was->train_iters > 0 && is->train_iters > 0)
        snprintf(change, sizeof change, "train_iters was %" PRId64 " and is %" PRId64,
                 was->train_iters, is->train_iters);
    else if (was->train_iters <= 0 && is->train_iters <= 0)
        snprintf(change, sizeof change, "epochs was %g and is %g", was->epochs, is->epochs);
    else
        snprintf(change, sizeof change, "the run had %" PRId64 " steps and has %" PRId64, total,
                 run->schedule.total_steps);
    tri_warn("%s: learning rates from step %" PRId64 " on follow the new length", change, next);
    return TRI_OK;
}

void tri_length_warn_steps(const struct tri_run *run)
{
    const struct tri_train_options *o = &run->recipe->train;
    const double per_step = (double)o->micro_batch_size * (double)o->gradient_accumulation_steps *
                            (double)run->mesh.num_replicas;
    const double taken = per_step * (double)run->schedule.total_steps;
    const double epoch = (double)tri_dataset_sequences(run->data, 0);
    char asked[64] = "";
    if (per_step > epoch) {
        if (o->train_iters <= 0)
            snprintf(asked, sizeof asked, ", %.1f in all where epochs is %g", taken / epoch,
                     o->epochs);
        tri_warn("one step takes %.0f sequences and an epoch has %.0f: a step passes over the data "
                 "%.1f times%s; lower gradient_accumulation_steps or micro_batch_size",
                 per_step, epoch, per_step / epoch, asked);
    } else if (o->train_iters <= 0 && taken > tri_loader_sequences(run->loader, o->epochs)) {
        tri_info("the last step is filled up with %.0f of its %.0f sequences from the next epoch",
                 taken - tri_loader_sequences(run->loader, o->epochs), per_step);
    }
}

enum tri_status tri_length_warn(const struct tri_run *run)
{
    char path[4096];
    struct tri_recipe *before = NULL;
    int n = snprintf(path, sizeof path, "%s/checkpoint-%" PRId64 "/recipe.yml",
                     run->recipe->checkpoint.output_dir, run->state.step);
    if (n < 0 || n >= (int)sizeof path)
        return tri_fail(TRI_INVALID, "checkpoint.output_dir: the path is too long");
    TRI_TRY(tri_recipe_open(path, 0, NULL, &before));
    enum tri_status st = compare_length(run, before);
    tri_recipe_close(before);
    return st;
}
