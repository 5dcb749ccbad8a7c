/* The decoder of a tokenizer: the texts of tokens in, one text out. */
#ifndef TRI_TEXT_DECODER_H
#define TRI_TEXT_DECODER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text.h"
#include "text/regex.h"

enum tri_decoder_kind {
    TRI_DECODE_BYTE_LEVEL,
    TRI_DECODE_BYTE_FALLBACK,
    TRI_DECODE_FUSE,
    TRI_DECODE_REPLACE,
    TRI_DECODE_STRIP,
    TRI_DECODE_METASPACE,
};

struct tri_decoder_step {
    enum tri_decoder_kind kind;
    char *from, *to; /* REPLACE; `from` is the character of STRIP and METASPACE */
    size_t from_bytes, to_bytes;
    struct tri_regex *regex;
    int64_t start, stop; /* STRIP: at most so many characters */
    bool keep_first;     /* METASPACE: the first token's mark is a space too */
};

enum { TRI_DECODER_STEPS = 16 };

/* All zero: tokens are joined with spaces, as the reference does. */
struct tri_decoder {
    struct tri_decoder_step step[TRI_DECODER_STEPS];
    int count;
    bool present;
};

/* `value` is the member "decoder"; null or absent (NULL): none. */
enum tri_status tri_decoder_open(const json_t *value, struct tri_decoder *out);
void tri_decoder_close(struct tri_decoder *decoder);

/* Texts one behind the other. All zero is an empty list. */
struct tri_texts {
    struct tri_text bytes;
    size_t *end; /* of each in `bytes` */
    int64_t count, capacity;
};
enum tri_status tri_texts_add(struct tri_texts *texts, const char *text, size_t bytes);
void tri_texts_free(struct tri_texts *texts);

/* Decode the texts of tokens (which are used up) and append the result to `out`. */
enum tri_status tri_decode(const struct tri_decoder *decoder, struct tri_texts *tokens,
                           struct tri_text *out);

/* Append bytes as UTF-8, with U+FFFD for every longest part that begins a character and does not
 * end it, and for every other byte that belongs to none (Unicode 15, section 3.9). */
void tri_text_add_lossy(struct tri_text *out, const char *bytes, size_t count);

#endif
