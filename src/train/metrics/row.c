#include "train/metrics/writer.h"

#include <assert.h>
#include <stddef.h>

const char *const tri_metric_columns[] = {
    "epoch",
    "loss",
    "grad_norm",
    "lr",
    "tokens",
    "trained_tokens",
    "total_tokens",
    "total_trained_tokens",
    "seconds",
    "forward_seconds",
    "backward_seconds",
    "update_seconds",
    "mfu",
    "hfu",
    "peak_bytes",
    "allocation_trace",
    "eval_loss",
    "eval_perplexity",
    "eval_tokens",
    "eval_trained_tokens",
    "eval_seconds",
    NULL,
};

static struct tri_metric *add(struct tri_metric_row *row, const char *name,
                              enum tri_metric_type type)
{
    assert(row->count < TRI_METRIC_ROW_SIZE);
    struct tri_metric *metric = &row->value[row->count++];
    *metric = (struct tri_metric){.name = name, .type = type};
    return metric;
}

void tri_metric_int(struct tri_metric_row *row, const char *name, int64_t value)
{
    add(row, name, TRI_METRIC_INT)->whole = value;
}

void tri_metric_real(struct tri_metric_row *row, const char *name, double value)
{
    add(row, name, TRI_METRIC_REAL)->real = value;
}

void tri_metric_text(struct tri_metric_row *row, const char *name, const char *value)
{
    add(row, name, TRI_METRIC_TEXT)->text = value;
}
