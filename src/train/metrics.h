/* What a run says of itself: one line a step for people, one row a step in the files of the output
 * folder: metrics.jsonl always, metrics.csv and tensorboard/ when `report_to` asks for them. */
#ifndef TRI_TRAIN_METRICS_H
#define TRI_TRAIN_METRICS_H

#include "train/run.h"

struct tri_metrics;

/* Open the files of `folder` to append; rows of steps after `step` (repeated after a resume) are
 * removed first. */
enum tri_status tri_metrics_open(const struct tri_train_options *options, const char *folder,
                                 int64_t step, struct tri_metrics **out);
void tri_metrics_close(struct tri_metrics *metrics); /* NULL is allowed */

/* One finished step. `seconds` is wall time, `print` whether people see it. */
enum tri_status tri_metrics_step(struct tri_metrics *metrics, const struct tri_run *run,
                                 const struct tri_step_stats *stats, double seconds, bool print);

/* No step follows the one that was given last: print it, if that was not done. */
void tri_metrics_last_step(struct tri_metrics *metrics, const struct tri_run *run);

/* The parts of a rate (FLOP/s, of the whole job) that a step made use of. NAN if more ran than the
 * rate: then others used the machine while it was measured, and no share of it means anything. */
struct tri_shares {
    double mfu, hfu;
};
struct tri_shares tri_shares_of(const struct tri_step_stats *stats, double seconds, double roof);

/* An evaluation after the current step. */
enum tri_status tri_metrics_eval(struct tri_metrics *metrics, const struct tri_run *run,
                                 const struct tri_eval_result *result);

/* Force what was written to the disk. */
enum tri_status tri_metrics_sync(struct tri_metrics *metrics);

#endif
