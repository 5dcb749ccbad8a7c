/* The table that `verify` prints, and what it counts. */
#ifndef TRI_VERIFY_PROOF_REPORT_H
#define TRI_VERIFY_PROOF_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "train/heartbeat.h"
#include "verify/proof/way.h"

struct tri_report {
    FILE *to; /* NULL: this rank does not speak */
    struct tri_heartbeat *heartbeat;
    int rows, failed;
    char first[160]; /* what failed first, and by how much */
};

/* Say on the terminal what is at work: told again every second. */
void tri_report_doing(struct tri_report *report, const char *what);

/* Heads of the two kinds of rows. */
void tri_report_splits_head(struct tri_report *report, const char *title);
void tri_report_values_head(struct tri_report *report, const char *title);

/* The way that others are held against. */
void tri_report_reference(struct tri_report *report, const char *what,
                          const struct tri_reference *reference, double seconds);

/* Another way: ok if its gradients and their norm are within `bound`, and its loss within a tenth
 * of that. */
void tri_report_split(struct tri_report *report, const char *what, const struct tri_difference *d,
                      double bound);

/* A value that has to be `more_than` something to mean anything (0: it is not zero; -1: anything),
 * and a difference that has to be within `bound`. */
void tri_report_value(struct tri_report *report, const char *what, double value, double more_than,
                      double difference, double bound, double seconds);

#endif
