/* Which tokens begin, end and pad a text: tokenizer_config.json says it by their texts, then
 * special_tokens_map.json, then the model's config.json by their ids. */
#ifndef TRI_TEXT_SPECIAL_IDS_H
#define TRI_TEXT_SPECIAL_IDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "text/tokenizer.h"

/* `config`, `map`: the first two files, NULL where there is none. `find` gives the id of a text, or
 * -1. `model` has what config.json says, and vocab. A member that is null means: none. */
enum tri_status
tri_special_ids_read(const json_t *config, const json_t *map, const struct tri_token_ids *model,
                     int64_t (*find)(const void *ctx, const char *text, size_t bytes),
                     const void *ctx, struct tri_token_ids *out);

#endif
