/* Where metrics go: one row a step or evaluation, to as many files as were asked for.
 *
 * Each kind of file is one writer behind the same small table. All of them stand in the output
 * folder, end every row on the disk or fail, and forget the rows of steps that a resumed run is
 * about to repeat. */
#ifndef TRI_TRAIN_METRICS_WRITER_H
#define TRI_TRAIN_METRICS_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum tri_metric_type { TRI_METRIC_INT, TRI_METRIC_REAL, TRI_METRIC_TEXT };

struct tri_metric {
    const char *name; /* one of tri_metric_columns, a literal */
    enum tri_metric_type type;
    int64_t whole;
    double real; /* may be infinite or NaN: a writer says what it makes of that */
    const char *text;
};

enum { TRI_METRIC_ROW_SIZE = 24 };

/* A finished step, or (eval) an evaluation after it. */
struct tri_metric_row {
    int64_t step;
    bool eval;
    int count;
    struct tri_metric value[TRI_METRIC_ROW_SIZE];
};
void tri_metric_int(struct tri_metric_row *row, const char *name, int64_t value);
void tri_metric_real(struct tri_metric_row *row, const char *name, double value);
void tri_metric_text(struct tri_metric_row *row, const char *name, const char *value);

/* Every name there is, for files whose columns are fixed: those of steps, then of evaluations;
 * NULL ends them. "step" is not among them. */
extern const char *const tri_metric_columns[];

struct tri_metric_writer {
    enum tri_status (*write)(struct tri_metric_writer *writer, const struct tri_metric_row *row);
    enum tri_status (*sync)(struct tri_metric_writer *writer); /* to the disk */
    void (*close)(struct tri_metric_writer *writer);
};

/* Open to append, for rows after `step`. */
enum tri_status tri_jsonl_open(const char *folder, int64_t step, struct tri_metric_writer **out);
enum tri_status tri_csv_open(const char *folder, int64_t step, struct tri_metric_writer **out);
enum tri_status tri_tensorboard_open(const char *folder, int64_t step,
                                     struct tri_metric_writer **out);

#endif
