/* Tokens beside the model: found in the text before it is split, special or not.
 *
 * Those marked "normalized" are looked for in the normalised text, in their own normalised form;
 * the others in the text as it is. */
#ifndef TRI_TEXT_ADDED_TOKENS_H
#define TRI_TEXT_ADDED_TOKENS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "text/normalizer.h"
#include "text/vocab.h"

struct tri_added_token {
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
    char *text, *pattern; /* what it is, and what is looked for */
    size_t text_bytes, pattern_bytes;
};

/* A trie over the bytes of patterns. All zero matches nothing. */
struct tri_trie_node {
    int32_t child, sibling; /* -1: none */
    int32_t token;          /* index of the token that ends here, -1: none */
    unsigned char byte;
};
struct tri_trie {
    struct tri_trie_node *node;
    int64_t count, capacity;
    int32_t root[256]; /* first node by byte, -1: none */
};

struct tri_added_tokens {
    struct tri_added_token *token;
    int64_t count;
    int64_t size; /* ids are below; 0 without tokens */
    struct tri_trie plain, normalized;
};

/* `list` is the member "added_tokens", `decoder` the member "added_tokens_decoder" of
 * tokenizer_config.json, whose flags count where the two differ, as in Transformers; both may be
 * NULL. Ids must be those that the reference gives: the model's own for its tokens, then the next
 * ones in order. */
enum tri_status tri_added_tokens_open(const json_t *list, const json_t *decoder,
                                      const struct tri_vocab *vocab,
                                      const struct tri_normalizer *normalizer,
                                      struct tri_added_tokens *out);
void tri_added_tokens_close(struct tri_added_tokens *added);

/* By id, by text; NULL if there is none. */
const struct tri_added_token *tri_added_token_of(const struct tri_added_tokens *added, int32_t id);
const struct tri_added_token *tri_added_token_named(const struct tri_added_tokens *added,
                                                    const char *text, size_t bytes);

/* A walk over a text: its plain parts and the tokens between them. All zero but the text begins
 * one. */
struct tri_added_walk {
    const struct tri_added_tokens *added;
    const struct tri_trie *trie;
    const char *text;
    size_t bytes;
    size_t at;   /* where to look for the next token */
    size_t done; /* of the text, handed out */
    /* The part in hand. */
    size_t begin, end;
    const struct tri_added_token *token; /* NULL: the part is plain text */
    const struct tri_added_token *next;  /* a token that comes behind the plain part */
    size_t next_begin, next_end;
};

/* Go to the next part; false behind the last. Plain parts are not empty. */
bool tri_added_next(struct tri_added_walk *walk);

#endif
