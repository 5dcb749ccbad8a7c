/* Evaluation: the same forward as training, over every sequence of data.eval_sources. */
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/run.h"

enum tri_status tri_run_eval(struct tri_run *run, struct tri_eval_result *out)
{
    struct tri_eval_result r = {.sequences = tri_dataset_sequences(run->eval, 0)};
    struct tri_batch batch;
    double start = tri_clock();
    double sum = 0;
    TRI_TRY(tri_batch_open(tri_dataset_max_sequence(run->eval), &batch));
    enum tri_status st = TRI_OK;
    run->evaluating = true;
    for (int64_t i = 0; i < r.sequences; i++) {
        double loss;
        int64_t trained;
        tri_batch_clear(&batch);
        TRI_TRY_GOTO(st, tri_dataset_read(run->eval, 0, i, &batch), close_batch);
        TRI_TRY_GOTO(st, tri_train_eval(run->trainer, &batch, &loss, &trained), close_batch);
        sum += loss;
        r.trained += trained;
        r.tokens += batch.num_tokens;
        tri_progress("evaluating: sequence %" PRId64 "/%" PRId64, i + 1, r.sequences);
    }
    tri_progress_end();
    if (r.trained == 0) {
        st = tri_fail(TRI_INVALID, "data.eval_sources hold no trained token");
        goto close_batch;
    }
    if (!isfinite(sum)) {
        st = tri_fail(TRI_NONFINITE,
                      "the loss on data.eval_sources is %g: lower optimizer.learning_rate, or look "
                      "at the weights and the data",
                      sum);
        goto close_batch;
    }
    r.loss = sum / (double)r.trained;
    r.seconds = tri_clock() - start;
    *out = r;
close_batch:
    run->evaluating = false;
    tri_batch_close(&batch);
    return st;
}
