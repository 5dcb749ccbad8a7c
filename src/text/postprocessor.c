#include "text/postprocessor.h"

#include <inttypes.h>
#include <string.h>

#include "text/member.h"

enum { MOST_IDS = 4096 };

struct reading {
    struct tri_postprocessor *out;
    int64_t vocab;
};

static enum tri_status push(const struct reading *r, struct tri_ids *ids, const json_t *value)
{
    const int64_t id = json_integer_value(value);
    if (!json_is_integer(value) || id < 0 || id >= r->vocab)
        return tri_fail(TRI_FORMAT, "an id outside the vocabulary of %" PRId64, r->vocab);
    if (ids->count == MOST_IDS)
        return tri_fail(TRI_UNSUPPORTED, "more than %d tokens around a text", MOST_IDS);
    return tri_ids_push(ids, (int32_t)id);
}

/* Put `ids` in front of those that are there already: processors wrap what earlier ones made. */
static enum tri_status put_in_front(struct tri_ids *ids, const struct tri_ids *front)
{
    TRI_TRY(tri_ids_reserve(ids, front->count));
    if (ids->count > 0)
        memmove(ids->data + front->count, ids->data, (size_t)ids->count * sizeof *ids->data);
    if (front->count > 0)
        memcpy(ids->data, front->data, (size_t)front->count * sizeof *ids->data);
    ids->count += front->count;
    return TRI_OK;
}

/* The ids of a piece {"SpecialToken": {"id": NAME}}. */
static enum tri_status add_special(const struct reading *r, const json_t *template,
                                   const json_t *special, struct tri_ids *ids)
{
    const char *name;
    size_t bytes;
    const json_t *list;
    TRI_TRY(tri_members_check(special, "id type_id"));
    TRI_TRY(tri_member_string(special, "id", &name, &bytes));
    const json_t *token = json_object_get(json_object_get(template, "special_tokens"), name);
    if (!token)
        return tri_fail(TRI_FORMAT, "\"%.64s\" is not among its special_tokens", name);
    TRI_TRY(tri_member_array(token, "ids", &list));
    for (size_t i = 0; i < json_array_size(list); i++)
        TRI_TRY(push(r, ids, json_array_get(list, i)));
    return TRI_OK;
}

static enum tri_status read_pieces(const struct reading *r, const json_t *template,
                                   const json_t *pieces, struct tri_ids *front)
{
    bool seen = false;
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const json_t *piece = json_array_get(pieces, i);
        const json_t *special = json_object_get(piece, "SpecialToken");
        const json_t *sequence = json_object_get(piece, "Sequence");
        TRI_TRY(tri_members_check(piece, "SpecialToken Sequence"));
        if (special) {
            TRI_TRY(add_special(r, template, special, seen ? &r->out->after : front));
            continue;
        }
        const char *name = json_string_value(json_object_get(sequence, "id"));
        if (!name || strcmp(name, "A") != 0 || seen)
            return tri_fail(TRI_UNSUPPORTED, "\"single\" must have the sequence A once");
        seen = true;
    }
    if (!seen)
        return tri_fail(TRI_UNSUPPORTED, "\"single\" must have the sequence A once");
    return TRI_OK;
}

static enum tri_status read_template(const struct reading *r, const json_t *value)
{
    const json_t *pieces;
    struct tri_ids front = {.count = 0};
    /* "pair" is for two texts at once, which nobody encodes here. */
    TRI_TRY(tri_members_check(value, "type single pair special_tokens"));
    TRI_TRY(tri_member_array(value, "single", &pieces));
    enum tri_status st = read_pieces(r, value, pieces, &front);
    if (st == TRI_OK)
        st = put_in_front(&r->out->before, &front);
    tri_ids_free(&front);
    return st;
}

/* BERT's and RoBERTa's: "cls" in front, "sep" behind, each [text, id]. */
static enum tri_status read_cls_sep(const struct reading *r, const json_t *value)
{
    struct tri_ids front = {.count = 0};
    TRI_TRY(tri_members_check(value, "type sep cls trim_offsets add_prefix_space"));
    enum tri_status st = push(r, &front, json_array_get(json_object_get(value, "cls"), 1));
    if (st == TRI_OK)
        st = put_in_front(&r->out->before, &front);
    if (st == TRI_OK)
        st = push(r, &r->out->after, json_array_get(json_object_get(value, "sep"), 1));
    tri_ids_free(&front);
    return st;
}

static enum tri_status read(const json_t *value, int depth, void *ctx)
{
    const struct reading *r = ctx;
    const char *type = tri_member_type(value);
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(r, value);
    if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0)
        return read_cls_sep(r, value);
    if (strcmp(type, "ByteLevel") == 0) /* moves the borders of tokens in the text, not the ids */
        return tri_members_check(value, "type add_prefix_space trim_offsets use_regex");
    if (strcmp(type, "Sequence") == 0)
        return tri_member_sequence(value, "processors", depth, read, ctx);
    return tri_fail(TRI_UNSUPPORTED, "\"%.64s\" is not read", type);
}

enum tri_status tri_postprocessor_open(const json_t *value, int64_t vocab,
                                       struct tri_postprocessor *out)
{
    struct tri_postprocessor postprocessor = {.before = {.count = 0}};
    if (value && !json_is_null(value)) {
        struct reading r = {.out = &postprocessor, .vocab = vocab};
        const enum tri_status st = read(value, 0, &r);
        if (st != TRI_OK) {
            tri_error_prefix("post_processor");
            tri_postprocessor_close(&postprocessor);
            return st;
        }
    }
    *out = postprocessor;
    return TRI_OK;
}

void tri_postprocessor_close(struct tri_postprocessor *postprocessor)
{
    tri_ids_free(&postprocessor->before);
    tri_ids_free(&postprocessor->after);
}
