/* Regular expressions of tokenizers: written for Oniguruma in Ruby syntax, matched by PCRE2.
 *
 * What the two read differently is translated, or refused with its place in the pattern. */
#ifndef TRI_TEXT_REGEX_H
#define TRI_TEXT_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text.h"

struct tri_regex;
enum tri_status tri_regex_open(const char *pattern, size_t bytes, struct tri_regex **out);
void tri_regex_close(struct tri_regex *regex); /* NULL is allowed */

/* The same pattern for PCRE2, appended to `out`. */
enum tri_status tri_regex_translate(const char *pattern, size_t bytes, struct tri_text *out);

/* What one thread needs to match. */
struct tri_regex_work;
enum tri_status tri_regex_work_open(struct tri_regex_work **out);
void tri_regex_work_close(struct tri_regex_work *work); /* NULL is allowed */

/* A walk over the matches in a text, from the left. All zero but the text begins one. The text is
 * valid UTF-8 and classified alike (text/unicode.h). */
struct tri_regex_walk {
    const char *text;
    size_t bytes;
    size_t at;        /* where to look */
    bool has_matched; /* the last match ended at `end` */
    size_t begin, end;
};

/* Go to the next match: walk->begin, walk->end. Empty ones count, except right behind the one
 * before. */
enum tri_status tri_regex_next(const struct tri_regex *regex, struct tri_regex_work *work,
                               struct tri_regex_walk *walk, bool *found);

#endif
