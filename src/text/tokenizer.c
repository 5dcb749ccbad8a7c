#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"

/* Files that mean "this model has a subword tokenizer". */
static const char *const subword_files[] = {"tokenizer.json", "tokenizer.model", "vocab.json"};

/* A subword tokenizer that cannot be read: it has a vocabulary, but refuses text. */
struct unread {
    struct tri_tokenizer base;
    char *path; /* of the file that would have to be read */
};

static enum tri_status refuse(const struct tri_tokenizer *tokenizer)
{
    const char *path = ((const struct unread *)tokenizer)->path;
    const char *name = strrchr(path, '/');
    return tri_fail(TRI_UNSUPPORTED,
                    "%s is not read yet: use data.tokenizer: bytes or tokenized JSONL "
                    "(input_ids) with this model (%s)",
                    name ? name + 1 : path, path);
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

static void close_unread(struct tri_tokenizer *tokenizer)
{
    struct unread *unread = (struct unread *)tokenizer;
    free(unread->path);
    free(unread);
}

/* Takes over `path`. */
static enum tri_status unread_open(char *path, const struct tri_token_ids *model,
                                   struct tri_tokenizer **out)
{
    struct unread *unread = malloc(sizeof *unread);
    if (!unread) {
        free(path);
        return tri_fail(TRI_NOMEM, "no memory for a tokenizer");
    }
    *unread = (struct unread){
        .base = {.name = "subword",
                 .vocab = model->vocab,
                 .bos = model->bos,
                 .eos = model->eos,
                 .pad = model->pad,
                 .identity = tri_hash_bytes(TRI_HASH_START, "subword", 7),
                 .count = refuse_count,
                 .encode = refuse_encode,
                 .close = close_unread},
        .path = path,
    };
    *out = &unread->base;
    return TRI_OK;
}

enum tri_status tri_tokenizer_open(const char *choice, const char *folder,
                                   const struct tri_token_ids *model, struct tri_tokenizer **out)
{
    if (choice && strcmp(choice, "bytes") == 0)
        return tri_byte_tokenizer_open(model, out);
    if (choice && strcmp(choice, "auto") != 0)
        return tri_fail(TRI_INVALID, "data.tokenizer is \"%s\": choose auto or bytes", choice);
    for (size_t i = 0; folder && i < sizeof subword_files / sizeof *subword_files; i++) {
        char *path = tri_path_join(folder, subword_files[i]);
        if (!path)
            return tri_fail(TRI_NOMEM, "no memory for a path");
        if (tri_path_exists(path))
            return unread_open(path, model, out);
        free(path);
    }
    return tri_byte_tokenizer_open(model, out);
}

void tri_tokenizer_close(struct tri_tokenizer *tokenizer)
{
    if (tokenizer)
        tokenizer->close(tokenizer);
}
