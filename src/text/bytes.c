/* The byte tokenizer. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "text/decoder.h"
#include "text/tokenizer.h"

enum { NUM_BYTES = 256 };

static enum tri_status check_vocab(const struct tri_tokenizer *tokenizer)
{
    if (tokenizer->vocab < NUM_BYTES)
        return tri_fail(TRI_INVALID,
                        "the byte tokenizer needs a vocabulary of at least 256 ids, the model's "
                        "vocab_size is %" PRId64 ": give tokenized JSONL (input_ids) instead",
                        tokenizer->vocab);
    return TRI_OK;
}

static enum tri_status count_tokens(const struct tri_tokenizer *tokenizer, const char *text,
                                    size_t bytes, int64_t *tokens)
{
    (void)text;
    TRI_TRY(check_vocab(tokenizer));
    *tokens = (int64_t)bytes;
    return TRI_OK;
}

static enum tri_status encode(const struct tri_tokenizer *tokenizer, const char *text, size_t bytes,
                              int64_t first, int64_t num, int32_t *ids)
{
    TRI_TRY(check_vocab(tokenizer));
    if (first < 0 || num < 0 || (uint64_t)first > bytes || (uint64_t)num > bytes - (uint64_t)first)
        return tri_fail(TRI_INTERNAL,
                        "tokens %" PRId64 " to %" PRId64 " of a text of %zu bytes were asked for",
                        first, first + num, bytes);
    const unsigned char *p = (const unsigned char *)text + first;
    for (int64_t i = 0; i < num; i++)
        ids[i] = p[i];
    return TRI_OK;
}

static enum tri_status encode_at(const struct tri_tokenizer *tokenizer, const char *text,
                                 size_t bytes, struct tri_text_place *places, size_t num_places,
                                 struct tri_ids *ids)
{
    const int64_t first = ids->count;
    TRI_TRY(tri_ids_reserve(ids, (int64_t)bytes));
    TRI_TRY(check_vocab(tokenizer));
    if (bytes > 0) /* else there may be no list yet */
        TRI_TRY(encode(tokenizer, text, bytes, 0, (int64_t)bytes, ids->data + first));
    ids->count += (int64_t)bytes;
    for (size_t i = 0; i < num_places; i++) {
        places[i].token = first + (int64_t)places[i].offset;
        places[i].inside = false;
    }
    return TRI_OK;
}

/* Ids above the bytes are special, and have no text. */
static enum tri_status decode(const struct tri_tokenizer *tokenizer, const int32_t *ids,
                              int64_t count, bool skip_special, struct tri_text *out)
{
    (void)skip_special;
    struct tri_text bytes = {0};
    enum tri_status st = TRI_OK;
    for (int64_t i = 0; st == TRI_OK && i < count; i++) {
        const char byte = (char)ids[i];
        if (ids[i] < 0 || ids[i] >= tokenizer->vocab)
            st = tri_fail(TRI_INVALID, "the tokenizer has no token %" PRId32, ids[i]);
        else if (ids[i] < NUM_BYTES)
            tri_text_add(&bytes, &byte, 1);
    }
    if (st == TRI_OK)
        tri_text_add_lossy(out, tri_text_data(&bytes), bytes.bytes);
    if (st == TRI_OK && (bytes.failed || out->failed))
        st = tri_fail(TRI_NOMEM, "no memory to decode tokens");
    tri_text_free(&bytes);
    return st;
}

static void free_tokenizer(struct tri_tokenizer *tokenizer)
{
    free(tokenizer);
}

static int64_t special(const struct tri_token_ids *model, int64_t id)
{
    return id >= NUM_BYTES && id < model->vocab ? id : -1;
}

enum tri_status tri_byte_tokenizer_open(const struct tri_token_ids *model,
                                        struct tri_tokenizer **out)
{
    struct tri_tokenizer *tokenizer = malloc(sizeof *tokenizer);
    if (!tokenizer)
        return tri_fail(TRI_NOMEM, "no memory for a tokenizer");
    *tokenizer = (struct tri_tokenizer){
        .name = "bytes",
        .vocab = model->vocab,
        .bos = special(model, model->bos),
        .eos = special(model, model->eos),
        .pad = special(model, model->pad),
        .count = count_tokens,
        .encode = encode,
        .encode_at = encode_at,
        .decode = decode,
        .close = free_tokenizer,
    };
    uint64_t hash = tri_hash_bytes(TRI_HASH_START, "bytes", 5);
    hash = tri_hash_word(hash, (uint64_t)tokenizer->bos);
    hash = tri_hash_word(hash, (uint64_t)tokenizer->eos);
    tokenizer->identity = hash;
    *out = tokenizer;
    return TRI_OK;
}
