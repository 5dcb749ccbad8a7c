#include "text/vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum tri_status tri_vocab_open(int64_t size, size_t bytes, struct tri_vocab *out)
{
    if (size < 0 || size > TRI_VOCAB_LIMIT)
        return tri_fail(TRI_UNSUPPORTED, "a vocabulary of %" PRId64 " ids: at most %d are possible",
                        size, TRI_VOCAB_LIMIT);
    size_t slots = 16;
    while (slots < 2 * (size_t)size)
        slots *= 2;
    struct tri_vocab vocab = {
        .size = size, .mask = slots - 1, .capacity = bytes + (size_t)size + 1};
    vocab.token = calloc((size_t)size + 1, sizeof *vocab.token);
    vocab.slot = malloc(slots * sizeof *vocab.slot);
    vocab.bytes = malloc(vocab.capacity);
    if (!vocab.token || !vocab.slot || !vocab.bytes) {
        tri_vocab_close(&vocab);
        return tri_fail(TRI_NOMEM, "no memory for a vocabulary of %" PRId64 " ids", size);
    }
    memset(vocab.slot, 0xFF, slots * sizeof *vocab.slot);
    *out = vocab;
    return TRI_OK;
}

void tri_vocab_close(struct tri_vocab *vocab)
{
    free(vocab->token);
    free(vocab->slot);
    free(vocab->bytes);
    memset(vocab, 0, sizeof *vocab);
}

/* The slot that holds a text, or the free one where it belongs. */
static size_t find_slot(const struct tri_vocab *vocab, const char *text, size_t bytes)
{
    size_t slot = tri_hash_bytes(TRI_HASH_START, text, bytes) & vocab->mask;
    while (vocab->slot[slot] >= 0) {
        const struct tri_vocab_token *token = &vocab->token[vocab->slot[slot]];
        if (token->bytes == bytes && memcmp(token->text, text, bytes) == 0)
            break;
        slot = (slot + 1) & vocab->mask;
    }
    return slot;
}

enum tri_status tri_vocab_add(struct tri_vocab *vocab, int64_t id, const char *text, size_t bytes)
{
    if (id < 0 || id >= vocab->size)
        return tri_fail(TRI_FORMAT, "\"%.64s\" has the id %" PRId64 ", outside the vocabulary",
                        text, id);
    if (vocab->token[id].text)
        return tri_fail(TRI_FORMAT, "\"%.64s\" and \"%.64s\" have the same id %" PRId64,
                        vocab->token[id].text, text, id);
    const size_t slot = find_slot(vocab, text, bytes);
    if (vocab->slot[slot] >= 0)
        return tri_fail(TRI_FORMAT, "\"%.64s\" has two ids, %" PRId32 " and %" PRId64, text,
                        vocab->slot[slot], id);
    if (bytes >= vocab->capacity - vocab->used)
        return tri_fail(TRI_INTERNAL, "a vocabulary has more text than it was opened for");
    char *copy = vocab->bytes + vocab->used;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    vocab->used += bytes + 1;
    vocab->slot[slot] = (int32_t)id;
    vocab->token[id] = (struct tri_vocab_token){.text = copy, .bytes = bytes};
    vocab->count++;
    return TRI_OK;
}

int32_t tri_vocab_find(const struct tri_vocab *vocab, const char *text, size_t bytes)
{
    return vocab->slot ? vocab->slot[find_slot(vocab, text, bytes)] : -1;
}
