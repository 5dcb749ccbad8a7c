/* The normalizer of a tokenizer: text in, text out, before anything is split. */
#ifndef TRI_TEXT_NORMALIZER_H
#define TRI_TEXT_NORMALIZER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text.h"
#include "text/regex.h"

enum tri_normalizer_kind {
    TRI_NORMALIZE_NFC,
    TRI_NORMALIZE_NFD,
    TRI_NORMALIZE_NFKC,
    TRI_NORMALIZE_NFKD,
    TRI_NORMALIZE_PREPEND,
    TRI_NORMALIZE_REPLACE,
    TRI_NORMALIZE_STRIP,
};

struct tri_normalizer_step {
    enum tri_normalizer_kind kind;
    char *from; /* what REPLACE looks for when `regex` is NULL */
    char *to;   /* what REPLACE and PREPEND put */
    size_t from_bytes, to_bytes;
    struct tri_regex *regex;
    bool left, right; /* STRIP */
};

enum { TRI_NORMALIZER_STEPS = 16 };

/* All zero changes nothing. */
struct tri_normalizer {
    struct tri_normalizer_step step[TRI_NORMALIZER_STEPS];
    int count;
};

/* `value` is the member "normalizer"; null or absent (NULL): no step. */
enum tri_status tri_normalizer_open(const json_t *value, struct tri_normalizer *out);
void tri_normalizer_close(struct tri_normalizer *normalizer);

/* Two buffers that each use keeps, so that only the first ones allocate. */
struct tri_normalizer_work {
    struct tri_text buffer[2];
    struct tri_regex_work *regex;
};

/* The normalised text: `text` itself, or one of the buffers of `work`. */
enum tri_status tri_normalize(const struct tri_normalizer *normalizer,
                              struct tri_normalizer_work *work, const char *text, size_t bytes,
                              const char **out, size_t *out_bytes);

/* Private to normal_form.c. Append a normal form of the text; `same` instead when it is the text
 * itself, and nothing is appended. */
enum tri_status tri_normal_form(enum tri_normalizer_kind form, const char *text, size_t bytes,
                                struct tri_text *out, bool *same);

/* Append `text` with every match of a pattern (regex, or else the text `from`) replaced by `to`;
 * `same` when nothing matches. Used by decoders too. */
enum tri_status tri_replace(const struct tri_regex *regex, struct tri_regex_work *work,
                            const char *from, size_t from_bytes, const char *to, size_t to_bytes,
                            const char *text, size_t bytes, struct tri_text *out, bool *same);

/* Read a pattern, {"String": ...} or {"Regex": ...}: *text is a copy, or *regex is set. */
enum tri_status tri_pattern_read(const json_t *object, char **text, size_t *bytes,
                                 struct tri_regex **regex);

#endif
