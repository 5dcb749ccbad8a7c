/* What a run says of itself: one line a step for people, one JSON object a step in metrics.jsonl.
 */
#ifndef TRI_TRAIN_METRICS_H
#define TRI_TRAIN_METRICS_H

#include "train/run.h"

struct tri_metrics;

/* Open OUTPUT/metrics.jsonl to append; lines of steps after `step` (repeated after a resume) are
 * removed first. */
enum tri_status tri_metrics_open(const char *folder, int64_t step, struct tri_metrics **out);
void tri_metrics_close(struct tri_metrics *metrics);

/* One finished step. `seconds` is wall time, `print` whether people see it. */
enum tri_status tri_metrics_step(struct tri_metrics *metrics, const struct tri_run *run,
                                 const struct tri_step_stats *stats, double seconds, bool print);

/* An evaluation after the current step. */
enum tri_status tri_metrics_eval(struct tri_metrics *metrics, const struct tri_run *run,
                                 const struct tri_eval_result *result);

/* Force what was written to the disk. */
enum tri_status tri_metrics_sync(struct tri_metrics *metrics);

#endif
