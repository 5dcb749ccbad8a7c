/* The tokens of texts that were encoded lately.
 *
 * A document is asked about several times: how long it is, then for its tokens, or for range after
 * range of them when it is split. Encoding takes about 20 times as long as hashing, so the ids of
 * whole documents are kept: 64 million tokens in all (256 MiB), and always those of the last
 * document, however long it is. */
#ifndef TRI_TEXT_TOKEN_CACHE_H
#define TRI_TEXT_TOKEN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "text/ids.h"

struct tri_token_cache;
enum tri_status tri_token_cache_open(int64_t max_tokens, struct tri_token_cache **out);
void tri_token_cache_close(struct tri_token_cache *cache); /* NULL is allowed */

/* 128 bits of hash and the length: two texts with one key are not expected in the life of a
 * project. */
struct tri_text_key {
    uint64_t hash[2];
    size_t bytes;
};
struct tri_text_key tri_text_key(const char *text, size_t bytes);

/* Copy at most `count` tokens of a text from token `first` on, if the text is there: *tokens is
 * how many it has, *copied how many were copied. Safe from several threads. */
bool tri_token_cache_get(struct tri_token_cache *cache, const struct tri_text_key *key,
                         int64_t first, int64_t count, int32_t *ids, int64_t *copied,
                         int64_t *tokens);

/* Keep the tokens of a text; takes over the list. What cannot be kept is forgotten. */
void tri_token_cache_put(struct tri_token_cache *cache, const struct tri_text_key *key,
                         struct tri_ids *ids);

#endif
