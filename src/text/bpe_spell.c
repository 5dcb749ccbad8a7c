/* Words to symbols: what a character is before anything is merged. */
#include <stdlib.h>
#include <string.h>

#include "text/bpe_private.h"
#include "text/bytechar.h"
#include "text/unicode.h"

/* The symbols of one word while its characters are looked up. */
struct spelling {
    const struct tri_bpe *bpe;
    struct tri_ids *symbols;
    bool unk_waits; /* for more unknown characters to join it */
};

static enum tri_status spell_known(struct spelling *s, int32_t id)
{
    if (s->unk_waits) {
        TRI_TRY(tri_ids_push(s->symbols, s->bpe->unk));
        s->unk_waits = false;
    }
    return tri_ids_push(s->symbols, id);
}

static enum tri_status spell_unknown(struct spelling *s, const char *text, size_t bytes)
{
    const struct tri_bpe *bpe = s->bpe;
    bool all = bpe->byte_fallback;
    for (size_t i = 0; all && i < bytes; i++)
        all = bpe->fallback_id[(unsigned char)text[i]] >= 0;
    if (all) {
        /* As in the reference, an unknown symbol that waits comes after these. */
        for (size_t i = 0; i < bytes; i++)
            TRI_TRY(tri_ids_push(s->symbols, bpe->fallback_id[(unsigned char)text[i]]));
        return TRI_OK;
    }
    if (bpe->unk == TRI_UNK_MISSING)
        return tri_fail(TRI_FORMAT,
                        "the tokenizer has no token for \"%.*s\", and its unk_token is "
                        "not in its vocabulary",
                        (int)(bytes < 64 ? bytes : 64), text);
    if (bpe->unk < 0)
        return TRI_OK; /* without unk_token the reference leaves the character out */
    if (s->unk_waits && !bpe->fuse_unk)
        TRI_TRY(tri_ids_push(s->symbols, bpe->unk));
    s->unk_waits = true;
    return TRI_OK;
}

/* A character with the prefix or suffix of its place in the word. */
static enum tri_status spell_affixed(struct spelling *s, const char *text, size_t bytes, bool first,
                                     bool last)
{
    const struct tri_bpe *bpe = s->bpe;
    const size_t before = first ? 0 : bpe->prefix_bytes;
    const size_t after = last ? bpe->suffix_bytes : 0;
    char *joint = malloc(before + bytes + after);
    if (!joint)
        return tri_fail(TRI_NOMEM, "no memory for a symbol");
    memcpy(joint, bpe->prefix, before);
    memcpy(joint + before, text, bytes);
    memcpy(joint + before + bytes, bpe->suffix, after);
    const int32_t id = tri_vocab_find(&bpe->vocab, joint, before + bytes + after);
    const enum tri_status st =
        id >= 0 ? spell_known(s, id) : spell_unknown(s, joint, before + bytes + after);
    free(joint);
    return st;
}

/* The character at `at` of a word as the vocabulary writes it, and its bytes in the word. */
static const char *character(const char *word, size_t at, bool as_bytes, char mapped[4],
                             size_t *text_bytes, size_t *word_bytes)
{
    if (as_bytes) {
        *text_bytes = tri_char_put(tri_byte_char((unsigned char)word[at]), mapped);
        *word_bytes = 1;
        return mapped;
    }
    (void)tri_char_at(word + at, text_bytes);
    *word_bytes = *text_bytes;
    return word + at;
}

enum tri_status tri_bpe_spell(const struct tri_bpe *bpe, const char *word, size_t bytes,
                              bool as_bytes, struct tri_ids *symbols)
{
    struct spelling s = {.bpe = bpe, .symbols = symbols};
    const bool affixes = bpe->prefix_bytes > 0 || bpe->suffix_bytes > 0;
    symbols->count = 0;
    for (size_t at = 0; at < bytes;) {
        const unsigned char byte = (unsigned char)word[at];
        int32_t id = -1;
        if (!affixes)
            id = as_bytes ? bpe->byte_id[byte] : byte < 128 ? bpe->char_id[byte] : -1;
        if (id >= 0) {
            TRI_TRY(spell_known(&s, id));
            at++;
            continue;
        }
        char mapped[4];
        size_t length, step;
        const char *text = character(word, at, as_bytes, mapped, &length, &step);
        if (affixes) {
            TRI_TRY(spell_affixed(&s, text, length, at == 0, at + step == bytes));
        } else {
            id = tri_vocab_find(&bpe->vocab, text, length);
            TRI_TRY(id >= 0 ? spell_known(&s, id) : spell_unknown(&s, text, length));
        }
        at += step;
    }
    if (s.unk_waits)
        TRI_TRY(tri_ids_push(symbols, bpe->unk));
    return TRI_OK;
}
