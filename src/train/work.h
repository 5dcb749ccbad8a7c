/* What a run is at: a step or an evaluation, and how far it is. For progress lines and for whoever
 * asks the run to stop. */
#ifndef TRI_TRAIN_WORK_H
#define TRI_TRAIN_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct tri_run;

struct tri_work {
    bool evaluating;           /* an evaluation, else a step */
    int64_t piece, pieces;     /* micro-batches of the step, or rounds of sequences; of this rank */
    int64_t sequence;          /* that is being evaluated, from 1, ... */
    int64_t sequences;         /* ... and how many there are */
    double start, piece_start; /* clocks */
    double step_seconds;       /* that the last step took, or 0 */
};

/* A step of `micro_batches` begins, or an evaluation of `sequences` in so many rounds. */
void tri_work_step(struct tri_run *run, int64_t micro_batches);
void tri_work_eval(struct tri_run *run, int64_t sequences, int64_t rounds);

/* A sequence (from 0) of the evaluation begins. Micro-batches begin with their first report. */
void tri_work_sequence(struct tri_run *run, int64_t sequence, int64_t round);

/* The step or the evaluation is over, well or not. */
void tri_work_end(struct tri_run *run);

/* Print where the work is, for struct tri_pass_progress; ctx is a struct tri_run. */
void tri_run_report(void *ctx, const char *phase, int64_t layer, int64_t chunk, double part_done);

#endif
