/* The model of a byte-pair encoding: read, checked, and prepared for fast look-ups. */
#include "text/bpe_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/bytechar.h"
#include "text/member.h"
#include "text/unicode.h"

enum { JOINED_BITS = 1 << 20 }; /* about 60,000 pairs of characters are joined in a large model */

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static struct tri_merge *slot_of(const struct tri_bpe *bpe, uint64_t pair)
{
    size_t slot = tri_hash_word(TRI_HASH_START, pair) & bpe->mask;
    while (bpe->merge[slot].pair != TRI_NO_PAIR && bpe->merge[slot].pair != pair)
        slot = (slot + 1) & bpe->mask;
    return &bpe->merge[slot];
}

const struct tri_merge *tri_bpe_find(const struct tri_bpe *bpe, int32_t left, int32_t right)
{
    const struct tri_merge *merge = slot_of(bpe, pair_of(left, right));
    return merge->pair == TRI_NO_PAIR ? NULL : merge;
}

static size_t joined_bit(uint32_t left, uint32_t right)
{
    const uint64_t hash = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 44) % JOINED_BITS;
}

bool tri_bpe_joins(const struct tri_bpe *bpe, uint32_t left, uint32_t right)
{
    const size_t bit = joined_bit(left, right);
    return bpe->joined[bit / 64] >> (bit % 64) & 1;
}

static enum tri_status read_vocab(const json_t *model, struct tri_bpe *bpe)
{
    const json_t *vocab = json_object_get(model, "vocab");
    if (!json_is_object(vocab))
        return tri_fail(TRI_FORMAT, "\"vocab\" must be an object of tokens and their ids");
    int64_t size = 0;
    size_t bytes = 0;
    const char *token;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)vocab, token, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) >= TRI_VOCAB_LIMIT)
            return tri_fail(TRI_FORMAT,
                            "the id of \"%.64s\" in \"vocab\" must be an integer from 0 to %d",
                            token, TRI_VOCAB_LIMIT - 1);
        if (json_integer_value(value) >= size)
            size = json_integer_value(value) + 1;
        bytes += strlen(token);
    }
    TRI_TRY(tri_vocab_open(size, bytes, &bpe->vocab));
    json_object_foreach((json_t *)(uintptr_t)vocab, token, value)
    {
        const size_t length = strlen(token);
        TRI_TRY(tri_vocab_add(&bpe->vocab, json_integer_value(value), token, length));
        if (length > bpe->longest)
            bpe->longest = length;
    }
    return TRI_OK;
}

/* The two parts of a merge: ["a", "b"], or "a b". */
static enum tri_status split_merge(const json_t *value, const char *part[2], size_t bytes[2])
{
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        const char *space = strchr(text, ' ');
        if (!space || strchr(space + 1, ' '))
            return tri_fail(TRI_FORMAT, "\"%.64s\" is not two tokens with one space between", text);
        part[0] = text;
        bytes[0] = (size_t)(space - text);
        part[1] = space + 1;
        bytes[1] = strlen(space + 1);
        return TRI_OK;
    }
    if (json_array_size(value) != 2)
        return tri_fail(TRI_FORMAT, "this is neither a string nor a list of two strings");
    for (size_t i = 0; i < 2; i++) {
        part[i] = json_string_value(json_array_get(value, i));
        bytes[i] = json_string_length(json_array_get(value, i));
        if (!part[i])
            return tri_fail(TRI_FORMAT, "this is neither a string nor a list of two strings");
    }
    return TRI_OK;
}

static bool is_fallback(const struct tri_bpe *bpe, int32_t id)
{
    for (int i = 0; bpe->byte_fallback && i < 256; i++)
        if (bpe->fallback_id[i] == id)
            return true;
    return false;
}

/* Note which characters a merge joins. Where the symbols are not the characters of the text, no
 * place is known to be safe. */
static void note_joined(struct tri_bpe *bpe, const int32_t id[2], const char *const part[2],
                        const size_t bytes[2])
{
    for (int i = 0; i < 2; i++)
        if (bytes[i] == 0 || id[i] == bpe->unk || is_fallback(bpe, id[i]))
            bpe->may_cut = false;
    if (!bpe->may_cut)
        return;
    size_t length;
    const uint32_t left =
        tri_char_at(part[0] + bytes[0] - tri_char_before(part[0], bytes[0]), &length);
    const uint32_t right = tri_char_at(part[1], &length);
    const size_t bit = joined_bit(left, right);
    bpe->joined[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static enum tri_status find_token(const struct tri_bpe *bpe, const char *text, size_t bytes,
                                  int32_t *id)
{
    *id = tri_vocab_find(&bpe->vocab, text, bytes);
    if (*id < 0)
        return tri_fail(TRI_FORMAT, "\"%.*s\" is not in \"vocab\"", (int)(bytes < 64 ? bytes : 64),
                        text);
    return TRI_OK;
}

/* `joint` has room for the longest token twice. */
static enum tri_status add_merge(struct tri_bpe *bpe, const json_t *value, int32_t rank,
                                 char *joint)
{
    const char *part[2];
    size_t bytes[2];
    int32_t id[2];
    TRI_TRY(split_merge(value, part, bytes));
    for (int i = 0; i < 2; i++)
        TRI_TRY(find_token(bpe, part[i], bytes[i], &id[i]));
    if (bytes[1] < bpe->prefix_bytes)
        return tri_fail(TRI_FORMAT, "\"%.64s\" is shorter than continuing_subword_prefix", part[1]);
    memcpy(joint, part[0], bytes[0]);
    memcpy(joint + bytes[0], part[1] + bpe->prefix_bytes, bytes[1] - bpe->prefix_bytes);
    int32_t joint_id;
    TRI_TRY(find_token(bpe, joint, bytes[0] + bytes[1] - bpe->prefix_bytes, &joint_id));
    note_joined(bpe, id, part, bytes);
    const uint64_t pair = pair_of(id[0], id[1]);
    *slot_of(bpe, pair) = (struct tri_merge){.pair = pair, .rank = rank, .id = joint_id};
    return TRI_OK;
}

static enum tri_status read_merges(const json_t *model, struct tri_bpe *bpe)
{
    const json_t *merges;
    TRI_TRY(tri_member_array(model, "merges", &merges));
    const size_t count = json_array_size(merges);
    size_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    bpe->mask = slots - 1;
    bpe->merge = malloc(slots * sizeof *bpe->merge);
    bpe->joined = calloc(JOINED_BITS / 64, sizeof *bpe->joined);
    char *joint = malloc(2 * bpe->longest + 1);
    enum tri_status st = TRI_OK;
    if (!bpe->merge || !bpe->joined || !joint) {
        st = tri_fail(TRI_NOMEM, "no memory for %zu merges", count);
        goto free_joint;
    }
    for (size_t i = 0; i < slots; i++)
        bpe->merge[i].pair = TRI_NO_PAIR;
    int32_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(merges, i);
        const char *text = json_string_value(value);
        if (text && strncmp(text, "#version", 8) == 0)
            continue; /* the first line of the merges.txt that the list was made from */
        st = add_merge(bpe, value, rank++, joint);
        if (st != TRI_OK) {
            tri_error_prefix("merges[%zu]", i);
            goto free_joint;
        }
    }
free_joint:
    free(joint);
    return st;
}

static void find_characters(struct tri_bpe *bpe)
{
    char text[8];
    for (unsigned i = 0; i < 128; i++) {
        text[0] = (char)i;
        bpe->char_id[i] = tri_vocab_find(&bpe->vocab, text, 1);
    }
    bpe->all_fallback = true;
    for (unsigned i = 0; i < 256; i++) {
        const size_t bytes = tri_char_put(tri_byte_char((unsigned char)i), text);
        bpe->byte_id[i] = tri_vocab_find(&bpe->vocab, text, bytes);
        snprintf(text, sizeof text, "<0x%02X>", i);
        bpe->fallback_id[i] = tri_vocab_find(&bpe->vocab, text, 6);
        if (bpe->fallback_id[i] < 0)
            bpe->all_fallback = false;
    }
}

static enum tri_status read_options(const json_t *model, struct tri_bpe *bpe)
{
    TRI_TRY(tri_members_check(model, "type dropout unk_token continuing_subword_prefix "
                                     "end_of_word_suffix fuse_unk byte_fallback ignore_merges "
                                     "vocab merges"));
    const json_t *dropout = json_object_get(model, "dropout");
    if (dropout && !json_is_null(dropout) &&
        (!json_is_number(dropout) || json_number_value(dropout) != 0))
        return tri_fail(TRI_UNSUPPORTED,
                        "\"dropout\" gives other tokens each time: only null and 0 are read");
    TRI_TRY(tri_member_bool(model, "fuse_unk", false, &bpe->fuse_unk));
    TRI_TRY(tri_member_bool(model, "byte_fallback", false, &bpe->byte_fallback));
    TRI_TRY(tri_member_bool(model, "ignore_merges", false, &bpe->ignore_merges));
    const char *prefix, *suffix;
    TRI_TRY(tri_member_text(model, "continuing_subword_prefix", &prefix, &bpe->prefix_bytes));
    TRI_TRY(tri_member_text(model, "end_of_word_suffix", &suffix, &bpe->suffix_bytes));
    bpe->prefix = strdup(prefix ? prefix : "");
    bpe->suffix = strdup(suffix ? suffix : "");
    if (!bpe->prefix || !bpe->suffix)
        return tri_fail(TRI_NOMEM, "no memory for a tokenizer");
    bpe->may_cut = bpe->prefix_bytes == 0 && bpe->suffix_bytes == 0;
    return TRI_OK;
}

static enum tri_status read_model(const json_t *model, struct tri_bpe *bpe)
{
    TRI_TRY(read_options(model, bpe));
    TRI_TRY(read_vocab(model, bpe));
    find_characters(bpe);
    const char *unk;
    size_t bytes;
    TRI_TRY(tri_member_text(model, "unk_token", &unk, &bytes));
    bpe->unk = unk ? tri_vocab_find(&bpe->vocab, unk, bytes) : -1;
    if (unk && bpe->unk < 0)
        bpe->unk = TRI_UNK_MISSING;
    return read_merges(model, bpe);
}

enum tri_status tri_bpe_open(const json_t *model, struct tri_bpe *out)
{
    struct tri_bpe bpe = {.unk = -1};
    const char *type = tri_member_type(model);
    /* Files of 2020, GPT-2's among them, do not say it. */
    const bool unsaid = type[0] == '\0' && json_object_get(model, "merges");
    if (strcmp(type, "BPE") != 0 && !unsaid)
        return tri_fail(TRI_UNSUPPORTED, "a model of type \"%.64s\": only BPE is read", type);
    const enum tri_status st = read_model(model, &bpe);
    if (st != TRI_OK) {
        tri_bpe_close(&bpe);
        return st;
    }
    *out = bpe;
    return TRI_OK;
}

void tri_bpe_close(struct tri_bpe *bpe)
{
    tri_vocab_close(&bpe->vocab);
    free(bpe->merge);
    free(bpe->joined);
    free(bpe->prefix);
    free(bpe->suffix);
    memset(bpe, 0, sizeof *bpe);
}
