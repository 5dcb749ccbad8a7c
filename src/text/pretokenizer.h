/* The pre-tokenizer of a tokenizer: text in, the pieces that the model encodes one by one out. */
#ifndef TRI_TEXT_PRETOKENIZER_H
#define TRI_TEXT_PRETOKENIZER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "text/regex.h"

enum tri_pretokenizer_kind {
    TRI_SPLIT_REGEX,
    TRI_SPLIT_TEXT,
    TRI_SPLIT_SPACE,   /* White_Space */
    TRI_SPLIT_NUMERIC, /* general category N */
    TRI_PUT_SPACE,     /* in front, if none is there */
    TRI_PUT_META,      /* a mark for every space, and one in front */
    TRI_MAP_BYTES,     /* to the byte-level alphabet */
};

/* What becomes of the matches of a split. */
enum tri_split_behavior {
    TRI_SPLIT_REMOVED,
    TRI_SPLIT_ISOLATED,
    TRI_SPLIT_MERGED_WITH_PREVIOUS,
    TRI_SPLIT_MERGED_WITH_NEXT,
    TRI_SPLIT_CONTIGUOUS,
};

enum tri_meta_scheme { TRI_META_ALWAYS, TRI_META_FIRST, TRI_META_NEVER };

struct tri_pretokenizer_step {
    enum tri_pretokenizer_kind kind;
    enum tri_split_behavior behavior;
    bool invert; /* what does not match is the match */
    struct tri_regex *regex;
    char *text; /* of SPLIT_TEXT; the mark of PUT_META */
    size_t bytes;
    enum tri_meta_scheme scheme;
};

enum { TRI_PRETOKENIZER_STEPS = 16 };

/* All zero makes one piece of every text. */
struct tri_pretokenizer {
    struct tri_pretokenizer_step step[TRI_PRETOKENIZER_STEPS];
    int count;
    bool ends_in_bytes; /* the last step is MAP_BYTES, and is left to whoever takes the pieces */
    bool has_regex;
};

/* `value` is the member "pre_tokenizer"; null or absent (NULL): no step. */
enum tri_status tri_pretokenizer_open(const json_t *value, struct tri_pretokenizer *out);
void tri_pretokenizer_close(struct tri_pretokenizer *pretokenizer);

/* What each use keeps, so that only the first ones allocate. */
struct tri_pretokenizer_work {
    struct tri_text changed[TRI_PRETOKENIZER_STEPS + 1]; /* texts that a step changed */
    struct tri_text alike[TRI_PRETOKENIZER_STEPS + 1];   /* the same for regular expressions */
    struct tri_regex_work *regex;
};

/* Call `take` with every piece in order. `at_start`: the text begins where the document does. */
enum tri_status tri_pretokenize(const struct tri_pretokenizer *pretokenizer,
                                struct tri_pretokenizer_work *work, const char *text, size_t bytes,
                                bool at_start,
                                enum tri_status (*take)(void *ctx, const char *piece, size_t bytes),
                                void *ctx);

#endif
