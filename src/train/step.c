/* One optimizer step. Read tri_train_step first: it is the whole program.
 *
 * Loss and gradients are sums over everything (micro-batches, documents, later ranks) divided by
 * the one number N of trained tokens of the whole step, which is known before the first backward.
 * So nothing is ever a mean of means, and nothing is scaled to cancel anything else. */
#include <math.h>

#include "base/clock.h"
#include "train/flops.h"
#include "train/trainer.h"

/* How many ranks hold the same batches as this one. */
static int copies(const struct tri_trainer *t)
{
    return t->sequence != NULL ? t->sequence->size : 1;
}

/* Tokens and trained tokens of the step over all ranks. Every rank of a sequence group counts the
 * same batches. */
static enum tri_status count_tokens(const struct tri_trainer *t, const struct tri_batch *batches,
                                    int64_t count, int64_t *tokens, int64_t *trained)
{
    int64_t sums[2] = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        sums[0] += batches[i].num_tokens;
        sums[1] += batches[i].num_trained;
    }
    if (t->world != NULL)
        TRI_TRY(tri_comm_sum_int(t->world, sums, 2));
    *tokens = sums[0] / copies(t);
    *trained = sums[1] / copies(t);
    return TRI_OK;
}

/* Of the whole job, like the tokens. */
static enum tri_status count_flops(const struct tri_trainer *t, const struct tri_batch *batches,
                                   int64_t count, struct tri_step_stats *stats)
{
    tri_step_flops(t->pass, batches, count, stats);
    if (t->world == NULL)
        return TRI_OK;
    double sums[2] = {stats->model_flops, stats->ran_flops};
    TRI_TRY(tri_comm_sum_double(t->world, sums, 2));
    stats->model_flops = sums[0] / copies(t);
    stats->ran_flops = sums[1] / copies(t);
    return TRI_OK;
}

/* Forward, loss and backward of one micro-batch; gradients accumulate. */
static enum tri_status micro_step(struct tri_trainer *t, const struct tri_batch *batch,
                                  double scale, struct tri_step_stats *stats)
{
    double start = tri_clock();
    TRI_TRY(tri_pass_begin(t->pass, batch, true)); /* tokens   -> ids on the device, room      */
    TRI_TRY(tri_pass_forward(t->pass));            /* ids      -> hidden states (S, E)         */
    TRI_TRY(t->exec.ops->sync(t->exec.stream));
    double middle = tri_clock();
    TRI_TRY(tri_pass_loss(t->pass, scale)); /* hidden   -> loss sum, d hidden           */
    TRI_TRY(tri_pass_backward(t->pass));    /* d hidden -> d parameters, +=             */
    TRI_TRY(t->exec.ops->sync(t->exec.stream));
    tri_pass_end(t->pass);
    stats->forward_s += middle - start;
    stats->backward_s += tri_clock() - middle;
    return TRI_OK;
}

/* How often this rank runs a micro-step. Replicas may have different numbers of micro-batches; the
 * last of them, and from stage 2 each, takes collectives of all ranks, so those with fewer go
 * through empty ones. */
static enum tri_status count_rounds(const struct tri_trainer *t, int64_t count, int64_t *rounds)
{
    *rounds = count;
    return t->world == NULL ? TRI_OK : tri_comm_max_int(t->world, rounds, 1);
}

enum tri_status tri_train_gradients(struct tri_trainer *t, const struct tri_batch *batches,
                                    int64_t count, struct tri_step_stats *out)
{
    struct tri_step_stats stats = {0};
    TRI_TRY(count_tokens(t, batches, count, &stats.tokens, &stats.trained));
    if (stats.trained == 0)
        return tri_fail(TRI_INVALID, "a step of %lld tokens has none to train on: check the labels",
                        (long long)stats.tokens);
    static const int64_t no_documents[] = {0};
    const struct tri_batch empty = {.doc_begin = (int64_t *)(uintptr_t)no_documents};
    double loss_sum;
    int64_t rounds;
    TRI_TRY(count_rounds(t, count, &rounds));
    TRI_TRY(tri_zero_clear_grads(t->zero));
    TRI_TRY(tri_pass_loss_reset(t->pass));
    for (int64_t i = 0; i < rounds; i++) {
        if (i == rounds - 1)
            tri_zero_complete_grads(t->zero);
        TRI_TRY(
            micro_step(t, i < count ? &batches[i] : &empty, 1.0 / (double)stats.trained, &stats));
    }
    TRI_TRY(tri_pass_loss_read(t->pass, &loss_sum));
    if (t->world != NULL)
        TRI_TRY(tri_comm_sum_double(t->world, &loss_sum, 1));
    stats.loss = loss_sum / (double)stats.trained;
    /* Nothing is scaled: each rank's already are a part of d(loss sum)/N. */
    TRI_TRY(tri_zero_join_grads(t->zero));
    TRI_TRY(tri_zero_grad_norm(t->zero, &stats.grad_norm));
    TRI_TRY(count_flops(t, batches, count, &stats));
    *out = stats;
    return TRI_OK;
}

enum tri_status tri_train_update(struct tri_trainer *t, double lr, struct tri_step_stats *stats)
{
    if (!isfinite(stats->loss) || !isfinite(stats->grad_norm))
        return tri_fail(TRI_NONFINITE,
                        "step %lld: loss %g, gradient norm %g: stopped before the update, nothing "
                        "was saved; %s",
                        (long long)t->optimizer.step + 1, fabs(stats->loss), fabs(stats->grad_norm),
                        t->optimizer.step > 0
                            ? "lower optimizer.learning_rate or look at this step's data"
                            : "no update was made before, so a weight of the model is not finite, "
                              "or this step's data are at fault");
    double start = tri_clock();
    double grad_scale =
        t->clip > 0 && stats->grad_norm > t->clip ? t->clip / stats->grad_norm : 1.0;
    TRI_TRY(tri_optimizer_update(&t->optimizer, lr, grad_scale));
    TRI_TRY(tri_zero_share_weights(t->zero));
    TRI_TRY(t->exec.ops->sync(t->exec.stream));
    stats->update_s = tri_clock() - start;
    stats->lr = lr;
    return TRI_OK;
}

enum tri_status tri_train_step(struct tri_trainer *t, const struct tri_batch *batches,
                               int64_t count, double lr, struct tri_step_stats *out)
{
    struct tri_step_stats stats;
    TRI_TRY(tri_train_gradients(t, batches, count, &stats));
    TRI_TRY(tri_train_update(t, lr, &stats));
    *out = stats;
    return TRI_OK;
}

enum tri_status tri_train_eval(struct tri_trainer *t, const struct tri_batch *batch,
                               double *loss_sum, int64_t *trained)
{
    struct tri_pass *pass = t->eval_pass;
    struct tri_comm *sequence = pass->net.exchange.comm;
    TRI_TRY(tri_pass_loss_reset(pass));
    TRI_TRY(tri_pass_begin(pass, batch, false));
    TRI_TRY(tri_pass_forward(pass));
    TRI_TRY(tri_pass_loss(pass, 0.0));
    TRI_TRY(tri_pass_loss_read(pass, loss_sum));
    tri_pass_end(pass);
    if (sequence != NULL)
        TRI_TRY(tri_comm_sum_double(sequence, loss_sum, 1));
    *trained = batch->num_trained;
    return TRI_OK;
}
