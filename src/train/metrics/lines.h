/* A text file that grows by a line at a time, for people and their scripts. */
#ifndef TRI_TRAIN_METRICS_LINES_H
#define TRI_TRAIN_METRICS_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

struct tri_lines {
    FILE *file;
    char *path;
    bool empty; /* there was no line when it was opened */
};

/* Keep the line of `bytes` bytes (its line feed included) when a run goes on after `step`? */
typedef bool tri_lines_keep(const char *line, size_t bytes, bool first, int64_t step);

/* Open FOLDER/NAME to append. Lines that `keep` does not want are removed first, as is a torn last
 * one. */
enum tri_status tri_lines_open(const char *folder, const char *name, tri_lines_keep *keep,
                               int64_t step, struct tri_lines *out);
void tri_lines_close(struct tri_lines *lines);

/* Append a line; the line feed is added. It has left the process when this returns. */
enum tri_status tri_lines_add(struct tri_lines *lines, const char *line);
enum tri_status tri_lines_sync(struct tri_lines *lines);

#endif
