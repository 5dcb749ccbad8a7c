#include "text/subword_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

static void free_work(struct tri_subword_work *work)
{
    tri_bpe_work_close(work->bpe);
    tri_regex_work_close(work->regex);
    for (int i = 0; i < 2; i++)
        tri_text_free(&work->normalizer.buffer[i]);
    for (int i = 0; i <= TRI_PRETOKENIZER_STEPS; i++) {
        tri_text_free(&work->pretokenizer.changed[i]);
        tri_text_free(&work->pretokenizer.alike[i]);
    }
    free(work);
}

static enum tri_status new_work(struct tri_subword *s, struct tri_subword_work **out)
{
    struct tri_subword_work *work = calloc(1, sizeof *work);
    if (!work)
        return tri_fail(TRI_NOMEM, "no memory to encode a text");
    work->subword = s;
    enum tri_status st = tri_bpe_work_open(&work->bpe);
    if (st == TRI_OK)
        st = tri_regex_work_open(&work->regex);
    if (st != TRI_OK) {
        free_work(work);
        return st;
    }
    work->normalizer.regex = work->pretokenizer.regex = work->regex;
    *out = work;
    return TRI_OK;
}

enum tri_status tri_subword_take_work(struct tri_subword *s, struct tri_subword_work **out)
{
    (void)pthread_mutex_lock(&s->lock);
    struct tri_subword_work *work = s->idle;
    if (work)
        s->idle = work->next;
    (void)pthread_mutex_unlock(&s->lock);
    if (!work)
        return new_work(s, out);
    *out = work;
    return TRI_OK;
}

void tri_subword_give_work(struct tri_subword *s, struct tri_subword_work *work)
{
    (void)pthread_mutex_lock(&s->lock);
    work->next = s->idle;
    s->idle = work;
    (void)pthread_mutex_unlock(&s->lock);
}

static enum tri_status take_piece(void *ctx, const char *piece, size_t bytes)
{
    struct tri_subword_work *work = ctx;
    const struct tri_subword *s = work->subword;
    if (!work->ids) {
        work->measured += bytes;
        return TRI_OK;
    }
    return tri_bpe_encode(&s->bpe, work->bpe, piece, bytes, s->pretokenizer.ends_in_bytes,
                          work->ids);
}

enum tri_status tri_subword_part(struct tri_subword_work *work, const char *text, size_t bytes,
                                 bool at_start)
{
    const struct tri_subword *s = work->subword;
    struct tri_added_walk walk = {.added = &s->added, .trie = &s->added.normalized};
    TRI_TRY(tri_normalize(&s->normalizer, &work->normalizer, text, bytes, &walk.text, &walk.bytes));
    while (tri_added_next(&walk)) {
        if (walk.token && work->ids)
            TRI_TRY(tri_ids_push(work->ids, walk.token->id));
        else if (walk.token)
            work->measured += walk.end - walk.begin;
        else
            TRI_TRY(tri_pretokenize(&s->pretokenizer, &work->pretokenizer, walk.text + walk.begin,
                                    walk.end - walk.begin, at_start && walk.begin == 0, take_piece,
                                    work));
    }
    return TRI_OK;
}

static enum tri_status encode_all(struct tri_subword_work *work, const char *text, size_t bytes)
{
    const struct tri_subword *s = work->subword;
    struct tri_added_walk walk = {
        .added = &s->added, .trie = &s->added.plain, .text = text, .bytes = bytes};
    while (tri_added_next(&walk)) {
        if (walk.token)
            TRI_TRY(tri_ids_push(work->ids, walk.token->id));
        else
            TRI_TRY(
                tri_subword_part(work, text + walk.begin, walk.end - walk.begin, walk.begin == 0));
    }
    return TRI_OK;
}

enum tri_status tri_subword_encode(struct tri_subword *s, const char *text, size_t bytes,
                                   struct tri_ids *ids)
{
    struct tri_subword_work *work = NULL;
    const size_t valid = tri_utf8_valid(text, bytes);
    if (valid != bytes)
        return tri_fail(TRI_INVALID, "invalid UTF-8 at byte %zu of a text", valid);
    TRI_TRY(tri_subword_take_work(s, &work));
    work->ids = ids;
    const enum tri_status st = encode_all(work, text, bytes);
    tri_subword_give_work(s, work);
    return st;
}

/* The tokens of a text from `first` on, from the cache if it has them. */
static enum tri_status get(const struct tri_tokenizer *tokenizer, const char *text, size_t bytes,
                           int64_t first, int64_t count, int32_t *ids, int64_t *copied,
                           int64_t *tokens)
{
    /* Tokenizers are constant to their users; the cache does not change what they say. */
    struct tri_subword *s = (struct tri_subword *)(uintptr_t)tokenizer;
    const struct tri_text_key key = tri_text_key(text, bytes);
    if (tri_token_cache_get(s->cache, &key, first, count, ids, copied, tokens))
        return TRI_OK;
    struct tri_ids all = {.count = 0};
    const enum tri_status st = tri_subword_encode(s, text, bytes, &all);
    if (st != TRI_OK) {
        tri_ids_free(&all);
        return st;
    }
    *tokens = all.count;
    const int64_t left = first < all.count ? all.count - first : 0;
    *copied = count < left ? count : left;
    if (*copied > 0)
        memcpy(ids, all.data + first, (size_t)*copied * sizeof *ids);
    tri_token_cache_put(s->cache, &key, &all);
    return TRI_OK;
}

static enum tri_status count_tokens(const struct tri_tokenizer *tokenizer, const char *text,
                                    size_t bytes, int64_t *tokens)
{
    int64_t copied;
    return get(tokenizer, text, bytes, 0, 0, NULL, &copied, tokens);
}

static enum tri_status encode(const struct tri_tokenizer *tokenizer, const char *text, size_t bytes,
                              int64_t first, int64_t count, int32_t *ids)
{
    int64_t copied = 0, tokens = 0;
    if (first >= 0 && count >= 0)
        TRI_TRY(get(tokenizer, text, bytes, first, count, ids, &copied, &tokens));
    if (first < 0 || count < 0 || first > tokens || copied != count)
        return tri_fail(TRI_INTERNAL,
                        "%" PRId64 " tokens from %" PRId64 " on were asked for, of a text of "
                        "%" PRId64,
                        count, first, tokens);
    return TRI_OK;
}

static enum tri_status add_token_text(const struct tri_subword *s, int32_t id, bool skip_special,
                                      struct tri_texts *texts)
{
    const struct tri_added_token *added = tri_added_token_of(&s->added, id);
    if (added && skip_special && added->special)
        return TRI_OK;
    if (added)
        return tri_texts_add(texts, added->pattern, added->pattern_bytes);
    if (id < 0 || id >= s->bpe.vocab.size || !s->bpe.vocab.token[id].text)
        return tri_fail(TRI_INVALID, "the tokenizer has no token %" PRId32, id);
    return tri_texts_add(texts, s->bpe.vocab.token[id].text, s->bpe.vocab.token[id].bytes);
}

static enum tri_status decode(const struct tri_tokenizer *tokenizer, const int32_t *ids,
                              int64_t count, bool skip_special, struct tri_text *out)
{
    const struct tri_subword *s = (const struct tri_subword *)tokenizer;
    struct tri_texts texts = {.count = 0};
    enum tri_status st = TRI_OK;
    for (int64_t i = 0; st == TRI_OK && i < count; i++)
        st = add_token_text(s, ids[i], skip_special, &texts);
    if (st == TRI_OK)
        st = tri_decode(&s->decoder, &texts, out);
    tri_texts_free(&texts);
    return st;
}

static void free_subword(struct tri_tokenizer *tokenizer)
{
    struct tri_subword *s = (struct tri_subword *)tokenizer;
    while (s->idle) {
        struct tri_subword_work *work = s->idle;
        s->idle = work->next;
        free_work(work);
    }
    tri_bpe_close(&s->bpe);
    tri_normalizer_close(&s->normalizer);
    tri_pretokenizer_close(&s->pretokenizer);
    tri_added_tokens_close(&s->added);
    tri_postprocessor_close(&s->postprocessor);
    tri_decoder_close(&s->decoder);
    tri_token_cache_close(s->cache);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

enum tri_status tri_subword_new(struct tri_subword **out)
{
    struct tri_subword *s = calloc(1, sizeof *s);
    if (!s)
        return tri_fail(TRI_NOMEM, "no memory for a tokenizer");
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return tri_fail(TRI_NOMEM, "no lock for a tokenizer");
    }
    s->base = (struct tri_tokenizer){
        .name = "tokenizer.json",
        .bos = -1,
        .eos = -1,
        .pad = -1,
        .keeps = true,
        .count = count_tokens,
        .encode = encode,
        .encode_at = tri_subword_encode_at,
        .decode = decode,
        .close = free_subword,
    };
    *out = s;
    return TRI_OK;
}
