#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "text/tokenizer_json.h"

/* Files of tokenizers that are not read. */
static const char *const other_files[] = {"tokenizer.model", "vocab.json"};

/* A subword tokenizer that cannot be used: it has a vocabulary, but refuses text. */
struct unread {
    struct tri_tokenizer base;
    enum tri_status status; /* why */
    char *reason;
};

static enum tri_status refuse(const struct tri_tokenizer *tokenizer)
{
    const struct unread *unread = (const struct unread *)tokenizer;
    return tri_fail(unread->status,
                    "%s (data.tokenizer: bytes and tokenized JSONL with input_ids do without)",
                    unread->reason);
}

static enum tri_status refuse_count(const struct tri_tokenizer *tokenizer, const char *text,
                                    size_t bytes, int64_t *tokens)
{
    (void)text, (void)bytes, (void)tokens;
    return refuse(tokenizer);
}

static enum tri_status refuse_encode(const struct tri_tokenizer *tokenizer, const char *text,
                                     size_t bytes, int64_t first, int64_t count, int32_t *ids)
{
    (void)text, (void)bytes, (void)first, (void)count, (void)ids;
    return refuse(tokenizer);
}

static enum tri_status refuse_encode_at(const struct tri_tokenizer *tokenizer, const char *text,
                                        size_t bytes, struct tri_text_place *places,
                                        size_t num_places, struct tri_ids *ids)
{
    (void)text, (void)bytes, (void)places, (void)num_places, (void)ids;
    return refuse(tokenizer);
}

static enum tri_status refuse_decode(const struct tri_tokenizer *tokenizer, const int32_t *ids,
                                     int64_t count, bool skip_special, struct tri_text *out)
{
    (void)ids, (void)count, (void)skip_special, (void)out;
    return refuse(tokenizer);
}

static void close_unread(struct tri_tokenizer *tokenizer)
{
    struct unread *unread = (struct unread *)tokenizer;
    free(unread->reason);
    free(unread);
}

/* The reason is the text of the error at hand. */
static enum tri_status unread_open(enum tri_status status, const struct tri_token_ids *model,
                                   struct tri_tokenizer **out)
{
    struct unread *unread = malloc(sizeof *unread);
    char *reason = strdup(tri_error_text());
    if (!unread || !reason) {
        free(unread);
        free(reason);
        return tri_fail(TRI_NOMEM, "no memory for a tokenizer");
    }
    tri_error_clear();
    *unread = (struct unread){
        .base = {.name = "subword",
                 .vocab = model->vocab,
                 .bos = model->bos,
                 .eos = model->eos,
                 .pad = model->pad,
                 .identity = tri_hash_bytes(TRI_HASH_START, "subword", 7),
                 .count = refuse_count,
                 .encode = refuse_encode,
                 .encode_at = refuse_encode_at,
                 .decode = refuse_decode,
                 .close = close_unread},
        .status = status,
        .reason = reason,
    };
    *out = &unread->base;
    return TRI_OK;
}

static enum tri_status has_file(const char *folder, const char *name, bool *has)
{
    char *path = tri_path_join(folder, name);
    if (!path)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    *has = tri_path_exists(path);
    free(path);
    return TRI_OK;
}

static enum tri_status open_of_folder(const char *folder, const struct tri_token_ids *model,
                                      struct tri_tokenizer **out)
{
    bool has = false;
    TRI_TRY(has_file(folder, "tokenizer.json", &has));
    if (has) {
        const enum tri_status st = tri_json_tokenizer_open(folder, model, out);
        return st == TRI_OK || st == TRI_NOMEM ? st : unread_open(st, model, out);
    }
    for (size_t i = 0; i < sizeof other_files / sizeof *other_files; i++) {
        TRI_TRY(has_file(folder, other_files[i], &has));
        if (has)
            return unread_open(tri_fail(TRI_UNSUPPORTED,
                                        "%s: of tokenizers only tokenizer.json is read, and there "
                                        "is only %s: save the tokenizer with Transformers",
                                        folder, other_files[i]),
                               model, out);
    }
    return tri_byte_tokenizer_open(model, out);
}

enum tri_status tri_tokenizer_open(const char *choice, const char *folder,
                                   const struct tri_token_ids *model, struct tri_tokenizer **out)
{
    if (choice && strcmp(choice, "bytes") == 0)
        return tri_byte_tokenizer_open(model, out);
    if (choice && strcmp(choice, "auto") != 0)
        return tri_fail(TRI_INVALID, "data.tokenizer is \"%s\": choose auto or bytes", choice);
    return folder ? open_of_folder(folder, model, out) : tri_byte_tokenizer_open(model, out);
}

void tri_tokenizer_close(struct tri_tokenizer *tokenizer)
{
    if (tokenizer)
        tokenizer->close(tokenizer);
}
