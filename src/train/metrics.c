#include "train/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "train/machine.h"

struct tri_metrics {
    FILE *file;
    char *path;
    double step_seconds; /* moving average, for the eta */
};

/* ---- the file ----------------------------------------------------------------------------------
 */

/* Copy the lines of steps up to `step` from `text` to `out`; a torn last line is dropped. */
static void keep_lines(const char *text, int64_t step, char *out, size_t *bytes)
{
    *bytes = 0;
    for (const char *line = text; *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (end == NULL)
            break;
        size_t n = (size_t)(end - line) + 1;
        json_t *object = json_loadb(line, n, 0, NULL);
        const json_t *number = json_object_get(object, "step");
        if (json_is_integer(number) && json_integer_value(number) <= step) {
            memcpy(out + *bytes, line, n);
            *bytes += n;
        }
        json_decref(object);
        line = end + 1;
    }
}

static enum tri_status cut(const char *path, int64_t step)
{
    char *text = NULL;
    size_t bytes = 0;
    if (!tri_path_exists(path))
        return TRI_OK;
    TRI_TRY(tri_file_read(path, (size_t)1 << 30, &text, &bytes));
    char *kept = malloc(bytes + 1);
    if (kept == NULL) {
        free(text);
        return tri_fail(TRI_NOMEM, "no memory to read %s", path);
    }
    size_t kept_bytes = 0;
    keep_lines(text, step, kept, &kept_bytes);
    enum tri_status st = kept_bytes == bytes ? TRI_OK : tri_file_write(path, kept, kept_bytes);
    free(kept);
    free(text);
    return st;
}

enum tri_status tri_metrics_open(const char *folder, int64_t step, struct tri_metrics **out)
{
    enum tri_status st;
    struct tri_metrics *m = calloc(1, sizeof *m);
    char *path = tri_path_join(folder, "metrics.jsonl");
    if (m == NULL || path == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory for metrics");
        goto free_all;
    }
    m->path = path;
    TRI_TRY_GOTO(st, cut(path, step), free_all);
    m->file = fopen(path, "a");
    if (m->file == NULL) {
        st = tri_fail_errno(errno, "%s", path);
        goto free_all;
    }
    *out = m;
    return TRI_OK;
free_all:
    free(path);
    free(m);
    return st;
}

void tri_metrics_close(struct tri_metrics *m)
{
    if (m == NULL)
        return;
    fclose(m->file);
    free(m->path);
    free(m);
}

static enum tri_status write_line(struct tri_metrics *m, json_t *object)
{
    if (object == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a line of metrics");
    int bad = json_dumpf(object, m->file, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(object);
    if (bad != 0 || fputc('\n', m->file) == EOF || fflush(m->file) != 0)
        return tri_fail_errno(errno, "%s: writing failed, free some space", m->path);
    return TRI_OK;
}

enum tri_status tri_metrics_sync(struct tri_metrics *m)
{
    if (fflush(m->file) != 0 || fsync(fileno(m->file)) != 0)
        return tri_fail_errno(errno, "%s", m->path);
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

static void print_step(const struct tri_run *run, const struct tri_step_stats *s, double seconds,
                       double step_seconds)
{
    char tokens[24], trained[24], eta[24];
    int64_t total = run->schedule.total_steps;
    double used = (double)tri_machine_peak_rss() / 0x1p30;
    tri_duration_text((double)(total - run->state.step) * step_seconds, eta);
    tri_info("step %" PRId64 "/%" PRId64 " %.0f%% | loss %.4f (ema %.4f) | gnorm %.3f | lr %.2e | "
             "%s tok (%s trained) | %.2f s (fwd %.2f bwd %.2f opt %.2f) | %.0f tok/s | MFU %.1f%% "
             "HFU %.1f%% | mem %.2f GiB (peak) | eta %s",
             run->state.step, total, 100.0 * (double)run->state.step / (double)total, s->loss,
             run->state.loss_average, s->grad_norm, s->lr, count_text((double)s->tokens, tokens),
             count_text((double)s->trained, trained), seconds, s->forward_s, s->backward_s,
             s->update_s, (double)s->tokens / seconds,
             100.0 * s->model_flops / seconds / job_roof(run),
             100.0 * s->ran_flops / seconds / job_roof(run), used, eta);
}

enum tri_status tri_metrics_step(struct tri_metrics *m, const struct tri_run *run,
                                 const struct tri_step_stats *s, double seconds, bool print)
{
    /* The first step of a process pays for page faults; later ones say more about what is left. */
    m->step_seconds = m->step_seconds == 0 || run->state.step <= 2
                          ? seconds
                          : 0.8 * m->step_seconds + 0.2 * seconds;
    if (print)
        print_step(run, s, seconds, m->step_seconds);
    /* As text: JSON numbers of other readers end at 2^53. */
    char trace[32];
    snprintf(trace, sizeof trace, "%016" PRIx64, tri_arena_trace(run->trainer->exec.arena));
    return write_line(
        m,
        json_pack(
            "{s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s}",
            "step", (json_int_t)run->state.step, "epoch", tri_loader_epochs(run->loader), "loss",
            s->loss, "grad_norm", s->grad_norm, "lr", s->lr, "tokens", (json_int_t)s->tokens,
            "trained_tokens", (json_int_t)s->trained, "total_tokens", (json_int_t)run->state.tokens,
            "total_trained_tokens", (json_int_t)run->state.trained, "seconds", seconds,
            "forward_seconds", s->forward_s, "backward_seconds", s->backward_s, "update_seconds",
            s->update_s, "mfu", s->model_flops / seconds / job_roof(run), "hfu",
            s->ran_flops / seconds / job_roof(run), "peak_bytes",
            (json_int_t)tri_machine_peak_rss(), "allocation_trace", trace));
}

enum tri_status tri_metrics_eval(struct tri_metrics *m, const struct tri_run *run,
                                 const struct tri_eval_result *r)
{
    /* JSON has no infinity, and exp overflows long before the loss does. */
    double perplexity = exp(r->loss);
    json_t *number = isfinite(perplexity) ? json_real(perplexity) : json_null();
    return write_line(m, json_pack("{s:I, s:f, s:o, s:I, s:I, s:f}", "step",
                                   (json_int_t)run->state.step, "eval_loss", r->loss,
                                   "eval_perplexity", number, "eval_tokens", (json_int_t)r->tokens,
                                   "eval_trained_tokens", (json_int_t)r->trained, "eval_seconds",
                                   r->seconds));
}
