/* Tokenizers that Hugging Face tokenizers wrote: byte-pair encodings in tokenizer.json. */
#ifndef TRI_TEXT_TOKENIZER_JSON_H
#define TRI_TEXT_TOKENIZER_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"
#include "text/tokenizer.h"

/* Read tokenizer.json of a folder, with tokenizer_config.json and special_tokens_map.json if they
 * are there. Anything that would be ignored and may change a token is refused by name. */
enum tri_status tri_json_tokenizer_open(const char *folder, const struct tri_token_ids *model,
                                        struct tri_tokenizer **out);

/* The same from the text of tokenizer.json; `config` and `map` are the other two, or NULL. */
enum tri_status tri_json_tokenizer_parse(const char *text, size_t bytes, const json_t *config,
                                         const json_t *map, const struct tri_token_ids *model,
                                         struct tri_tokenizer **out);

#endif
