#include "text/special_ids.h"

#include <string.h>

/* "bos_token": "<s>", or the same with flags: {"content": "<s>", ...}. */
static enum tri_status read_one(const json_t *config, const json_t *map, const char *name,
                                int64_t fallback,
                                int64_t (*find)(const void *ctx, const char *text, size_t bytes),
                                const void *ctx, int64_t *id)
{
    const char *file = "tokenizer_config.json";
    const json_t *value = json_object_get(config, name);
    if (!value) {
        file = "special_tokens_map.json";
        value = json_object_get(map, name);
    }
    if (!value || json_is_null(value)) {
        *id = value ? -1 : fallback;
        return TRI_OK;
    }
    if (json_is_object(value))
        value = json_object_get(value, "content");
    if (!json_is_string(value))
        return tri_fail(TRI_FORMAT, "%s: \"%s\" must be a string, or an object with \"content\"",
                        file, name);
    const int64_t found = find(ctx, json_string_value(value), json_string_length(value));
    if (found < 0)
        return tri_fail(TRI_FORMAT, "%s: the %s \"%.64s\" is not in tokenizer.json", file, name,
                        json_string_value(value));
    *id = found;
    return TRI_OK;
}

enum tri_status
tri_special_ids_read(const json_t *config, const json_t *map, const struct tri_token_ids *model,
                     int64_t (*find)(const void *ctx, const char *text, size_t bytes),
                     const void *ctx, struct tri_token_ids *out)
{
    struct tri_token_ids ids = *model;
    TRI_TRY(read_one(config, map, "bos_token", model->bos, find, ctx, &ids.bos));
    TRI_TRY(read_one(config, map, "eos_token", model->eos, find, ctx, &ids.eos));
    TRI_TRY(read_one(config, map, "pad_token", model->pad, find, ctx, &ids.pad));
    *out = ids;
    return TRI_OK;
}
