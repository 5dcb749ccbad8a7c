#include "train/work.h"

#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/heartbeat.h"
#include "train/run.h"

static const char then_save[] = ", then saving";

/* Seconds until what began at `start` is done, when it goes on as it did so far; or no number. */
static double seconds_left(double start, double part_done)
{
    return (tri_clock() - start) * (1 - part_done) / part_done;
}

void tri_work_step(struct tri_run *run, int64_t micro_batches)
{
    struct tri_work *w = &run->work;
    w->evaluating = false;
    w->pieces = micro_batches;
    w->piece = -1;
    w->start = w->piece_start = tri_clock();
    tri_heartbeat_stop_after(run->heartbeat, "this step", then_save,
                             w->step_seconds > 0 ? w->start + w->step_seconds : NAN);
}

void tri_work_eval(struct tri_run *run, int64_t sequences, int64_t rounds)
{
    struct tri_work *w = &run->work;
    w->evaluating = true;
    w->sequences = sequences;
    w->pieces = rounds;
    w->start = tri_clock();
}

void tri_work_sequence(struct tri_run *run, int64_t sequence, int64_t round)
{
    struct tri_work *w = &run->work;
    w->piece = round;
    w->sequence = sequence + 1;
    w->piece_start = tri_clock();
    tri_heartbeat_stop_after(run->heartbeat, "this sequence of the evaluation", then_save, NAN);
    tri_heartbeat_say(run->heartbeat, "evaluating: sequence %" PRId64 "/%" PRId64, w->sequence,
                      w->sequences);
}

void tri_work_end(struct tri_run *run)
{
    if (!run->work.evaluating)
        run->work.step_seconds = tri_clock() - run->work.start;
    tri_heartbeat_stop_after(run->heartbeat, NULL, NULL, NAN);
    tri_heartbeat_rest(run->heartbeat);
    tri_progress_end();
}

/* The first units of a step say little of it; the last step says more. */
static double end_of_step(const struct tri_work *w, double part_done)
{
    const double part = ((double)w->piece + part_done) / (double)w->pieces;
    if (part < 0.05 && w->step_seconds > 0)
        return w->start + w->step_seconds;
    return tri_clock() + seconds_left(w->start, part);
}

static void report_step(struct tri_run *run, const char *phase, int64_t layer, int64_t chunk,
                        double part_done)
{
    struct tri_work *w = &run->work;
    char eta[24];
    if (part_done <= 0) {
        w->piece++;
        w->piece_start = tri_clock();
    }
    tri_heartbeat_stop_after(run->heartbeat, "this step", then_save, end_of_step(w, part_done));
    tri_heartbeat_say(run->heartbeat,
                      "step %" PRId64 ": %s, layer %" PRId64 "/%" PRId64 ", chunk %" PRId64
                      ", %.0f%% of the micro-batch, eta %s",
                      run->state.step + 1, phase, layer + 1, run->model->arch.num_layers, chunk + 1,
                      100.0 * part_done,
                      tri_duration_text(seconds_left(w->piece_start, part_done), eta));
}

static void report_eval(struct tri_run *run, int64_t layer, int64_t chunk, double part_done)
{
    const struct tri_work *w = &run->work;
    char eta[24];
    const double part = ((double)w->piece + part_done) / (double)w->pieces;
    tri_heartbeat_stop_after(run->heartbeat, "this sequence of the evaluation", then_save,
                             tri_clock() + seconds_left(w->piece_start, part_done));
    tri_heartbeat_say(run->heartbeat,
                      "evaluating: sequence %" PRId64 "/%" PRId64 ", layer %" PRId64 "/%" PRId64
                      ", chunk %" PRId64 ", %.0f%% of the evaluation, eta %s",
                      w->sequence, w->sequences, layer + 1, run->model->arch.num_layers, chunk + 1,
                      100.0 * part, tri_duration_text(seconds_left(w->start, part), eta));
}

void tri_run_report(void *ctx, const char *phase, int64_t layer, int64_t chunk, double part_done)
{
    struct tri_run *run = ctx;
    if (run->work.evaluating)
        report_eval(run, layer, chunk, part_done);
    else
        report_step(run, phase, layer, chunk, part_done);
}
