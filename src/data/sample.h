/* One sample: a text, or a line of JSONL, checked and ready to be cut into tokens.
 *
 * Every format (data/formats) ends here: a text, which is encoded range by range and may be as
 * large as a mapped file, or the tokens themselves with their labels and documents. Whoever takes
 * tokens does not see the difference.
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

struct tri_chat_rules; /* data/formats/chat.h */

/* Names of columns that lines have and nobody reads: up to 16 of them, 40 bytes of each. */
struct tri_columns {
    char name[16][40];
    int count;
};

/* Add a name, unless it is there or there is no room. */
void tri_columns_note(struct tri_columns *columns, const char *name);

struct tri_sample_rules {
    const struct tri_tokenizer *tokenizer; /* NULL: text is refused */
    int64_t vocab;                         /* ids and labels are below */
    bool add_bos, add_eos;                 /* around a text, when the tokenizer has them */
    bool train_inputs;                     /* prompts are trained as well */
    int format;                            /* enum tri_data_format; auto: each line's own keys */
    const struct tri_chat_rules *chat;     /* NULL: conversations are refused */
    struct tri_columns *columns;           /* unread columns are noted here; NULL: nowhere */
    bool skip_bad;                         /* an index passes over bad samples and counts them */
    bool keep_counts;                      /* an index keeps those of every record */
};

struct tri_sample {
    const struct tri_sample_rules *rules;
    int64_t tokens; /* without padding, bos and eos included; at least 1 */
    int format;     /* enum tri_data_format: what was read, never auto */
    bool rendered;  /* by the chat template */
    /* Private from here. A text: */
    const char *text; /* NULL: there are ids */
    size_t text_bytes;
    bool bos, eos;
    json_t *root; /* what the text lies in, NULL: the caller's */
    /* Tokens, owned: */
    int32_t *ids;    /* (tokens) */
    int32_t *labels; /* (tokens) unshifted; NULL: the ids */
    bool *begins;    /* (tokens) a document begins; NULL: only at token 0 */
};

/* A text document: valid UTF-8 (the caller has checked), not empty. */
enum tri_status tri_sample_from_text(const struct tri_sample_rules *rules, const char *text,
                                     size_t bytes, struct tri_sample *out);

/* A line of JSONL without its line feed, in any format of data/formats. */
enum tri_status tri_sample_from_line(const struct tri_sample_rules *rules, const char *line,
                                     size_t bytes, struct tri_sample *out);

/* Room for `tokens` tokens that the caller fills in and checks: ids, and with `labels` and `begins`
 * those as well. */
enum tri_status tri_sample_of_tokens(const struct tri_sample_rules *rules, int64_t tokens,
                                     bool labels, bool begins, struct tri_sample *out);

void tri_sample_close(struct tri_sample *sample);

/* The tokens [first, first + count) taken as a sequence: a document cut in two gives two documents.
 * How many documents are in it, and how many tokens predict a trained one? */
void tri_sample_measure(const struct tri_sample *sample, int64_t first, int64_t count,
                        int64_t *documents, int64_t *trained);

/* The same tokens: ids, unshifted labels, positions from 0 in each document; (count) each. */
enum tri_status tri_sample_take(const struct tri_sample *sample, int64_t first, int64_t count,
                                int32_t *ids, int32_t *labels, int64_t *positions);

#endif
