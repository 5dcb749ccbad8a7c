#include "text/tokenizer_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "text/member.h"
#include "text/special_ids.h"
#include "text/subword.h"

enum { FILE_LIMIT = 64 << 20, CACHE_TOKENS = 64 << 20 };

static enum tri_status check_members(const json_t *root)
{
    TRI_TRY(tri_members_check(root, "version truncation padding added_tokens normalizer "
                                    "pre_tokenizer post_processor decoder model"));
    const char *version = json_string_value(json_object_get(root, "version"));
    if (version && strcmp(version, "1.0") != 0)
        return tri_fail(TRI_UNSUPPORTED, "version \"%.24s\": only 1.0 is read", version);
    if (json_is_object(json_object_get(root, "truncation")))
        tri_info("tokenizer.json asks for truncation; as in Transformers that is up to whoever "
                 "trains: see data.max_length");
    return TRI_OK;
}

static enum tri_status open_parts(struct tri_subword *s, const json_t *root, const json_t *config)
{
    TRI_TRY(check_members(root));
    enum tri_status st = tri_bpe_open(json_object_get(root, "model"), &s->bpe);
    if (st != TRI_OK) {
        tri_error_prefix("model");
        return st;
    }
    TRI_TRY(tri_normalizer_open(json_object_get(root, "normalizer"), &s->normalizer));
    TRI_TRY(tri_pretokenizer_open(json_object_get(root, "pre_tokenizer"), &s->pretokenizer));
    TRI_TRY(tri_decoder_open(json_object_get(root, "decoder"), &s->decoder));
    TRI_TRY(tri_added_tokens_open(json_object_get(root, "added_tokens"),
                                  json_object_get(config, "added_tokens_decoder"), &s->bpe.vocab,
                                  &s->normalizer, &s->added));
    s->base.vocab = s->bpe.vocab.size > s->added.size ? s->bpe.vocab.size : s->added.size;
    TRI_TRY(tri_postprocessor_open(json_object_get(root, "post_processor"), s->base.vocab,
                                   &s->postprocessor));
    s->base.before = s->postprocessor.before.data;
    s->base.num_before = s->postprocessor.before.count;
    s->base.after = s->postprocessor.after.data;
    s->base.num_after = s->postprocessor.after.count;
    return tri_token_cache_open(CACHE_TOKENS, &s->cache);
}

static int64_t find_id(const void *ctx, const char *text, size_t bytes)
{
    const struct tri_subword *s = ctx;
    const struct tri_added_token *token = tri_added_token_named(&s->added, text, bytes);
    return token ? token->id : tri_vocab_find(&s->bpe.vocab, text, bytes);
}

static enum tri_status check_model(struct tri_subword *s, const json_t *config, const json_t *map,
                                   const struct tri_token_ids *model)
{
    if (s->base.vocab > model->vocab)
        return tri_fail(TRI_INVALID,
                        "the tokenizer has %" PRId64 " ids, the model's vocab_size is %" PRId64
                        ": they do not belong together, or the embedding must grow first",
                        s->base.vocab, model->vocab);
    struct tri_token_ids ids;
    TRI_TRY(tri_special_ids_read(config, map, model, find_id, s, &ids));
    s->base.bos = ids.bos;
    s->base.eos = ids.eos;
    s->base.pad = ids.pad;
    return TRI_OK;
}

static uint64_t identify(const struct tri_subword *s, const char *text, size_t bytes)
{
    uint64_t hash = tri_hash_bytes(TRI_HASH_START, text, bytes);
    hash = tri_hash_word(hash, (uint64_t)s->base.bos);
    hash = tri_hash_word(hash, (uint64_t)s->base.eos);
    for (int64_t i = 0; i < s->added.count; i++) {
        const struct tri_added_token *t = &s->added.token[i];
        hash = tri_hash_word(hash, (uint64_t)t->single_word | (uint64_t)t->lstrip << 1 |
                                       (uint64_t)t->rstrip << 2 | (uint64_t)t->normalized << 3);
    }
    return hash;
}

enum tri_status tri_json_tokenizer_parse(const char *text, size_t bytes, const json_t *config,
                                         const json_t *map, const struct tri_token_ids *model,
                                         struct tri_tokenizer **out)
{
    json_t *root;
    struct tri_subword *s;
    TRI_TRY(tri_subword_new(&s));
    enum tri_status st = tri_json_parse("tokenizer.json", text, bytes, &root);
    if (st == TRI_OK) {
        st = open_parts(s, root, config);
        json_decref(root);
        if (st == TRI_OK)
            st = check_model(s, config, map, model);
        if (st != TRI_OK)
            tri_error_prefix("tokenizer.json");
    }
    if (st != TRI_OK) {
        tri_tokenizer_close(&s->base);
        return st;
    }
    s->base.identity = identify(s, text, bytes);
    *out = &s->base;
    return TRI_OK;
}

/* A file that need not be there: NULL then. */
static enum tri_status load_optional(const char *folder, const char *name, json_t **out)
{
    char *path = tri_path_join(folder, name);
    if (!path)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    *out = NULL;
    const enum tri_status st = tri_path_exists(path) ? tri_json_load_reals(path, out) : TRI_OK;
    free(path);
    return st;
}

enum tri_status tri_json_tokenizer_open(const char *folder, const struct tri_token_ids *model,
                                        struct tri_tokenizer **out)
{
    json_t *config = NULL, *map = NULL;
    char *text = NULL;
    size_t bytes;
    char *path = tri_path_join(folder, "tokenizer.json");
    if (!path)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    enum tri_status st = tri_file_read(path, FILE_LIMIT, &text, &bytes);
    if (st == TRI_OK)
        st = load_optional(folder, "tokenizer_config.json", &config);
    if (st == TRI_OK)
        st = load_optional(folder, "special_tokens_map.json", &map);
    if (st == TRI_OK) {
        st = tri_json_tokenizer_parse(text, bytes, config, map, model, out);
        if (st != TRI_OK)
            tri_error_prefix("%s", folder);
    }
    free(text);
    json_decref(config);
    json_decref(map);
    free(path);
    return st;
}
