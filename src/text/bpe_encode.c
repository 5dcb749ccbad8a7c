/* Pieces to ids: places to cut, and the cache of words. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "text/bpe_private.h"
#include "text/bytechar.h"
#include "text/unicode.h"

enum {
    CACHE_SLOTS = 1 << 15, /* of 64 bytes: 2 MiB, which stays in a second-level cache */
    WORD_BYTES = 30,
    WORD_IDS = 8,
    /* Marks of cached words, beside their length. */
    AS_BYTES = 0x80,
    INNER = 0x40, /* part of a longer piece: ignore_merges does not see it */
};

struct word {
    uint8_t kind; /* length and marks; 0: free */
    uint8_t count;
    char text[WORD_BYTES];
    int32_t id[WORD_IDS];
};

struct tri_bpe_work {
    struct tri_ids symbols;
    struct tri_text mapped; /* a piece in the byte-level alphabet */
    struct tri_bpe_room room;
    struct word cache[CACHE_SLOTS];
};

enum tri_status tri_bpe_work_open(struct tri_bpe_work **out)
{
    struct tri_bpe_work *work = calloc(1, sizeof *work);
    if (!work)
        return tri_fail(TRI_NOMEM, "no memory for a cache of words");
    *out = work;
    return TRI_OK;
}

void tri_bpe_work_close(struct tri_bpe_work *work)
{
    if (!work)
        return;
    tri_bpe_room_free(&work->room);
    tri_ids_free(&work->symbols);
    tri_text_free(&work->mapped);
    free(work);
}

/* The id of a whole piece, -1 if it is no token. */
static enum tri_status find_whole(const struct tri_bpe *bpe, struct tri_bpe_work *work,
                                  const char *piece, size_t bytes, bool as_bytes, int32_t *id)
{
    *id = -1;
    if (bytes > bpe->longest)
        return TRI_OK;
    if (!as_bytes) {
        *id = tri_vocab_find(&bpe->vocab, piece, bytes);
        return TRI_OK;
    }
    struct tri_text *mapped = &work->mapped;
    mapped->bytes = 0;
    for (size_t i = 0; i < bytes; i++) {
        char text[4];
        tri_text_add(mapped, text, tri_char_put(tri_byte_char((unsigned char)piece[i]), text));
    }
    if (mapped->failed)
        return tri_fail(TRI_NOMEM, "no memory to look up a piece of %zu bytes", bytes);
    *id = tri_vocab_find(&bpe->vocab, mapped->data, mapped->bytes);
    return TRI_OK;
}

static enum tri_status encode_word(const struct tri_bpe *bpe, struct tri_bpe_work *work,
                                   const char *word, size_t bytes, unsigned marks,
                                   struct tri_ids *ids)
{
    struct word *cached = NULL;
    const uint8_t kind = (uint8_t)(bytes | marks);
    if (bytes <= WORD_BYTES) {
        cached = &work->cache[tri_hash_bytes(kind, word, bytes) % CACHE_SLOTS];
        if (cached->kind == kind && memcmp(cached->text, word, bytes) == 0)
            return tri_ids_append(ids, cached->id, cached->count);
    }
    const bool as_bytes = marks & AS_BYTES;
    int32_t whole = -1;
    if (bpe->ignore_merges && !(marks & INNER))
        TRI_TRY(find_whole(bpe, work, word, bytes, as_bytes, &whole));
    if (whole >= 0) {
        work->symbols.count = 0;
        TRI_TRY(tri_ids_push(&work->symbols, whole));
    } else {
        TRI_TRY(tri_bpe_spell(bpe, word, bytes, as_bytes, &work->symbols));
        TRI_TRY(tri_bpe_merge(bpe, &work->room, &work->symbols));
    }
    if (cached && work->symbols.count <= WORD_IDS) {
        cached->kind = kind;
        cached->count = (uint8_t)work->symbols.count;
        memcpy(cached->text, word, bytes);
        if (work->symbols.count > 0)
            memcpy(cached->id, work->symbols.data, (size_t)work->symbols.count * sizeof(int32_t));
    }
    return tri_ids_append(ids, work->symbols.data, work->symbols.count);
}

/* Is a symbol made of this character whatever stands beside it? */
static bool is_spelled(const struct tri_bpe *bpe, const char *text, bool as_bytes)
{
    const unsigned char byte = (unsigned char)text[0];
    if (as_bytes)
        return bpe->byte_id[byte] >= 0;
    if (bpe->byte_fallback && bpe->all_fallback)
        return true;
    if (byte < 128)
        return bpe->char_id[byte] >= 0;
    size_t bytes;
    (void)tri_char_at(text, &bytes);
    return tri_vocab_find(&bpe->vocab, text, bytes) >= 0;
}

static enum tri_status encode_long(const struct tri_bpe *bpe, struct tri_bpe_work *work,
                                   const char *piece, size_t bytes, unsigned marks,
                                   struct tri_ids *ids)
{
    const bool as_bytes = marks & AS_BYTES;
    size_t begin = 0, left_at = 0, at = 0;
    uint32_t left = 0;
    while (at < bytes) {
        size_t length = 1;
        const uint32_t c =
            as_bytes ? tri_byte_char((unsigned char)piece[at]) : tri_char_at(piece + at, &length);
        if (at > begin && !tri_bpe_joins(bpe, left, c) &&
            is_spelled(bpe, piece + left_at, as_bytes) && is_spelled(bpe, piece + at, as_bytes)) {
            TRI_TRY(encode_word(bpe, work, piece + begin, at - begin, marks, ids));
            begin = at;
        }
        left = c;
        left_at = at;
        at += length;
    }
    return encode_word(bpe, work, piece + begin, bytes - begin, marks, ids);
}

enum tri_status tri_bpe_encode(const struct tri_bpe *bpe, struct tri_bpe_work *work,
                               const char *piece, size_t bytes, bool as_bytes, struct tri_ids *ids)
{
    if (bytes == 0)
        return TRI_OK;
    const unsigned marks = as_bytes ? AS_BYTES : 0;
    if (bytes <= WORD_BYTES || !bpe->may_cut)
        return encode_word(bpe, work, piece, bytes, marks, ids);
    if (bpe->ignore_merges) {
        int32_t whole;
        TRI_TRY(find_whole(bpe, work, piece, bytes, as_bytes, &whole));
        if (whole >= 0)
            return tri_ids_push(ids, whole);
    }
    return encode_long(bpe, work, piece, bytes, marks | INNER, ids);
}
