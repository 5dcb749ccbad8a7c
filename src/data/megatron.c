#include "data/megatron.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_BYTES = 9, HEADER_BYTES = MAGIC_BYTES + 8 + 1 + 8 + 8 };

/* Numbers are little-endian and lie where they lie: aligned loads would be wrong. */
static uint64_t load(const unsigned char *at, int bytes)
{
    uint64_t word = 0;
    for (int i = 0; i < bytes; i++)
        word |= (uint64_t)at[i] << 8 * i;
    return word;
}

static int64_t load_signed(const unsigned char *at, int bytes)
{
    const uint64_t word = load(at, bytes);
    const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    return (int64_t)((word ^ sign) - sign);
}

static const unsigned char *lengths(const struct tri_megatron *set)
{
    return set->index.data + HEADER_BYTES;
}

static int64_t length_of(const struct tri_megatron *set, int64_t sequence)
{
    return load_signed(lengths(set) + 4 * sequence, 4);
}

static int64_t pointer_of(const struct tri_megatron *set, int64_t sequence)
{
    return load_signed(lengths(set) + 4 * set->sequences + 8 * sequence, 8);
}

static int64_t mark_of(const struct tri_megatron *set, int64_t mark)
{
    return load_signed(lengths(set) + 12 * set->sequences + 8 * mark, 8);
}

/* ---- opening ----------------------------------------------------------------------------------
 */

static enum tri_status read_type(struct tri_megatron *set, int code)
{
    static const struct {
        int bytes;
        bool is_signed;
    } types[] = {{0, 0}, {1, 0}, {1, 1}, {2, 1}, {4, 1}, {8, 1}, {0, 0}, {0, 0}, {2, 0}};
    if (code == 6 || code == 7)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: the set holds floating-point numbers (type %d), not tokens", set->what,
                        code);
    if (code < 1 || code > 8)
        return tri_fail(TRI_FORMAT, "%s: unknown type of tokens %d: 1 to 8 exist", set->what, code);
    set->token_bytes = types[code].bytes;
    set->is_signed = types[code].is_signed;
    return TRI_OK;
}

static enum tri_status read_header(struct tri_megatron *set)
{
    static const char magic[MAGIC_BYTES] = "MMIDIDX\0";
    const unsigned char *at = set->index.data;
    if (set->index.bytes < HEADER_BYTES || memcmp(at, magic, MAGIC_BYTES) != 0)
        return tri_fail(TRI_FORMAT,
                        "%s: not the index of a Megatron dataset (it does not begin with "
                        "MMIDIDX): name the .idx file that preprocess_data.py wrote",
                        set->what);
    const uint64_t version = load(at + MAGIC_BYTES, 8);
    if (version != 1)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: version %" PRIu64 " of the index: only version 1 is known", set->what,
                        version);
    TRI_TRY(read_type(set, at[MAGIC_BYTES + 8]));
    const uint64_t sequences = load(at + MAGIC_BYTES + 9, 8);
    const uint64_t marks = load(at + MAGIC_BYTES + 17, 8);
    const uint64_t room = set->index.bytes - HEADER_BYTES;
    /* By division: the products may be anything. */
    if (sequences > room / 12 || marks > (room - 12 * sequences) / 8)
        return tri_fail(TRI_FORMAT,
                        "%s: %" PRIu64 " sequences and %" PRIu64
                        " documents do not fit into %zu bytes: the file is cut off",
                        set->what, sequences, marks, set->index.bytes);
    const uint64_t rest = room - 12 * sequences - 8 * marks;
    if (rest != 0 && rest != sequences)
        return tri_fail(TRI_FORMAT, "%s: %" PRIu64 " bytes too many behind the index", set->what,
                        rest);
    set->sequences = (int64_t)sequences;
    set->marks = (int64_t)marks;
    return TRI_OK;
}

/* Sequences do not overlap, so all tokens together are at most those of the file: a small file
 * cannot claim a large set. */
static enum tri_status check_sequences(const struct tri_megatron *set)
{
    uint64_t left = set->tokens.bytes / (uint64_t)set->token_bytes;
    for (int64_t i = 0; i < set->sequences; i++) {
        const int64_t length = length_of(set, i);
        const int64_t pointer = pointer_of(set, i);
        if (length < 0)
            return tri_fail(TRI_FORMAT, "%s: sequence %" PRId64 " has %" PRId64 " tokens",
                            set->what, i, length);
        if (pointer < 0 || (uint64_t)pointer > set->tokens.bytes ||
            (uint64_t)length > (set->tokens.bytes - (uint64_t)pointer) / (uint64_t)set->token_bytes)
            return tri_fail(TRI_FORMAT,
                            "%s: sequence %" PRId64 " is %" PRId64 " tokens at byte %" PRId64
                            " of a .bin file of %zu bytes: the two files do not belong together",
                            set->what, i, length, pointer, set->tokens.bytes);
        if ((uint64_t)length > left)
            return tri_fail(TRI_FORMAT,
                            "%s: the sequences up to %" PRId64
                            " have more tokens than the .bin file: they overlap",
                            set->what, i);
        left -= (uint64_t)length;
    }
    return TRI_OK;
}

/* Megatron begins with a mark at 0 and adds one at the end of each document; a set whose maker
 * never ended a document has only the first. */
static enum tri_status check_marks(struct tri_megatron *set)
{
    if (set->marks <= 1) {
        set->marks = 0;
        set->documents = set->sequences;
        return TRI_OK;
    }
    int64_t before = 0;
    for (int64_t i = 0; i < set->marks; i++) {
        const int64_t mark = mark_of(set, i);
        if (mark < before || mark > set->sequences || (i == 0 && mark != 0))
            return tri_fail(TRI_FORMAT,
                            "%s: mark %" PRId64 " of the documents is %" PRId64 " after %" PRId64
                            " (%" PRId64 " sequences)",
                            set->what, i, mark, before, set->sequences);
        before = mark;
    }
    if (before != set->sequences)
        return tri_fail(TRI_FORMAT, "%s: the documents end at sequence %" PRId64 " of %" PRId64,
                        set->what, before, set->sequences);
    set->documents = set->marks - 1;
    return TRI_OK;
}

enum tri_status tri_megatron_parse(const char *what, struct tri_map index, struct tri_map tokens,
                                   struct tri_megatron *out)
{
    struct tri_megatron set = {.what = what, .index = index, .tokens = tokens};
    TRI_TRY(read_header(&set));
    TRI_TRY(check_sequences(&set));
    TRI_TRY(check_marks(&set));
    *out = set;
    return TRI_OK;
}

enum tri_status tri_megatron_tokens_path(const char *path, char **out)
{
    const size_t bytes = strlen(path);
    if (bytes < 4 || strcmp(path + bytes - 4, ".idx") != 0)
        return tri_fail(TRI_INVALID, "%s: the index of a Megatron dataset is named PREFIX.idx",
                        path);
    char *name = strdup(path);
    if (name == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    memcpy(name + bytes - 4, ".bin", 4);
    *out = name;
    return TRI_OK;
}

enum tri_status tri_megatron_open(const char *path, struct tri_megatron *out)
{
    struct tri_map index = {0}, tokens = {0};
    char *name = NULL;
    TRI_TRY(tri_megatron_tokens_path(path, &name));
    enum tri_status st = tri_map_open(path, &index);
    if (st == TRI_OK)
        st = tri_map_open(name, &tokens);
    free(name);
    if (st == TRI_OK)
        st = tri_megatron_parse(path, index, tokens, out);
    if (st != TRI_OK) {
        tri_map_close(&index);
        tri_map_close(&tokens);
    }
    return st;
}

void tri_megatron_close(struct tri_megatron *set)
{
    tri_map_close(&set->index);
    tri_map_close(&set->tokens);
}

/* ---- documents --------------------------------------------------------------------------------
 */

static void sequences_of(const struct tri_megatron *set, int64_t document, int64_t *first,
                         int64_t *end)
{
    *first = set->marks > 0 ? mark_of(set, document) : document;
    *end = set->marks > 0 ? mark_of(set, document + 1) : document + 1;
}

int64_t tri_megatron_length(const struct tri_megatron *set, int64_t document)
{
    int64_t first, end, tokens = 0;
    sequences_of(set, document, &first, &end);
    for (; first < end; first++)
        tokens += length_of(set, first);
    return tokens;
}

static enum tri_status read_sequence(const struct tri_megatron *set, int64_t sequence,
                                     int64_t vocab, int32_t *ids)
{
    const unsigned char *at = set->tokens.data + pointer_of(set, sequence);
    const int64_t length = length_of(set, sequence);
    const int bytes = set->token_bytes;
    for (int64_t i = 0; i < length; i++, at += bytes) {
        const int64_t id = set->is_signed ? load_signed(at, bytes) : (int64_t)load(at, bytes);
        if (id < 0 || id >= vocab)
            return tri_fail(TRI_INVALID,
                            "%s: token %" PRId64 " of sequence %" PRId64 " is %" PRId64
                            ", outside the vocabulary of %" PRId64
                            ": was this data made for another model?",
                            set->what, i, sequence, id, vocab);
        ids[i] = (int32_t)id;
    }
    return TRI_OK;
}

enum tri_status tri_megatron_read(const struct tri_megatron *set, int64_t document, int64_t vocab,
                                  int32_t *ids)
{
    int64_t first, end;
    if (document < 0 || document >= set->documents)
        return tri_fail(TRI_INTERNAL, "%s: document %" PRId64 " of %" PRId64 " was asked for",
                        set->what, document, set->documents);
    sequences_of(set, document, &first, &end);
    for (; first < end; first++) {
        TRI_TRY(read_sequence(set, first, vocab, ids));
        ids += length_of(set, first);
    }
    return TRI_OK;
}
