#include "text/added_tokens.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/member.h"

enum { TOKEN_BYTES = 4096 };

static void trie_init(struct tri_trie *trie)
{
    memset(trie->root, 0xFF, sizeof trie->root);
}

static enum tri_status trie_node(struct tri_trie *trie, unsigned char byte, int32_t *out)
{
    if (trie->count == trie->capacity) {
        const int64_t capacity = trie->capacity ? 2 * trie->capacity : 256;
        struct tri_trie_node *node = realloc(trie->node, (size_t)capacity * sizeof *node);
        if (!node)
            return tri_fail(TRI_NOMEM, "no memory for added tokens");
        trie->node = node;
        trie->capacity = capacity;
    }
    if (trie->count == INT32_MAX)
        return tri_fail(TRI_UNSUPPORTED, "the added tokens are longer than 2^31 bytes");
    trie->node[trie->count] = (struct tri_trie_node){-1, -1, -1, byte};
    *out = (int32_t)trie->count++;
    return TRI_OK;
}

static enum tri_status trie_add(struct tri_trie *trie, const char *pattern, size_t bytes,
                                int32_t token)
{
    int32_t node = trie->root[(unsigned char)pattern[0]];
    if (node < 0) {
        TRI_TRY(trie_node(trie, (unsigned char)pattern[0], &node));
        trie->root[(unsigned char)pattern[0]] = node;
    }
    for (size_t i = 1; i < bytes; i++) {
        const unsigned char byte = (unsigned char)pattern[i];
        int32_t child = trie->node[node].child;
        while (child >= 0 && trie->node[child].byte != byte)
            child = trie->node[child].sibling;
        if (child < 0) {
            TRI_TRY(trie_node(trie, byte, &child));
            trie->node[child].sibling = trie->node[node].child;
            trie->node[node].child = child;
        }
        node = child;
    }
    if (trie->node[node].token >= 0)
        return tri_fail(TRI_FORMAT, "two added tokens are looked for as \"%.64s\"", pattern);
    trie->node[node].token = token;
    return TRI_OK;
}

static enum tri_status read_flags(const json_t *value, struct tri_added_token *token)
{
    TRI_TRY(tri_member_bool(value, "single_word", token->single_word, &token->single_word));
    TRI_TRY(tri_member_bool(value, "lstrip", token->lstrip, &token->lstrip));
    TRI_TRY(tri_member_bool(value, "rstrip", token->rstrip, &token->rstrip));
    TRI_TRY(tri_member_bool(value, "normalized", token->normalized, &token->normalized));
    return tri_member_bool(value, "special", token->special, &token->special);
}

static enum tri_status check_id(const struct tri_added_token *token, const struct tri_vocab *vocab,
                                int64_t *next)
{
    const int32_t known = tri_vocab_find(vocab, token->text, token->text_bytes);
    const int64_t want = known >= 0 ? known : *next;
    *next += known < 0;
    if (token->id != want)
        return tri_fail(TRI_UNSUPPORTED,
                        "\"%.64s\" has the id %" PRId32 ", Hugging Face tokenizers would give it "
                        "%" PRId64,
                        token->text, token->id, want);
    if (known < 0 && want < vocab->size && vocab->token[want].text)
        return tri_fail(TRI_FORMAT, "\"%.64s\" has the id %" PRId64 ", which is that of \"%.64s\"",
                        token->text, want, vocab->token[want].text);
    return TRI_OK;
}

static enum tri_status read_token(const json_t *value, const json_t *decoder,
                                  struct tri_added_token *token)
{
    TRI_TRY(tri_members_check(value, "id content single_word lstrip rstrip normalized special"));
    int64_t id;
    TRI_TRY(tri_member_count(value, "id", TRI_VOCAB_LIMIT - 1, &id));
    token->id = (int32_t)id;
    const char *text;
    size_t bytes;
    TRI_TRY(tri_member_string(value, "content", &text, &bytes));
    if (bytes == 0 || bytes > TOKEN_BYTES)
        return tri_fail(TRI_UNSUPPORTED, "\"content\" has %zu bytes: 1 to %d are read", bytes,
                        TOKEN_BYTES);
    token->text = strdup(text);
    if (!token->text)
        return tri_fail(TRI_NOMEM, "no memory for added tokens");
    token->text_bytes = bytes;
    token->normalized = true;
    TRI_TRY(read_flags(value, token));

    char key[24];
    snprintf(key, sizeof key, "%" PRId64, id);
    const json_t *other = json_object_get(decoder, key);
    if (!other)
        return TRI_OK;
    const char *other_text = json_string_value(json_object_get(other, "content"));
    if (!other_text || strcmp(other_text, text) != 0)
        return tri_fail(TRI_FORMAT,
                        "the token %" PRId64 " is \"%.64s\" here and \"%.64s\" in "
                        "added_tokens_decoder of tokenizer_config.json",
                        id, text, other_text ? other_text : "");
    return read_flags(other, token);
}

/* The pattern of a token: its text, normalised if it is to be found so. */
static enum tri_status make_pattern(const struct tri_normalizer *normalizer,
                                    struct tri_normalizer_work *work, struct tri_added_token *token)
{
    const char *text = token->text;
    size_t bytes = token->text_bytes;
    if (token->normalized)
        TRI_TRY(tri_normalize(normalizer, work, text, bytes, &text, &bytes));
    if (bytes == 0)
        return tri_fail(TRI_UNSUPPORTED, "\"%.64s\" is nothing once it is normalised", token->text);
    token->pattern = malloc(bytes + 1);
    if (!token->pattern)
        return tri_fail(TRI_NOMEM, "no memory for added tokens");
    memcpy(token->pattern, text, bytes);
    token->pattern[bytes] = '\0';
    token->pattern_bytes = bytes;
    return TRI_OK;
}

static int by_id(const void *a, const void *b)
{
    const int32_t x = ((const struct tri_added_token *)a)->id;
    const int32_t y = ((const struct tri_added_token *)b)->id;
    return (x > y) - (x < y);
}

/* Transformers adds the tokens that only tokenizer_config.json has. */
static enum tri_status check_decoder(const struct tri_added_tokens *added, const json_t *decoder)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)decoder, key, value)
    {
        const char *text = json_string_value(json_object_get(value, "content"));
        if (!text || !tri_added_token_named(added, text, strlen(text)))
            return tri_fail(TRI_UNSUPPORTED,
                            "tokenizer_config.json has the token %.24s, \"%.64s\", and "
                            "tokenizer.json has not: save the tokenizer again",
                            key, text ? text : "");
    }
    return TRI_OK;
}

static enum tri_status read_all(const json_t *list, const json_t *decoder,
                                const struct tri_vocab *vocab,
                                const struct tri_normalizer *normalizer,
                                struct tri_normalizer_work *work, struct tri_added_tokens *added)
{
    const size_t count = json_array_size(list);
    int64_t next = vocab->count;
    for (size_t i = 0; i < count; i++) {
        struct tri_added_token *token = &added->token[added->count++];
        enum tri_status st = read_token(json_array_get(list, i), decoder, token);
        if (st == TRI_OK)
            st = check_id(token, vocab, &next);
        if (st == TRI_OK)
            st = make_pattern(normalizer, work, token);
        if (st != TRI_OK) {
            tri_error_prefix("added_tokens[%zu]", i);
            return st;
        }
        if (token->id >= added->size)
            added->size = token->id + 1;
    }
    qsort(added->token, count, sizeof *added->token, by_id);
    for (size_t i = 0; i < count; i++) {
        const struct tri_added_token *token = &added->token[i];
        if (i > 0 && token[-1].id == token->id)
            return tri_fail(TRI_FORMAT, "added_tokens: \"%.64s\" and \"%.64s\" have the same id",
                            token[-1].text, token->text);
        TRI_TRY(trie_add(token->normalized ? &added->normalized : &added->plain, token->pattern,
                         token->pattern_bytes, (int32_t)i));
    }
    return check_decoder(added, decoder);
}

enum tri_status tri_added_tokens_open(const json_t *list, const json_t *decoder,
                                      const struct tri_vocab *vocab,
                                      const struct tri_normalizer *normalizer,
                                      struct tri_added_tokens *out)
{
    struct tri_added_tokens added = {.count = 0};
    trie_init(&added.plain);
    trie_init(&added.normalized);
    if (list && !json_is_array(list))
        return tri_fail(TRI_FORMAT, "\"added_tokens\" must be a list");
    added.token = calloc(json_array_size(list) + 1, sizeof *added.token);
    if (!added.token)
        return tri_fail(TRI_NOMEM, "no memory for added tokens");
    struct tri_normalizer_work work = {.regex = NULL};
    enum tri_status st = tri_regex_work_open(&work.regex);
    if (st == TRI_OK)
        st = read_all(list, decoder, vocab, normalizer, &work, &added);
    tri_text_free(&work.buffer[0]);
    tri_text_free(&work.buffer[1]);
    tri_regex_work_close(work.regex);
    if (st != TRI_OK) {
        tri_added_tokens_close(&added);
        return st;
    }
    *out = added;
    return TRI_OK;
}

void tri_added_tokens_close(struct tri_added_tokens *added)
{
    for (int64_t i = 0; i < added->count; i++) {
        free(added->token[i].text);
        free(added->token[i].pattern);
    }
    free(added->token);
    free(added->plain.node);
    free(added->normalized.node);
    memset(added, 0, sizeof *added);
}

const struct tri_added_token *tri_added_token_of(const struct tri_added_tokens *added, int32_t id)
{
    int64_t low = 0, high = added->count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (added->token[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < added->count && added->token[low].id == id ? &added->token[low] : NULL;
}

const struct tri_added_token *tri_added_token_named(const struct tri_added_tokens *added,
                                                    const char *text, size_t bytes)
{
    for (int64_t i = 0; i < added->count; i++)
        if (added->token[i].text_bytes == bytes && memcmp(added->token[i].text, text, bytes) == 0)
            return &added->token[i];
    return NULL;
}
