/* metrics.csv: a header and one line a row. Steps leave the columns of evaluations empty and the
 * other way round; so does a number that is not finite. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "train/metrics/lines.h"
#include "train/metrics/writer.h"

struct csv {
    struct tri_metric_writer writer;
    struct tri_lines lines;
};

static void add_header(struct tri_text *text)
{
    tri_text_printf(text, "step");
    for (int i = 0; tri_metric_columns[i] != NULL; i++)
        tri_text_printf(text, ",%s", tri_metric_columns[i]);
}

/* The header, and the lines of steps that stay done. */
static bool keep_line(const char *line, size_t bytes, bool first, int64_t step)
{
    (void)bytes;
    if (first)
        return true;
    char *end;
    const long long number = strtoll(line, &end, 10);
    return end != line && *end == ',' && number <= step;
}

static void add_value(struct tri_text *text, const struct tri_metric *metric)
{
    char number[32];
    if (metric->type == TRI_METRIC_INT)
        tri_text_printf(text, "%" PRId64, metric->whole);
    else if (metric->type == TRI_METRIC_TEXT)
        tri_text_printf(text, "%s", metric->text);
    else if (isfinite(metric->real))
        tri_text_printf(text, "%s", tri_number_text(metric->real, number));
}

static enum tri_status add_line(struct csv *csv, struct tri_text *text)
{
    enum tri_status st = text->failed ? tri_fail(TRI_NOMEM, "no memory for a line of metrics")
                                      : tri_lines_add(&csv->lines, tri_text_data(text));
    tri_text_free(text);
    return st;
}

static enum tri_status write_row(struct tri_metric_writer *writer, const struct tri_metric_row *row)
{
    struct tri_text text = {0};
    tri_text_printf(&text, "%" PRId64, row->step);
    for (int c = 0; tri_metric_columns[c] != NULL; c++) {
        tri_text_add(&text, ",", 1);
        for (int i = 0; i < row->count; i++)
            if (strcmp(row->value[i].name, tri_metric_columns[c]) == 0)
                add_value(&text, &row->value[i]);
    }
    return add_line((struct csv *)writer, &text);
}

static enum tri_status sync_rows(struct tri_metric_writer *writer)
{
    return tri_lines_sync(&((struct csv *)writer)->lines);
}

static void close_writer(struct tri_metric_writer *writer)
{
    tri_lines_close(&((struct csv *)writer)->lines);
    free(writer);
}

/* A file with other columns was written by another version: its lines do not go with ours. */
static enum tri_status check_header(const struct tri_lines *lines, const char *header)
{
    FILE *file = fopen(lines->path, "re");
    char *line = NULL;
    size_t room = 0;
    const ssize_t bytes = file != NULL ? getline(&line, &room, file) : -1;
    const bool same =
        bytes > 0 && strncmp(line, header, strlen(header)) == 0 && line[strlen(header)] == '\n';
    free(line);
    if (file != NULL)
        fclose(file);
    if (same)
        return TRI_OK;
    return tri_fail(TRI_FORMAT, "%s has other columns than this version writes: move it away",
                    lines->path);
}

enum tri_status tri_csv_open(const char *folder, int64_t step, struct tri_metric_writer **out)
{
    struct csv *csv = calloc(1, sizeof *csv);
    if (csv == NULL)
        return tri_fail(TRI_NOMEM, "no memory for metrics");
    csv->writer = (struct tri_metric_writer){write_row, sync_rows, close_writer};
    enum tri_status st = tri_lines_open(folder, "metrics.csv", keep_line, step, &csv->lines);
    if (st != TRI_OK) {
        free(csv);
        return st;
    }
    struct tri_text header = {0};
    add_header(&header);
    if (csv->lines.empty) {
        st = add_line(csv, &header);
    } else {
        st = check_header(&csv->lines, tri_text_data(&header));
        tri_text_free(&header);
    }
    if (st != TRI_OK) {
        close_writer(&csv->writer);
        return st;
    }
    *out = &csv->writer;
    return TRI_OK;
}
