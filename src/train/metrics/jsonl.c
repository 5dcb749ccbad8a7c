/* metrics.jsonl: one JSON object a row. */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "train/metrics/lines.h"
#include "train/metrics/writer.h"

struct jsonl {
    struct tri_metric_writer writer;
    struct tri_lines lines;
};

static bool keep_line(const char *line, size_t bytes, bool first, int64_t step)
{
    (void)first;
    json_t *object = json_loadb(line, bytes, 0, NULL);
    const json_t *number = json_object_get(object, "step");
    const bool keep = json_is_integer(number) && json_integer_value(number) <= step;
    json_decref(object);
    return keep;
}

/* JSON has no infinity and no NaN: they become null. */
static json_t *value_of(const struct tri_metric *metric)
{
    switch (metric->type) {
    case TRI_METRIC_INT:
        return json_integer(metric->whole);
    case TRI_METRIC_REAL:
        return isfinite(metric->real) ? json_real(metric->real) : json_null();
    case TRI_METRIC_TEXT:
        return json_string(metric->text);
    }
    return NULL;
}

static enum tri_status write_row(struct tri_metric_writer *writer, const struct tri_metric_row *row)
{
    struct jsonl *jsonl = (struct jsonl *)writer;
    json_t *object = json_object();
    bool failed = json_object_set_new(object, "step", json_integer(row->step)) != 0;
    for (int i = 0; i < row->count; i++)
        failed |= json_object_set_new(object, row->value[i].name, value_of(&row->value[i])) != 0;
    char *text = failed ? NULL : json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(object);
    if (text == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a line of metrics");
    const enum tri_status st = tri_lines_add(&jsonl->lines, text);
    free(text);
    return st;
}

static enum tri_status sync_rows(struct tri_metric_writer *writer)
{
    return tri_lines_sync(&((struct jsonl *)writer)->lines);
}

static void close_writer(struct tri_metric_writer *writer)
{
    tri_lines_close(&((struct jsonl *)writer)->lines);
    free(writer);
}

enum tri_status tri_jsonl_open(const char *folder, int64_t step, struct tri_metric_writer **out)
{
    struct jsonl *jsonl = calloc(1, sizeof *jsonl);
    if (jsonl == NULL)
        return tri_fail(TRI_NOMEM, "no memory for metrics");
    jsonl->writer = (struct tri_metric_writer){write_row, sync_rows, close_writer};
    const enum tri_status st =
        tri_lines_open(folder, "metrics.jsonl", keep_line, step, &jsonl->lines);
    if (st != TRI_OK) {
        free(jsonl);
        return st;
    }
    *out = &jsonl->writer;
    return TRI_OK;
}
