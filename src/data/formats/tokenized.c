/* Tokens made by somebody else:
 *
 *   {"input_ids": [...], "labels"?: [...], "attention_mask"?: [...],
 *    "completion_mask"?: [...], "assistant_masks"?: [...],
 *    "position_ids"?: [...] or "seq_lengths"?: [...] (also packed_sample_seqlens)}
 *
 * Labels are not shifted; -100 trains nothing. Without labels, tokens are trained where every mask
 * is 1 (completion_mask, assistant_masks; none: everywhere). Padding on the right (attention_mask
 * 1 ... 1 0 ... 0) is stripped, any other attention mask is refused. position_ids begin at 0 and
 * start again at 0 with each packed document; seq_lengths are the documents' lengths. */
#include <inttypes.h>

#include "data/batch.h"
#include "data/formats/format.h"

/* The lists of a line; NULL when they are absent. */
struct lists {
    const json_t *ids, *labels, *positions, *lengths, *attention;
    const json_t *masks[2];
    size_t count; /* of ids */
    size_t kept;  /* of them before the padding */
};

static const char *const mask_names[] = {"completion_mask", "assistant_masks"};

/* A member that is a list of numbers, NULL when it is absent or null. */
static enum tri_status get_list(const json_t *root, const char *name, const json_t **out)
{
    const json_t *value = tri_json_given(root, name);
    if (value && !json_is_array(value))
        return tri_fail(TRI_INVALID, "\"%s\" is %s: it must be a list of integers", name,
                        tri_json_kind(value));
    *out = value;
    return TRI_OK;
}

static enum tri_status get_list_like_ids(const json_t *root, const char *name, size_t count,
                                         const json_t **out)
{
    const json_t *list = NULL;
    TRI_TRY(get_list(root, name, &list));
    if (list && json_array_size(list) != count)
        return tri_fail(TRI_INVALID,
                        "\"%s\" has %zu value%s and \"input_ids\" has %zu: they must be "
                        "equal",
                        name, json_array_size(list), tri_plural((int64_t)json_array_size(list)),
                        count);
    *out = list;
    return TRI_OK;
}

static enum tri_status get_integer(const json_t *list, const char *name, size_t i, int64_t *out)
{
    const json_t *value = json_array_get(list, i);
    if (!json_is_integer(value))
        return tri_fail(TRI_INVALID, "\"%s\"[%zu] is %s: it must be an integer", name, i,
                        tri_json_kind(value));
    *out = json_integer_value(value);
    return TRI_OK;
}

/* How many tokens come before the padding? */
static enum tri_status unpadded(const json_t *mask, size_t count, size_t *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t value = 0;
        TRI_TRY(get_integer(mask, "attention_mask", i, &value));
        if (value != 0 && value != 1)
            return tri_fail(TRI_UNSUPPORTED,
                            "\"attention_mask\"[%zu] is %" PRId64
                            ": only 0 and 1 are read; mark packed documents by \"position_ids\"",
                            i, value);
        if (value == 1 && kept != i)
            return tri_fail(TRI_UNSUPPORTED,
                            "\"attention_mask\" is 0 at token %zu and 1 at token %zu: only padding "
                            "on the right is read",
                            kept, i);
        kept += value == 1;
    }
    *out = kept;
    return TRI_OK;
}

static enum tri_status read_ids(const struct lists *lists, int64_t vocab, int32_t *ids)
{
    for (size_t i = 0; i < lists->count; i++) {
        int64_t id = 0;
        TRI_TRY(get_integer(lists->ids, "input_ids", i, &id));
        if (id < 0 || id >= vocab)
            return tri_fail(TRI_INVALID,
                            "\"input_ids\"[%zu] is %" PRId64 ", outside the vocabulary of %" PRId64
                            ": was this data made for another model?",
                            i, id, vocab);
        if (i < lists->kept)
            ids[i] = (int32_t)id;
    }
    return TRI_OK;
}

static enum tri_status read_labels(const struct lists *lists, int64_t vocab, int32_t *labels)
{
    for (size_t i = 0; i < lists->count; i++) {
        int64_t label = 0;
        TRI_TRY(get_integer(lists->labels, "labels", i, &label));
        if (label != TRI_IGNORE_LABEL && (label < 0 || label >= vocab))
            return tri_fail(TRI_INVALID,
                            "\"labels\"[%zu] is %" PRId64
                            ": neither -100 (not trained) nor inside the vocabulary of %" PRId64,
                            i, label, vocab);
        if (label != TRI_IGNORE_LABEL && i >= lists->kept)
            return tri_fail(TRI_INVALID,
                            "\"labels\"[%zu] is %" PRId64
                            ", but \"attention_mask\" calls that token padding: make it -100",
                            i, label);
        if (i < lists->kept)
            labels[i] = (int32_t)label;
    }
    return TRI_OK;
}

/* Untrain what a mask of 0 and 1 leaves out. */
static enum tri_status apply_mask(const json_t *mask, const char *name, size_t kept,
                                  int32_t *labels)
{
    for (size_t i = 0; i < kept; i++) {
        int64_t value = 0;
        TRI_TRY(get_integer(mask, name, i, &value));
        if (value != 0 && value != 1)
            return tri_fail(TRI_INVALID, "\"%s\"[%zu] is %" PRId64 ": a mask is 0 or 1", name, i,
                            value);
        if (value == 0)
            labels[i] = TRI_IGNORE_LABEL;
    }
    return TRI_OK;
}

static enum tri_status read_positions(const struct lists *lists, bool *begins)
{
    int64_t before = -1;
    for (size_t i = 0; i < lists->kept; i++) {
        int64_t position = 0;
        TRI_TRY(get_integer(lists->positions, "position_ids", i, &position));
        if (position != 0 && position != before + 1)
            return tri_fail(TRI_INVALID,
                            "\"position_ids\"[%zu] is %" PRId64 " after %" PRId64
                            ": positions go up by 1 and start again at 0 with each document",
                            i, position, before);
        begins[i] = position == 0;
        before = position;
    }
    return TRI_OK;
}

/* Lengths that add up to all tokens, or to those before the padding (or to less: then the padding
 * is not one of them). */
static enum tri_status read_lengths(const struct lists *lists, const char *name, bool *begins)
{
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(lists->lengths); i++) {
        int64_t length = 0;
        TRI_TRY(get_integer(lists->lengths, name, i, &length));
        if (length < 1 || (uint64_t)length > lists->count - at)
            return tri_fail(TRI_INVALID,
                            "\"%s\"[%zu] is %" PRId64 " and %zu tokens are left: lengths are those "
                            "of the documents in \"input_ids\"",
                            name, i, length, lists->count - at);
        if (at < lists->kept)
            begins[at] = true;
        at += (size_t)length;
    }
    if (at != lists->kept && at != lists->count)
        return tri_fail(TRI_INVALID,
                        "\"%s\" adds up to %zu and there are %zu tokens: they must be equal", name,
                        at, lists->kept);
    return TRI_OK;
}

static enum tri_status get_lists(const json_t *root, struct lists *lists, const char **lengths)
{
    TRI_TRY(get_list(root, "input_ids", &lists->ids));
    if (!lists->ids)
        return tri_fail(TRI_INVALID, "\"input_ids\" is missing");
    lists->count = lists->kept = json_array_size(lists->ids);
    TRI_TRY(get_list_like_ids(root, "labels", lists->count, &lists->labels));
    TRI_TRY(get_list_like_ids(root, "position_ids", lists->count, &lists->positions));
    TRI_TRY(get_list_like_ids(root, "attention_mask", lists->count, &lists->attention));
    for (int i = 0; i < 2; i++) {
        TRI_TRY(get_list_like_ids(root, mask_names[i], lists->count, &lists->masks[i]));
        if (lists->masks[i] && lists->labels)
            return tri_fail(TRI_INVALID,
                            "both \"labels\" and \"%s\" are given: each says what is trained, "
                            "remove one",
                            mask_names[i]);
    }
    *lengths = tri_json_given(root, "seq_lengths") ? "seq_lengths" : "packed_sample_seqlens";
    TRI_TRY(get_list(root, *lengths, &lists->lengths));
    if (lists->lengths && lists->positions)
        return tri_fail(TRI_INVALID,
                        "both \"position_ids\" and \"%s\" are given: each says where documents "
                        "begin, remove one",
                        *lengths);
    if (lists->attention)
        TRI_TRY(unpadded(lists->attention, lists->count, &lists->kept));
    if (lists->kept == 0)
        return tri_fail(TRI_INVALID, "empty document%s: remove it",
                        lists->count > 0 ? " (all of it is padding)" : "");
    return TRI_OK;
}

static enum tri_status fill(const struct lists *lists, const char *lengths,
                            struct tri_sample *sample)
{
    const int64_t vocab = sample->rules->vocab;
    TRI_TRY(read_ids(lists, vocab, sample->ids));
    if (lists->labels)
        TRI_TRY(read_labels(lists, vocab, sample->labels));
    else if (sample->labels)
        for (size_t i = 0; i < lists->kept; i++)
            sample->labels[i] = sample->ids[i];
    for (int i = 0; i < 2; i++)
        if (lists->masks[i])
            TRI_TRY(apply_mask(lists->masks[i], mask_names[i], lists->kept, sample->labels));
    if (lists->positions)
        TRI_TRY(read_positions(lists, sample->begins));
    if (lists->lengths)
        TRI_TRY(read_lengths(lists, lengths, sample->begins));
    return TRI_OK;
}

enum tri_status tri_format_tokenized(const struct tri_sample_rules *rules, json_t *root,
                                     struct tri_sample *out)
{
    struct lists lists = {.count = 0};
    struct tri_sample sample;
    const char *lengths = NULL;
    TRI_TRY(get_lists(root, &lists, &lengths));
    TRI_TRY(tri_sample_of_tokens(rules, (int64_t)lists.kept,
                                 lists.labels || lists.masks[0] || lists.masks[1],
                                 lists.positions || lists.lengths, &sample));
    const enum tri_status st = fill(&lists, lengths, &sample);
    if (st != TRI_OK) {
        tri_sample_close(&sample);
        return st;
    }
    *out = sample;
    return TRI_OK;
}
