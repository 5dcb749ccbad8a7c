/* One sample: a text, or a line of JSONL, checked and ready to be cut into tokens.
 *
 * Shapes of a line:
 *   {"text": "..."}
 *   {"input_ids": [...], "labels"?: [...], "position_ids"?: [...], "attention_mask"?: [...]}
 * Labels are not shifted; -100 trains nothing; without labels every token is trained. Padding on
 * the right (attention_mask 1 ... 1 0 ... 0) is stripped, any other mask is refused. position_ids
 * begin at 0 and start again at 0 with each packed document.
 *
 * Errors say what is wrong with the sample; callers put the file and line before it. */
#ifndef TRI_DATA_SAMPLE_H
#define TRI_DATA_SAMPLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "text/tokenizer.h"

/* Names of columns that lines have and nobody reads: up to 16 of them, 40 bytes of each. */
struct tri_columns {
    char name[16][40];
    int count;
};

struct tri_sample_rules {
    const struct tri_tokenizer *tokenizer; /* NULL: text is refused */
    int64_t vocab;                         /* ids and labels are below */
    bool add_bos, add_eos;                 /* around a text, when the tokenizer has them */
    struct tri_columns *columns;           /* unread columns are noted here; NULL: nowhere */
};

struct tri_sample {
    const struct tri_sample_rules *rules;
    int64_t tokens; /* without padding, bos and eos included; at least 1 */
    /* Private from here. */
    json_t *root;     /* of a line; the rest points into it or into the caller's text */
    const char *text; /* NULL: tokenized */
    size_t text_bytes;
    bool bos, eos;
    const json_t *ids, *labels, *positions; /* labels, positions: NULL when absent */
};

/* A text document: valid UTF-8 (the caller has checked), not empty. */
enum tri_status tri_sample_from_text(const struct tri_sample_rules *rules, const char *text,
                                     size_t bytes, struct tri_sample *out);

/* A line without its line feed. */
enum tri_status tri_sample_from_line(const struct tri_sample_rules *rules, const char *line,
                                     size_t bytes, struct tri_sample *out);

void tri_sample_close(struct tri_sample *sample);

/* The tokens [first, first + count) taken as a sequence: a document cut in two gives two documents.
 * How many documents are in it, and how many tokens predict a trained one? */
void tri_sample_measure(const struct tri_sample *sample, int64_t first, int64_t count,
                        int64_t *documents, int64_t *trained);

/* The same tokens: ids, unshifted labels, positions from 0 in each document; (count) each. */
enum tri_status tri_sample_take(const struct tri_sample *sample, int64_t first, int64_t count,
                                int32_t *ids, int32_t *labels, int64_t *positions);

#endif
