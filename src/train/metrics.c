#include "train/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "train/machine.h"
#include "train/metrics/writer.h"

enum { MAX_WRITERS = 3 };

struct tri_metrics {
    struct tri_metric_writer *writer[MAX_WRITERS];
    int count;
    bool roof_doubted;            /* it was said that the measured rate is too low */
    double step_seconds;          /* moving average, for the eta */
    struct tri_step_stats unseen; /* the last step, when it was not printed */
    double unseen_seconds;        /* it took; 0 when it was */
};

/* ---- where it goes -----------------------------------------------------------------------------
 */

static bool is_asked_for(const struct tri_train_options *options, const char *kind)
{
    for (int64_t i = 0; i < options->num_report_to; i++)
        if (strcmp(options->report_to[i], kind) == 0 || strcmp(options->report_to[i], "all") == 0)
            return true;
    return false;
}

enum tri_status tri_metrics_open(const struct tri_train_options *options, const char *folder,
                                 int64_t step, struct tri_metrics **out)
{
    struct tri_metrics *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tri_fail(TRI_NOMEM, "no memory for metrics");
    /* metrics.jsonl always: it is the record of the run. */
    enum tri_status st = tri_jsonl_open(folder, step, &m->writer[m->count]);
    m->count += st == TRI_OK;
    if (st == TRI_OK && is_asked_for(options, "csv")) {
        st = tri_csv_open(folder, step, &m->writer[m->count]);
        m->count += st == TRI_OK;
    }
    if (st == TRI_OK && is_asked_for(options, "tensorboard")) {
        st = tri_tensorboard_open(folder, step, &m->writer[m->count]);
        m->count += st == TRI_OK;
    }
    if (st != TRI_OK) {
        tri_metrics_close(m);
        return st;
    }
    *out = m;
    return TRI_OK;
}

void tri_metrics_close(struct tri_metrics *m)
{
    if (m == NULL)
        return;
    for (int i = 0; i < m->count; i++)
        m->writer[i]->close(m->writer[i]);
    free(m);
}

static enum tri_status write_row(struct tri_metrics *m, const struct tri_metric_row *row)
{
    for (int i = 0; i < m->count; i++)
        TRI_TRY(m->writer[i]->write(m->writer[i], row));
    return TRI_OK;
}

enum tri_status tri_metrics_sync(struct tri_metrics *m)
{
    for (int i = 0; i < m->count; i++)
        TRI_TRY(m->writer[i]->sync(m->writer[i]));
    return TRI_OK;
}

/* ---- one step -------------------------------------------------------------------------------- */

/* "1.05M", "131.1k", "512": token counts for people. */
static char *count_text(double n, char *text)
{
    if (n >= 1e9)
        snprintf(text, 24, "%.2fG", n / 1e9);
    else if (n >= 1e6)
        snprintf(text, 24, "%.2fM", n / 1e6);
    else if (n >= 1e4)
        snprintf(text, 24, "%.1fk", n / 1e3);
    else
        snprintf(text, 24, "%.0f", n);
    return text;
}

/* Rate of a product on all ranks together. */
static double job_roof(const struct tri_run *run)
{
    int ranks = run->mesh.world != NULL ? run->mesh.world->size : 1;
    return run->roof_flops * (double)ranks;
}

static size_t peak_bytes(const struct tri_run *run)
{
    return tri_machine_peak(run->backend, run->trainer->exec.arena);
}

struct tri_shares tri_shares_of(const struct tri_step_stats *s, double seconds, double roof)
{
    struct tri_shares shares = {.mfu = s->model_flops / seconds / roof,
                                .hfu = s->ran_flops / seconds / roof};
    if (!(shares.hfu <= 1))
        shares.mfu = shares.hfu = NAN;
    return shares;
}

static void shares_text(struct tri_metrics *m, const struct tri_step_stats *s, double seconds,
                        double roof, char text[48])
{
    const struct tri_shares shares = tri_shares_of(s, seconds, roof);
    if (!isnan(shares.hfu)) {
        snprintf(text, 48, "MFU %.1f%% HFU %.1f%%", 100 * shares.mfu, 100 * shares.hfu);
        return;
    }
    snprintf(text, 48, "MFU ? HFU ?");
    if (!m->roof_doubted)
        tri_warn("this step ran at %.4g GFLOP/s, the products measured at the start at %.4g: the "
                 "machine was busy then, so MFU and HFU are unknown",
                 s->ran_flops / seconds / 1e9, roof / 1e9);
    m->roof_doubted = true;
}

static void print_step(struct tri_metrics *m, const struct tri_run *run,
                       const struct tri_step_stats *s, double seconds)
{
    char shares[48];
    shares_text(m, s, seconds, job_roof(run), shares);
    char tokens[24], trained[24], eta[24];
    int64_t total = run->schedule.total_steps;
    tri_duration_text((double)(total - run->state.step) * m->step_seconds, eta);
    tri_info("step %" PRId64 "/%" PRId64 " %.0f%% | loss %.4f (ema %.4f) | gnorm %.3f | lr %.2e | "
             "%s tok (%s trained) | %.2f s (fwd %.2f bwd %.2f opt %.2f) | %.0f tok/s | %s | "
             "mem %s (peak) | eta %s",
             run->state.step, total, 100.0 * (double)run->state.step / (double)total, s->loss,
             run->state.loss_average, s->grad_norm, s->lr, count_text((double)s->tokens, tokens),
             count_text((double)s->trained, trained), seconds, s->forward_s, s->backward_s,
             s->update_s, (double)s->tokens / seconds, shares, tri_bytes((double)peak_bytes(run)).s,
             eta);
}

enum tri_status tri_metrics_step(struct tri_metrics *m, const struct tri_run *run,
                                 const struct tri_step_stats *s, double seconds, bool print)
{
    /* The first step of a process pays for page faults; later ones say more about what is left. */
    m->step_seconds = m->step_seconds == 0 || run->state.step <= 2
                          ? seconds
                          : 0.8 * m->step_seconds + 0.2 * seconds;
    m->unseen = *s;
    m->unseen_seconds = print ? 0 : seconds;
    if (print)
        print_step(m, run, s, seconds);
    /* As text: JSON numbers of other readers end at 2^53. */
    char trace[32];
    snprintf(trace, sizeof trace, "%016" PRIx64, tri_arena_trace(run->trainer->exec.arena));
    struct tri_metric_row row = {.step = run->state.step};
    tri_metric_real(&row, "epoch", tri_loader_epochs(run->loader));
    tri_metric_real(&row, "loss", s->loss);
    tri_metric_real(&row, "grad_norm", s->grad_norm);
    tri_metric_real(&row, "lr", s->lr);
    tri_metric_int(&row, "tokens", s->tokens);
    tri_metric_int(&row, "trained_tokens", s->trained);
    tri_metric_int(&row, "total_tokens", run->state.tokens);
    tri_metric_int(&row, "total_trained_tokens", run->state.trained);
    tri_metric_real(&row, "seconds", seconds);
    tri_metric_real(&row, "forward_seconds", s->forward_s);
    tri_metric_real(&row, "backward_seconds", s->backward_s);
    tri_metric_real(&row, "update_seconds", s->update_s);
    const struct tri_shares shares = tri_shares_of(s, seconds, job_roof(run));
    tri_metric_real(&row, "mfu", shares.mfu); /* writers leave out what is not a number */
    tri_metric_real(&row, "hfu", shares.hfu);
    tri_metric_int(&row, "peak_bytes", (int64_t)peak_bytes(run));
    tri_metric_text(&row, "allocation_trace", trace);
    return write_row(m, &row);
}

void tri_metrics_last_step(struct tri_metrics *m, const struct tri_run *run)
{
    if (m->unseen_seconds > 0)
        print_step(m, run, &m->unseen, m->unseen_seconds);
    m->unseen_seconds = 0;
}

enum tri_status tri_metrics_eval(struct tri_metrics *m, const struct tri_run *run,
                                 const struct tri_eval_result *r)
{
    struct tri_metric_row row = {.step = run->state.step, .eval = true};
    tri_metric_real(&row, "eval_loss", r->loss);
    tri_metric_real(&row, "eval_perplexity", exp(r->loss)); /* may overflow: writers know */
    tri_metric_int(&row, "eval_tokens", r->tokens);
    tri_metric_int(&row, "eval_trained_tokens", r->trained);
    tri_metric_real(&row, "eval_seconds", r->seconds);
    return write_row(m, &row);
}
