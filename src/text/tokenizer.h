/* Text to token ids: one interface, whatever the tokenizer.
 *
 * Texts may be as large as a memory-mapped file, so nothing here takes or returns a whole copy: a
 * caller asks how many tokens a text has, and then for any range of them. */
#ifndef TRI_TEXT_TOKENIZER_H
#define TRI_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "text/ids.h"

/* Where a byte of a text lies among its tokens. */
struct tri_text_place {
    size_t offset; /* given: 0 to the bytes of the text */
    int64_t token; /* the first token that ends behind it; behind the last if there is none */
    bool inside;   /* that token begins before it */
};

struct tri_tokenizer {
    const char *name;      /* "bytes", "tokenizer.json": for people */
    int64_t vocab;         /* every id that comes out is below */
    int64_t bos, eos, pad; /* ids of special tokens, -1: this tokenizer has none */
    uint64_t identity;     /* equal identities give equal ids for every text */

    bool keeps; /* the tokens of recent texts are kept: encoding them ahead is worth it */

    /* What the tokenizer's own post-processor would put around a text; neither count nor encode
     * adds it. */
    const int32_t *before, *after;
    int64_t num_before, num_after;

    /* Tokens of a valid UTF-8 text, without bos and eos. Safe from several threads, as are encode
     * and decode. */
    enum tri_status (*count)(const struct tri_tokenizer *tokenizer, const char *text, size_t bytes,
                             int64_t *tokens);
    /* Ids of the tokens [first, first + count) of the text, which must have as many. */
    enum tri_status (*encode)(const struct tri_tokenizer *tokenizer, const char *text, size_t bytes,
                              int64_t first, int64_t count, int32_t *ids);
    /* Append the ids of the whole text, and find places in it, whose offsets ascend. */
    enum tri_status (*encode_at)(const struct tri_tokenizer *tokenizer, const char *text,
                                 size_t bytes, struct tri_text_place *places, size_t num_places,
                                 struct tri_ids *ids);
    /* Append the text of tokens, without special ones if asked; bytes that are no UTF-8 come out as
     * U+FFFD. */
    enum tri_status (*decode)(const struct tri_tokenizer *tokenizer, const int32_t *ids,
                              int64_t count, bool skip_special, struct tri_text *out);
    void (*close)(struct tri_tokenizer *tokenizer);
};

/* What a model's config.json says about tokens (bos, eos, pad: -1 when absent). */
struct tri_token_ids {
    int64_t vocab;
    int64_t bos, eos, pad;
};

/* Choose the tokenizer of a model. `choice` is data.tokenizer: "bytes", or "auto" (also NULL): the
 * tokenizer.json of the model's folder if it has one, else bytes. `folder` may be NULL.
 *
 * With "auto", a tokenizer that cannot be read or does not fit the model gives one that refuses
 * every text and says why, so that tokenized data still trains. */
enum tri_status tri_tokenizer_open(const char *choice, const char *folder,
                                   const struct tri_token_ids *model, struct tri_tokenizer **out);
void tri_tokenizer_close(struct tri_tokenizer *tokenizer); /* NULL is allowed */

/* The byte tokenizer: id b is the byte b, so a vocabulary has at least 256 ids (with less, every
 * text is refused). A special token exists when the model's config gives it an id in [256, vocab):
 * below 256 it would be a byte that text may contain, and an id that the config does not name would
 * be unknown to whoever generates with the model. For 256 bytes and three specials write
 * "vocab_size": 259 (or more, such as 320), "bos_token_id": 256, "eos_token_id": 257,
 * "pad_token_id": 258 into config.json. */
enum tri_status tri_byte_tokenizer_open(const struct tri_token_ids *model,
                                        struct tri_tokenizer **out);

#endif
