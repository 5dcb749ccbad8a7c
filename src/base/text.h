/* Text: growing strings, numbers as people write them, and the nearest of several names. */
#ifndef TRI_BASE_TEXT_H
#define TRI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A string that grows. All zero is an empty one. When memory runs out it stays as it was and
 * `failed` is set, so that callers check once at the end. */
struct tri_text {
    char *data; /* NUL-terminated; NULL while empty */
    size_t bytes;
    size_t capacity;
    bool failed;
};
void tri_text_add(struct tri_text *text, const char *data, size_t bytes);
void tri_text_printf(struct tri_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tri_text_free(struct tri_text *text);
/* The string so far, never NULL. */
const char *tri_text_data(const struct tri_text *text);

/* Append valid UTF-8 in double quotes, escaped so that JSON and YAML both read it back. */
void tri_text_add_quoted(struct tri_text *text, const char *value);

/* The same as YAML, without quotes where it can do without. */
void tri_text_add_yaml(struct tri_text *text, const char *value);

/* Read a number as people write it: 250_000, 5e8, 2^20, 128k (thousands), 128ki (1024s), 10%.
 * Suffixes k, m, b or g, t and ki, mi, gi, ti, in either case. The whole text must be a number.
 * An integer must have no fraction and fit; a number must be finite. */
enum tri_status tri_text_int(const char *text, int64_t *out);
enum tri_status tri_text_number(const char *text, double *out);

/* Write a number in the shortest form that reads back to the same bits. `out` has 32 bytes. */
char *tri_number_text(double value, char *out);

/* An amount of memory or of a file for people: "1.50 GiB", "12.3 MiB", "640 KiB", "17 bytes"; three
 * digits that count, whatever the size. By value, so that tri_bytes(n).s fits into a list of
 * arguments. */
struct tri_bytes_text {
    char s[32];
};
struct tri_bytes_text tri_bytes(double bytes);

/* The ending of a regular noun behind that number: "" for 1, else "s". */
const char *tri_plural(int64_t count);

/* How many insertions, deletions, changes or swaps of neighbours turn one word into the other,
 * capital letters and "-" for "_" not counted. Words over 64 bytes are compared by their start. */
int tri_text_distance(const char *a, const char *b);

/* The index of the name nearest to `word`, or -1 when none is near enough to be a typing error. */
int64_t tri_text_nearest(const char *word, const char *const *names, size_t count);

/* Is `data` valid UTF-8 without NUL? If not, *at is the first bad byte. */
bool tri_text_is_utf8(const char *data, size_t bytes, size_t *at);

#endif
