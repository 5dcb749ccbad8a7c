/* JSON in, and the filter tojson as Transformers defines it: json.dumps with ensure_ascii off. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/run.h"

static enum tri_status object_from_json(struct tri_jinja_run *run, const json_t *json,
                                        struct tri_jinja_value *out)
{
    struct tri_jinja_value dict, key, value;
    TRI_TRY(tri_jinja_dict(&run->pool, TRI_JINJA_DICT, (int64_t)json_object_size(json), &dict));
    json_t *object = (json_t *)(uintptr_t)json; /* jansson's iterators take no const */
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        TRI_TRY(tri_jinja_string_ref(&run->pool, json_object_iter_key(at),
                                     json_object_iter_key_len(at), &key));
        TRI_TRY(tri_jinja_from_json(run, json_object_iter_value(at), &value));
        TRI_TRY(tri_jinja_dict_add(&run->pool, dict.as.dict, key, value));
    }
    *out = dict;
    return TRI_OK;
}

static enum tri_status array_from_json(struct tri_jinja_run *run, const json_t *json,
                                       struct tri_jinja_value *out)
{
    const int64_t count = (int64_t)json_array_size(json);
    struct tri_jinja_value list;
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, count, &list));
    for (int64_t i = 0; i < count; i++)
        TRI_TRY(tri_jinja_from_json(run, json_array_get(json, (size_t)i),
                                    &list.as.list->items[list.as.list->count++]));
    *out = list;
    return TRI_OK;
}

enum tri_status tri_jinja_from_json(struct tri_jinja_run *run, const json_t *json,
                                    struct tri_jinja_value *out)
{
    switch (json_typeof(json)) {
    case JSON_NULL:
        *out = tri_jinja_none();
        return TRI_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = tri_jinja_bool(json_is_true(json));
        return TRI_OK;
    case JSON_INTEGER:
        *out = tri_jinja_int(json_integer_value(json));
        return TRI_OK;
    case JSON_REAL:
        *out = tri_jinja_float(json_real_value(json));
        return TRI_OK;
    case JSON_STRING:
        return tri_jinja_string_ref(&run->pool, json_string_value(json), json_string_length(json),
                                    out);
    default:
        break;
    }
    TRI_TRY(tri_jinja_descend(run));
    if (json_is_object(json))
        TRI_TRY(object_from_json(run, json, out));
    else
        TRI_TRY(array_from_json(run, json, out));
    run->depth--;
    return TRI_OK;
}

struct style {
    bool ascii, sort, indented;
    const struct tri_jinja_string *item, *colon; /* separators */
    const char *indent;
    size_t indent_bytes;
};

static void dump_string(const struct tri_jinja_string *string, bool ascii,
                        struct tri_jinja_buffer *out)
{
    static const char names[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    char text[16];
    tri_jinja_buffer_text(out, "\"");
    size_t plain = 0; /* what is not written yet starts here */
    for (size_t at = 0; at < string->bytes;) {
        uint32_t c;
        size_t n = tri_character_decode(string->data + at, string->bytes - at, &c);
        if (c < 0x20 || c == '"' || c == '\\' || (ascii && c > 0x7E)) {
            tri_jinja_buffer_add(out, string->data + plain, at - plain);
            plain = at + n;
            const char *name = c > 0 && c < 0x7F ? strchr(names, (int)c) : NULL;
            if (name != NULL)
                snprintf(text, sizeof text, "\\%c", letters[name - names]);
            else if (c < 0x10000)
                snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
            else
                snprintf(text, sizeof text, "\\u%04x\\u%04x",
                         (unsigned)(0xD800 + ((c - 0x10000) >> 10)),
                         (unsigned)(0xDC00 + ((c - 0x10000) & 0x3FF)));
            tri_jinja_buffer_text(out, text);
        }
        at += n;
    }
    tri_jinja_buffer_add(out, string->data + plain, string->bytes - plain);
    tri_jinja_buffer_text(out, "\"");
}

static void new_line(const struct style *style, int64_t level, struct tri_jinja_buffer *out)
{
    if (!style->indented)
        return;
    tri_jinja_buffer_text(out, "\n");
    for (int64_t i = 0; i < level && !out->failed; i++)
        tri_jinja_buffer_add(out, style->indent, style->indent_bytes);
}

static void dump_float(double value, struct tri_jinja_buffer *out)
{
    char text[32];
    if (isnan(value))
        tri_jinja_buffer_text(out, "NaN");
    else if (isinf(value))
        tri_jinja_buffer_text(out, value < 0 ? "-Infinity" : "Infinity");
    else
        tri_jinja_buffer_text(out, tri_jinja_float_text(value, text));
}

static enum tri_status dump(struct tri_jinja_run *run, struct tri_jinja_value value,
                            const struct style *style, int64_t level, struct tri_jinja_buffer *out);

static enum tri_status dump_key(struct tri_jinja_run *run, struct tri_jinja_value key,
                                const struct style *style, struct tri_jinja_buffer *out)
{
    if (key.kind == TRI_JINJA_STRING) {
        dump_string(key.as.string, style->ascii, out);
        return TRI_OK;
    }
    if (key.kind < TRI_JINJA_NONE || key.kind > TRI_JINJA_FLOAT)
        return tri_jinja_fail(run, TRI_INVALID, "tojson: a key of type %s",
                              tri_jinja_type_name(key));
    tri_jinja_buffer_text(out, "\"");
    TRI_TRY(dump(run, key, style, 0, out));
    tri_jinja_buffer_text(out, "\"");
    return TRI_OK;
}

/* Pairs in the order of their keys, which must be strings. */
static enum tri_status sorted_pairs(struct tri_jinja_run *run, const struct tri_jinja_dict *dict,
                                    struct tri_jinja_pair **out)
{
    struct tri_jinja_pair *pairs =
        tri_jinja_pool_get(&run->pool, (size_t)dict->count * sizeof *pairs + 1);
    if (pairs == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    for (int64_t i = 0; i < dict->count; i++) {
        int64_t at = i;
        bool less = false;
        for (; at > 0; at--) {
            TRI_TRY(tri_jinja_less(run, dict->pairs[i].key, pairs[at - 1].key, &less));
            if (!less)
                break;
            pairs[at] = pairs[at - 1];
        }
        pairs[at] = dict->pairs[i];
    }
    *out = pairs;
    return TRI_OK;
}

static enum tri_status dump_dict(struct tri_jinja_run *run, const struct tri_jinja_dict *dict,
                                 const struct style *style, int64_t level,
                                 struct tri_jinja_buffer *out)
{
    struct tri_jinja_pair *pairs = dict->pairs;
    if (style->sort)
        TRI_TRY(sorted_pairs(run, dict, &pairs));
    tri_jinja_buffer_text(out, "{");
    for (int64_t i = 0; i < dict->count; i++) {
        if (i > 0)
            tri_jinja_buffer_add(out, style->item->data, style->item->bytes);
        new_line(style, level + 1, out);
        TRI_TRY(dump_key(run, pairs[i].key, style, out));
        tri_jinja_buffer_add(out, style->colon->data, style->colon->bytes);
        TRI_TRY(dump(run, pairs[i].value, style, level + 1, out));
    }
    if (dict->count > 0)
        new_line(style, level, out);
    tri_jinja_buffer_text(out, "}");
    return TRI_OK;
}

static enum tri_status dump_list(struct tri_jinja_run *run, const struct tri_jinja_list *list,
                                 const struct style *style, int64_t level,
                                 struct tri_jinja_buffer *out)
{
    tri_jinja_buffer_text(out, "[");
    for (int64_t i = 0; i < list->count; i++) {
        if (i > 0)
            tri_jinja_buffer_add(out, style->item->data, style->item->bytes);
        new_line(style, level + 1, out);
        TRI_TRY(dump(run, list->items[i], style, level + 1, out));
    }
    if (list->count > 0)
        new_line(style, level, out);
    tri_jinja_buffer_text(out, "]");
    return TRI_OK;
}

static enum tri_status dump(struct tri_jinja_run *run, struct tri_jinja_value value,
                            const struct style *style, int64_t level, struct tri_jinja_buffer *out)
{
    TRI_TRY(tri_jinja_step(run, 1));
    switch (value.kind) {
    case TRI_JINJA_NONE:
        tri_jinja_buffer_text(out, "null");
        return TRI_OK;
    case TRI_JINJA_BOOL:
        tri_jinja_buffer_text(out, value.as.boolean ? "true" : "false");
        return TRI_OK;
    case TRI_JINJA_INT:
        return tri_jinja_repr(run, value, out);
    case TRI_JINJA_FLOAT:
        dump_float(value.as.real, out);
        return TRI_OK;
    case TRI_JINJA_STRING:
        TRI_TRY(tri_jinja_step(run, (int64_t)(value.as.string->bytes / 32)));
        dump_string(value.as.string, style->ascii, out);
        return TRI_OK;
    case TRI_JINJA_LIST:
    case TRI_JINJA_TUPLE:
        TRI_TRY(tri_jinja_descend(run));
        TRI_TRY(dump_list(run, value.as.list, style, level, out));
        run->depth--;
        return TRI_OK;
    case TRI_JINJA_DICT:
        TRI_TRY(tri_jinja_descend(run));
        TRI_TRY(dump_dict(run, value.as.dict, style, level, out));
        run->depth--;
        return TRI_OK;
    case TRI_JINJA_UNDEFINED:
        return tri_jinja_fail_undefined(run, value);
    default:
        return tri_jinja_fail(run, TRI_INVALID, "tojson: %s is not JSON",
                              tri_jinja_type_name(value));
    }
}

enum { MAX_INDENT = 64 };

static enum tri_status read_indent(struct tri_jinja_run *run, struct tri_jinja_value indent,
                                   struct style *style)
{
    static const char spaces[MAX_INDENT + 1] =
        "                                                                ";
    if (indent.kind == TRI_JINJA_MISSING || indent.kind == TRI_JINJA_NONE)
        return TRI_OK;
    style->indented = true;
    if (indent.kind == TRI_JINJA_STRING) {
        style->indent = indent.as.string->data;
        style->indent_bytes = indent.as.string->bytes;
        return TRI_OK;
    }
    int64_t n;
    TRI_TRY(tri_jinja_int_argument(run, indent, "tojson: indent", 0, &n));
    if (n > MAX_INDENT)
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "tojson: an indent over %d", MAX_INDENT);
    style->indent = spaces;
    style->indent_bytes = n < 0 ? 0 : (size_t)n;
    return TRI_OK;
}

enum tri_status tri_jinja_tojson(struct tri_jinja_run *run, struct tri_jinja_value self,
                                 const struct tri_jinja_arguments *arguments,
                                 struct tri_jinja_value *out)
{
    static const struct tri_jinja_string comma = {",", 1, 1, false},
                                         comma_space = {", ", 2, 2, false},
                                         colon = {": ", 2, 2, false};
    const struct tri_jinja_value *v = arguments->values;
    struct style style = {.colon = &colon};
    style.ascii = tri_jinja_truth(v[0]);
    style.sort = tri_jinja_truth(v[3]);
    TRI_TRY(read_indent(run, v[1], &style));
    style.item = style.indented ? &comma : &comma_space;
    if (v[2].kind == TRI_JINJA_TUPLE || v[2].kind == TRI_JINJA_LIST) {
        const struct tri_jinja_list *pair = v[2].as.list;
        if (pair->count != 2 || pair->items[0].kind != TRI_JINJA_STRING ||
            pair->items[1].kind != TRI_JINJA_STRING)
            return tri_jinja_fail(run, TRI_INVALID, "tojson: separators are two strings");
        style.item = pair->items[0].as.string;
        style.colon = pair->items[1].as.string;
    } else if (tri_jinja_truth(v[2])) {
        return tri_jinja_fail(run, TRI_INVALID, "tojson: separators are two strings");
    }
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    TRI_TRY(dump(run, self, &style, 0, &buffer));
    return tri_jinja_buffer_value(&buffer, out);
}
