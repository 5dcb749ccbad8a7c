/* The loop around the step: data, log, evaluation, checkpoints, stopping.
 *
 * Every rank runs it. The first one alone writes to the output folder and speaks; what depends on a
 * clock or a signal is agreed at each step boundary, so that all ranks do the same. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "train/checkpoint.h"
#include "train/heartbeat.h"
#include "train/length.h"
#include "train/lock.h"
#include "train/metrics.h"
#include "train/stop.h"

/* What only lives while the loop runs. */
struct loop {
    struct tri_run *run;
    bool first;                  /* this rank speaks and saves */
    struct tri_metrics *metrics; /* of the first rank; NULL on the others */
    int lock;
    double last_save; /* clock */
    bool saved;       /* the current step is on disk */
    int64_t begin;    /* steps that were done before this process */
    int64_t stop;     /* the signal that all ranks agreed to obey, or 0 */
};

/* Wait until all ranks are here, at the same step. */
static enum tri_status meet(const struct loop *l, const char *what)
{
    struct tri_comm *world = l->run->mesh.world;
    return world == NULL ? TRI_OK : tri_comm_agree(world, what, l->run->state.step);
}

static enum tri_status take_folder(struct loop *l)
{
    const char *folder = l->run->recipe->checkpoint.output_dir;
    TRI_TRY(tri_make_folder(folder));
    return tri_lock_take(folder, &l->lock);
}

/* Somebody may have removed or renamed the folder meanwhile: then it is made and taken again. */
static enum tri_status keep_folder(struct loop *l)
{
    struct tri_run *run = l->run;
    const char *folder = run->recipe->checkpoint.output_dir;
    if (!l->first || tri_lock_is_of(l->lock, folder))
        return TRI_OK;
    tri_warn("%s was removed or renamed during the run: it is made again, without the metrics up "
             "to step %" PRId64,
             folder, run->state.step);
    tri_metrics_close(l->metrics);
    l->metrics = NULL;
    tri_lock_drop(l->lock);
    l->lock = -1;
    TRI_TRY(take_folder(l));
    return tri_metrics_open(&run->recipe->train, folder, run->state.step, &l->metrics);
}

static enum tri_status save(struct loop *l)
{
    if (l->saved)
        return TRI_OK;
    TRI_TRY(keep_folder(l));
    if (l->first)
        TRI_TRY(tri_metrics_sync(l->metrics));
    tri_heartbeat_stop_after(l->run->heartbeat, "this save", "", NAN);
    TRI_TRY(tri_checkpoint_save(l->run));
    TRI_TRY(meet(l, "the saved step"));
    tri_heartbeat_stop_after(l->run->heartbeat, NULL, NULL, NAN);
    l->saved = true;
    l->last_save = tri_clock();
    return TRI_OK;
}

static bool is_time_to_save(const struct loop *l)
{
    const struct tri_ckpt_options *o = &l->run->recipe->checkpoint;
    int64_t step = l->run->state.step;
    if (o->save_every_n_steps > 0 && step % o->save_every_n_steps == 0)
        return true;
    if (o->save_every_n_minutes > 0 && tri_clock() - l->last_save >= 60 * o->save_every_n_minutes)
        return true;
    return o->save_first_step && step == 1;
}

static void print_eval(const struct tri_run *run, const struct tri_eval_result *r)
{
    tri_info("eval at step %" PRId64 ": loss %.4f, perplexity %.2f over %" PRId64
             " trained token%s of %" PRId64 " sequence%s in %.1f s",
             run->state.step, r->loss, exp(r->loss), r->trained, tri_plural(r->trained),
             r->sequences, tri_plural(r->sequences), r->seconds);
}

static enum tri_status evaluate(struct loop *l)
{
    struct tri_eval_result result;
    int64_t interval = l->run->recipe->train.eval_interval;
    if (interval == 0 || l->run->eval == NULL || l->run->state.step % interval != 0)
        return TRI_OK;
    TRI_TRY(tri_run_eval(l->run, &result));
    if (result.stop != 0)
        return TRI_OK; /* it is obeyed below, as between steps */
    print_eval(l->run, &result);
    return l->metrics == NULL ? TRI_OK : tri_metrics_eval(l->metrics, l->run, &result);
}

/* The next step's data. When a file is gone or was changed the steps that were done are worth
 * saving; with several ranks the others are already waiting in the step, so nobody can. */
static enum tri_status next_data(struct loop *l, struct tri_step_data *data)
{
    enum tri_status st = tri_loader_next(l->run->loader, data);
    if (st == TRI_OK || l->saved || l->run->state.step == 0 || l->run->mesh.world != NULL)
        return st;
    char cause[1024];
    snprintf(cause, sizeof cause, "%s", tri_error_text());
    if (save(l) == TRI_OK)
        return tri_fail(st, "%s (step %" PRId64 " is saved)", cause, l->run->state.step);
    return tri_fail(st, "%s", cause);
}

static bool is_done(const struct tri_run *run)
{
    int64_t exit_at = run->recipe->train.exit_iteration;
    return run->state.step >= run->schedule.total_steps ||
           (exit_at > 0 && run->state.step >= exit_at);
}

/* One step from data to metrics. */
static enum tri_status step(struct loop *l)
{
    struct tri_run *run = l->run;
    const struct tri_train_options *o = &run->recipe->train;
    struct tri_step_data data;
    struct tri_step_stats stats;
    double start = tri_clock();
    if (o->overfit_first_batch)
        TRI_TRY(tri_loader_seek(run->loader, (struct tri_data_position){0, 0}));
    tri_work_step(run, o->gradient_accumulation_steps);
    TRI_TRY(next_data(l, &data));
    double lr = tri_schedule_rate(&run->schedule, run->state.step + 1);
    tri_arena_restart_trace(run->trainer->exec.arena);
    const enum tri_status st =
        tri_train_step(run->trainer, data.batches, data.num_batches, lr, &stats);
    tri_work_end(run);
    TRI_TRY(st);
    struct tri_run_state *s = &run->state;
    s->step++;
    s->tokens += stats.tokens;
    s->trained += stats.trained;
    s->loss_average = s->step == 1 ? stats.loss : 0.95 * s->loss_average + 0.05 * stats.loss;
    s->position = tri_loader_position(run->loader);
    l->saved = false;
    bool print =
        o->log_interval > 0 && (s->step % o->log_interval == 0 || s->step == 1 || is_done(run));
    if (l->metrics == NULL)
        return TRI_OK;
    return tri_metrics_step(l->metrics, run, &stats, tri_clock() - start, print);
}

/* A signal or a clock of one rank is everybody's: look at both, and agree. */
static enum tri_status look_around(struct loop *l, bool *save_now)
{
    int64_t wishes[2] = {tri_stop_requested(), l->first && is_time_to_save(l)};
    if (l->run->mesh.world != NULL)
        TRI_TRY(tri_comm_max_int(l->run->mesh.world, wishes, 2));
    l->stop = wishes[0];
    *save_now = wishes[1] != 0;
    return TRI_OK;
}

static enum tri_status steps(struct loop *l)
{
    bool save_now;
    TRI_TRY(look_around(l, &save_now));
    while (!is_done(l->run) && l->stop == 0) {
        TRI_TRY(step(l));
        TRI_TRY(evaluate(l));
        TRI_TRY(look_around(l, &save_now));
        if (save_now)
            TRI_TRY(save(l));
    }
    return TRI_OK;
}

/* A run that is started again when it was at its end. */
static void say_nothing_left(const struct tri_run *run)
{
    int64_t step = run->state.step;
    int64_t total = run->schedule.total_steps;
    if (step > total)
        tri_info("nothing left to do: %" PRId64 " steps are done, which is more than the %" PRId64
                 " of train_iters or epochs; raise them, or choose another checkpoint.output_dir "
                 "for a run of its own",
                 step, total);
    else if (step == total)
        tri_info("nothing left to do: %" PRId64 " of %" PRId64
                 " steps are done; raise epochs or train_iters",
                 step, total);
    else
        tri_info("nothing left to do: %" PRId64 " of %" PRId64
                 " steps are done and exit_iteration is %" PRId64 "; raise it, or leave it out",
                 step, total, run->recipe->train.exit_iteration);
}

static enum tri_status finish(struct loop *l)
{
    struct tri_run *run = l->run;
    bool nothing_left = l->stop == 0 && run->state.step == l->begin;
    if (nothing_left)
        say_nothing_left(run);
    if (l->stop != 0) {
        if (l->metrics != NULL)
            tri_metrics_last_step(l->metrics, run);
        TRI_TRY(save(l));
        tri_info("stopped by %s after step %" PRId64 "; the same command goes on from here",
                 tri_stop_name((int)l->stop), run->state.step);
        return TRI_OK;
    }
    if (!run->recipe->checkpoint.save_end_of_training)
        return TRI_OK;
    TRI_TRY(save(l));
    if (run->state.step < run->schedule.total_steps) {
        if (nothing_left)
            return TRI_OK;
        tri_info("stopped by exit_iteration after step %" PRId64
                 "; the same command without it, or with a later one, goes on from here",
                 run->state.step);
        return TRI_OK;
    }
    TRI_TRY(keep_folder(l));
    tri_heartbeat_stop_after(run->heartbeat, "the export of the model", "", NAN);
    TRI_TRY(tri_checkpoint_export(run));
    return meet(l, "the exported step");
}

/* The first rank takes the folder, then all go on from what is in it. */
static enum tri_status open_folder(struct loop *l)
{
    struct tri_run *run = l->run;
    const char *folder = run->recipe->checkpoint.output_dir;
    bool resumed;
    if (l->first) {
        TRI_TRY(take_folder(l));
        TRI_TRY(tri_checkpoint_clean(run));
    }
    TRI_TRY(meet(l, "the first step"));
    TRI_TRY(tri_checkpoint_resume(run, &resumed));
    TRI_TRY(meet(l, "the step to resume"));
    l->saved = resumed;
    l->begin = run->state.step;
    l->last_save = tri_clock();
    TRI_TRY(tri_stop_watch());
    if (!l->first)
        return TRI_OK;
    if (resumed)
        TRI_TRY(tri_length_warn(run));
    TRI_TRY(tri_metrics_open(&run->recipe->train, folder, run->state.step, &l->metrics));
    return tri_heartbeat_open(1.0, &run->heartbeat);
}

enum tri_status tri_run_train(struct tri_run *run)
{
    struct loop l = {.run = run, .first = tri_mesh_is_first(&run->mesh), .lock = -1};
    enum tri_status st = open_folder(&l);
    if (st == TRI_OK)
        st = steps(&l);
    if (st == TRI_OK)
        st = finish(&l);
    tri_heartbeat_close(run->heartbeat);
    run->heartbeat = NULL;
    tri_progress_end();
    tri_metrics_close(l.metrics);
    tri_lock_drop(l.lock);
    return st;
}
