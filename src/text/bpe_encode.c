/* Pieces to ids: symbols, merges, and the cache of words. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "text/bpe.h"
#include "text/bytechar.h"
#include "text/unicode.h"

enum {
    CACHE_SLOTS = 1 << 15, /* of 64 bytes: 2 MiB, which stays in a second-level cache */
    WORD_BYTES = 30,
    WORD_IDS = 8,
    FEW_SYMBOLS = 64,
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

/* A possible merge of the symbol at a position with its right neighbour. */
struct candidate {
    uint64_t order; /* rank in the high half, position in the low */
    int32_t id;
};

struct tri_bpe_work {
    struct tri_ids symbols;
    struct tri_text mapped;  /* a piece in the byte-level alphabet */
    int32_t *before, *after; /* neighbours of each symbol, -1: none */
    struct candidate *heap;
    int64_t num_candidates;
    int64_t room; /* symbols that these arrays are for */
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

static void free_arrays(struct tri_bpe_work *work)
{
    free(work->before);
    free(work->after);
    free(work->heap);
    work->before = work->after = NULL;
    work->heap = NULL;
    work->room = 0;
}

void tri_bpe_work_close(struct tri_bpe_work *work)
{
    if (!work)
        return;
    free_arrays(work);
    tri_ids_free(&work->symbols);
    tri_text_free(&work->mapped);
    free(work);
}

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

static enum tri_status spell(const struct tri_bpe *bpe, const char *word, size_t bytes,
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

/* The rank of a pair and what it becomes; a rank above all others if it is not merged. */
static int32_t look_up(const struct tri_bpe *bpe, int32_t left, int32_t right, int32_t *id)
{
    const struct tri_merge *merge = tri_bpe_find(bpe, left, right);
    *id = merge ? merge->id : -1;
    return merge ? merge->rank : INT32_MAX;
}

/* Merge in place, looking over all pairs each time: fastest for a few. */
static void merge_few(const struct tri_bpe *bpe, struct tri_ids *symbols)
{
    int32_t rank[FEW_SYMBOLS], joint[FEW_SYMBOLS]; /* of each symbol with the next */
    int32_t *id = symbols->data;
    int64_t pairs = symbols->count - 1;
    for (int64_t i = 0; i < pairs; i++)
        rank[i] = look_up(bpe, id[i], id[i + 1], &joint[i]);
    while (pairs > 0) {
        int32_t lowest = INT32_MAX;
        for (int64_t i = 0; i < pairs; i++)
            lowest = rank[i] < lowest ? rank[i] : lowest;
        if (lowest == INT32_MAX)
            break;
        int64_t best = 0;
        while (rank[best] != lowest)
            best++;
        id[best] = joint[best];
        pairs--;
        for (int64_t i = best + 1; i <= pairs; i++)
            id[i] = id[i + 1];
        for (int64_t i = best; i < pairs; i++) {
            rank[i] = rank[i + 1];
            joint[i] = joint[i + 1];
        }
        if (best < pairs)
            rank[best] = look_up(bpe, id[best], id[best + 1], &joint[best]);
        if (best > 0)
            rank[best - 1] = look_up(bpe, id[best - 1], id[best], &joint[best - 1]);
    }
    symbols->count = pairs + 1;
}

static enum tri_status make_room(struct tri_bpe_work *work, int64_t symbols)
{
    if (symbols <= work->room)
        return TRI_OK;
    if (symbols > INT32_MAX)
        return tri_fail(TRI_UNSUPPORTED,
                        "a piece of %lld characters without a place to cut it: at most 2^31 - 1",
                        (long long)symbols);
    free_arrays(work);
    work->before = malloc((size_t)symbols * sizeof *work->before);
    work->after = malloc((size_t)symbols * sizeof *work->after);
    /* Each of n - 1 pairs at first, and at most two more for each of n - 1 merges. */
    work->heap = malloc(3 * (size_t)symbols * sizeof *work->heap);
    if (!work->before || !work->after || !work->heap) {
        free_arrays(work);
        return tri_fail(TRI_NOMEM, "no memory to encode a piece of %lld characters",
                        (long long)symbols);
    }
    work->room = symbols;
    return TRI_OK;
}

static void push_candidate(const struct tri_bpe *bpe, struct tri_bpe_work *work, int32_t at)
{
    const int32_t *id = work->symbols.data;
    const int32_t next = work->after[at];
    const struct tri_merge *merge = next < 0 ? NULL : tri_bpe_find(bpe, id[at], id[next]);
    if (!merge)
        return;
    const struct candidate new = {(uint64_t)merge->rank << 32 | (uint32_t)at, merge->id};
    int64_t i = work->num_candidates++;
    for (; i > 0 && work->heap[(i - 1) / 2].order > new.order; i = (i - 1) / 2)
        work->heap[i] = work->heap[(i - 1) / 2];
    work->heap[i] = new;
}

static struct candidate pop_candidate(struct tri_bpe_work *work)
{
    struct candidate *heap = work->heap;
    const struct candidate top = heap[0];
    const struct candidate last = heap[--work->num_candidates];
    const int64_t count = work->num_candidates;
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && heap[child + 1].order < heap[child].order)
            child++;
        if (heap[child].order >= last.order)
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* Merge by a heap of candidates; symbols that are gone get the id -1 until the end. */
static enum tri_status merge_many(const struct tri_bpe *bpe, struct tri_bpe_work *work)
{
    const int64_t count = work->symbols.count;
    TRI_TRY(make_room(work, count));
    int32_t *id = work->symbols.data, *before = work->before, *after = work->after;
    for (int32_t i = 0; i < count; i++) {
        before[i] = i - 1;
        after[i] = i + 1 < count ? i + 1 : -1;
    }
    work->num_candidates = 0;
    for (int32_t i = 0; i + 1 < count; i++)
        push_candidate(bpe, work, i);
    while (work->num_candidates > 0) {
        const struct candidate top = pop_candidate(work);
        const int32_t at = (int32_t)(uint32_t)top.order;
        const int32_t next = after[at];
        if (id[at] < 0 || next < 0)
            continue;
        const struct tri_merge *merge = tri_bpe_find(bpe, id[at], id[next]);
        if (!merge || merge->id != top.id)
            continue; /* one of the two has been merged since */
        id[at] = merge->id;
        id[next] = -1;
        after[at] = after[next];
        if (after[at] >= 0)
            before[after[at]] = at;
        if (before[at] >= 0)
            push_candidate(bpe, work, before[at]);
        push_candidate(bpe, work, at);
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (id[i] >= 0)
            id[kept++] = id[i];
    work->symbols.count = kept;
    return TRI_OK;
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
        TRI_TRY(spell(bpe, word, bytes, as_bytes, &work->symbols));
        if (work->symbols.count > FEW_SYMBOLS)
            TRI_TRY(merge_many(bpe, work));
        else if (work->symbols.count > 1)
            merge_few(bpe, &work->symbols);
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
