/* Where bytes of a text lie among its tokens.
 *
 * Tokens that are found in the text as it is say where they are. Between two of them the text is
 * normalised and split into pieces, and the tokens cover the pieces one after the other; so a place
 * is found by the bytes of all pieces before it against those of the tokens. How many bytes of
 * pieces come before a place is what the text up to it gives, normalised and split on its own. */
#include <string.h>

#include "text/subword_private.h"
#include "text/utf8.h"

struct search {
    struct tri_subword_work *work;
    struct tri_ids *ids;
    struct tri_text_place *place, *end; /* those not found yet */
};

/* Is it <0x00> to <0xFF>? */
static bool is_fallback(const struct tri_subword *s, int32_t id)
{
    for (int b = 0; b < 256; b++)
        if (s->bpe.fallback_id[b] == id)
            return true;
    return false;
}

/* Bytes of pieces that a token covers. */
static size_t token_bytes(const struct tri_subword *s, int32_t id)
{
    if (s->bpe.byte_fallback && !s->pretokenizer.ends_in_bytes && is_fallback(s, id))
        return 1;
    const struct tri_added_token *added = tri_added_token_of(&s->added, id);
    if (added)
        return added->pattern_bytes;
    const char *text = s->bpe.vocab.token[id].text;
    const size_t bytes = s->bpe.vocab.token[id].bytes;
    if (s->pretokenizer.ends_in_bytes) { /* each character stands for a byte */
        size_t count = 0;
        for (size_t i = 0; i < bytes; i++)
            count += ((unsigned char)text[i] & 0xC0) != 0x80;
        return count;
    }
    return bytes;
}

static enum tri_status measure(struct tri_subword_work *work, const char *text, size_t bytes,
                               bool at_start, size_t *measured)
{
    work->ids = NULL;
    work->measured = 0;
    TRI_TRY(tri_subword_part(work, text, bytes, at_start));
    *measured = work->measured;
    return TRI_OK;
}

/* A part whose tokens do not add up to its pieces (unknown characters, affixes, stripped space):
 * the place is between tokens if the text before it gives just the tokens before it. */
static enum tri_status find_by_prefix(struct search *s, const char *text, size_t bytes,
                                      bool at_start, int64_t first, struct tri_text_place *place)
{
    struct tri_ids before = {.count = 0};
    s->work->ids = &before;
    enum tri_status st = tri_subword_part(s->work, text, bytes, at_start);
    if (st == TRI_OK &&
        (before.count > s->ids->count - first ||
         (before.count > 0 && memcmp(before.data, s->ids->data + first,
                                     (size_t)before.count * sizeof *before.data) != 0)))
        st = tri_fail(TRI_UNSUPPORTED,
                      "the tokenizer has no token for a character of this text, so it cannot be "
                      "said which tokens are trained: remove the character");
    place->token = first + before.count;
    place->inside = false;
    tri_ids_free(&before);
    return st;
}

/* The places inside a part whose tokens begin at `first`. */
static enum tri_status find_in_part(struct search *s, const char *text, size_t begin, size_t end,
                                    int64_t first)
{
    const struct tri_subword *subword = s->work->subword;
    const bool at_start = begin == 0;
    const char *part = text + begin, *normal;
    size_t normal_bytes, all, covered = 0;
    TRI_TRY(tri_normalize(&subword->normalizer, &s->work->normalizer, part, end - begin, &normal,
                          &normal_bytes));
    const bool changed = normal != part;
    TRI_TRY(measure(s->work, part, end - begin, at_start, &all));
    for (int64_t i = first; i < s->ids->count; i++)
        covered += token_bytes(subword, s->ids->data[i]);

    int64_t token = first;
    size_t token_end = first < s->ids->count ? token_bytes(subword, s->ids->data[first]) : 0;
    size_t token_begin = 0;
    for (; s->place < s->end && s->place->offset < end; s->place++) {
        size_t at = s->place->offset - begin;
        if (covered != all) {
            TRI_TRY(find_by_prefix(s, part, at, at_start, first, s->place));
            continue;
        }
        if (changed || all != end - begin)
            TRI_TRY(measure(s->work, part, at, at_start, &at));
        while (token < s->ids->count && token_end <= at) {
            token_begin = token_end;
            if (++token < s->ids->count)
                token_end += token_bytes(subword, s->ids->data[token]);
        }
        s->place->token = token;
        s->place->inside = token < s->ids->count && token_begin < at;
    }
    return TRI_OK;
}

static enum tri_status encode(struct search *s, const char *text, size_t bytes)
{
    const struct tri_added_tokens *added = &s->work->subword->added;
    struct tri_added_walk walk = {
        .added = added, .trie = &added->plain, .text = text, .bytes = bytes};
    while (tri_added_next(&walk)) {
        const int64_t first = s->ids->count;
        s->work->ids = s->ids;
        if (walk.token)
            TRI_TRY(tri_ids_push(s->ids, walk.token->id));
        else
            TRI_TRY(tri_subword_part(s->work, text + walk.begin, walk.end - walk.begin,
                                     walk.begin == 0));
        for (; s->place < s->end && s->place->offset <= walk.begin; s->place++) {
            s->place->token = first;
            s->place->inside = false;
        }
        if (walk.token)
            for (; s->place < s->end && s->place->offset < walk.end; s->place++) {
                s->place->token = first;
                s->place->inside = true;
            }
        else if (s->place < s->end && s->place->offset < walk.end)
            TRI_TRY(find_in_part(s, text, walk.begin, walk.end, first));
    }
    for (; s->place < s->end; s->place++) {
        s->place->token = s->ids->count;
        s->place->inside = false;
    }
    return TRI_OK;
}

enum tri_status tri_subword_encode_at(const struct tri_tokenizer *tokenizer, const char *text,
                                      size_t bytes, struct tri_text_place *places,
                                      size_t num_places, struct tri_ids *ids)
{
    struct tri_subword *subword = (struct tri_subword *)(uintptr_t)tokenizer;
    struct search search = {
        .ids = ids, .place = places, .end = num_places > 0 ? places + num_places : places};
    const size_t valid = tri_utf8_valid(text, bytes);
    if (valid != bytes)
        return tri_fail(TRI_INVALID, "invalid UTF-8 at byte %zu of a text", valid);
    for (size_t i = 0; i < num_places; i++)
        if (places[i].offset > bytes || (i > 0 && places[i].offset < places[i - 1].offset) ||
            (places[i].offset < bytes && ((unsigned char)text[places[i].offset] & 0xC0) == 0x80))
            return tri_fail(TRI_INTERNAL, "byte %zu is no place in a text of %zu bytes",
                            places[i].offset, bytes);
    TRI_TRY(tri_subword_take_work(subword, &search.work));
    const enum tri_status st = encode(&search, text, bytes);
    tri_subword_give_work(subword, search.work);
    return st;
}
