/* ==, <, in, and the look-up of keys. */
#include <math.h>
#include <string.h>

#include "text/jinja/run.h"

static bool is_sequence(struct tri_jinja_value v)
{
    return v.kind == TRI_JINJA_LIST || v.kind == TRI_JINJA_TUPLE || v.kind == TRI_JINJA_RANGE;
}

static enum tri_status equal_lists(struct tri_jinja_run *run, const struct tri_jinja_list *a,
                                   const struct tri_jinja_list *b, bool *out)
{
    *out = a->count == b->count;
    for (int64_t i = 0; i < a->count && *out; i++)
        TRI_TRY(tri_jinja_equal(run, a->items[i], b->items[i], out));
    return TRI_OK;
}

static enum tri_status equal_dicts(struct tri_jinja_run *run, const struct tri_jinja_dict *a,
                                   const struct tri_jinja_dict *b, bool *out)
{
    *out = a->count == b->count;
    for (int64_t i = 0; i < a->count && *out; i++) {
        struct tri_jinja_value *other;
        TRI_TRY(tri_jinja_lookup(run, b, a->pairs[i].key, &other));
        *out = other != NULL;
        if (*out)
            TRI_TRY(tri_jinja_equal(run, a->pairs[i].value, *other, out));
    }
    return TRI_OK;
}

/* int against float without rounding the int. */
static bool equal_numbers(struct tri_jinja_value a, struct tri_jinja_value b)
{
    if (tri_jinja_is_integer(a) && tri_jinja_is_integer(b))
        return tri_jinja_as_int(a) == tri_jinja_as_int(b);
    if (a.kind == TRI_JINJA_FLOAT && b.kind == TRI_JINJA_FLOAT)
        return a.as.real == b.as.real;
    double real = a.kind == TRI_JINJA_FLOAT ? a.as.real : b.as.real;
    int64_t integer = tri_jinja_as_int(a.kind == TRI_JINJA_FLOAT ? b : a);
    return real >= -0x1p63 && real < 0x1p63 && trunc(real) == real && (int64_t)real == integer;
}

enum tri_status tri_jinja_equal(struct tri_jinja_run *run, struct tri_jinja_value a,
                                struct tri_jinja_value b, bool *out)
{
    *out = false;
    TRI_TRY(tri_jinja_step(run, 1));
    if (tri_jinja_is_number(a) && tri_jinja_is_number(b)) {
        *out = equal_numbers(a, b);
        return TRI_OK;
    }
    if (a.kind != b.kind)
        return TRI_OK;
    switch (a.kind) {
    case TRI_JINJA_MISSING:
    case TRI_JINJA_UNDEFINED:
    case TRI_JINJA_NONE:
        *out = true;
        return TRI_OK;
    case TRI_JINJA_STRING:
        *out = tri_jinja_same_string(a.as.string, b.as.string);
        return tri_jinja_step(run, *out ? (int64_t)(a.as.string->bytes / 256) : 0);
    case TRI_JINJA_LIST:
    case TRI_JINJA_TUPLE:
    case TRI_JINJA_RANGE:
        TRI_TRY(tri_jinja_descend(run));
        TRI_TRY(equal_lists(run, a.as.list, b.as.list, out));
        run->depth--;
        return TRI_OK;
    case TRI_JINJA_DICT:
        TRI_TRY(tri_jinja_descend(run));
        TRI_TRY(equal_dicts(run, a.as.dict, b.as.dict, out));
        run->depth--;
        return TRI_OK;
    case TRI_JINJA_BUILTIN:
        *out = a.as.bound->builtin == b.as.bound->builtin;
        return TRI_OK;
    default:
        *out = a.as.list == b.as.list; /* the same object */
        return TRI_OK;
    }
}

enum tri_status tri_jinja_less(struct tri_jinja_run *run, struct tri_jinja_value a,
                               struct tri_jinja_value b, bool *out)
{
    TRI_TRY(tri_jinja_step(run, 1));
    if (a.kind == TRI_JINJA_UNDEFINED || b.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, a.kind == TRI_JINJA_UNDEFINED ? a : b);
    if (tri_jinja_is_integer(a) && tri_jinja_is_integer(b)) {
        *out = tri_jinja_as_int(a) < tri_jinja_as_int(b);
        return TRI_OK;
    }
    if (tri_jinja_is_number(a) && tri_jinja_is_number(b)) {
        *out = tri_jinja_as_float(a) < tri_jinja_as_float(b);
        return TRI_OK;
    }
    if (a.kind == TRI_JINJA_STRING && b.kind == TRI_JINJA_STRING) {
        /* UTF-8 sorts as its characters do. */
        const struct tri_jinja_string *x = a.as.string, *y = b.as.string;
        size_t shorter = x->bytes < y->bytes ? x->bytes : y->bytes;
        int order = memcmp(x->data, y->data, shorter);
        *out = order < 0 || (order == 0 && x->bytes < y->bytes);
        return tri_jinja_step(run, (int64_t)(shorter / 256));
    }
    if (a.kind != b.kind || !is_sequence(a) || a.kind == TRI_JINJA_RANGE)
        return tri_jinja_fail(run, TRI_INVALID, "%s and %s cannot be ordered",
                              tri_jinja_type_name(a), tri_jinja_type_name(b));
    TRI_TRY(tri_jinja_descend(run));
    const struct tri_jinja_list *x = a.as.list, *y = b.as.list;
    bool same = true;
    int64_t i = 0;
    for (; i < x->count && i < y->count; i++) {
        TRI_TRY(tri_jinja_equal(run, x->items[i], y->items[i], &same));
        if (!same)
            break;
    }
    *out = x->count < y->count;
    if (!same)
        TRI_TRY(tri_jinja_less(run, x->items[i], y->items[i], out));
    run->depth--;
    return TRI_OK;
}

enum tri_status tri_jinja_lookup(struct tri_jinja_run *run, const struct tri_jinja_dict *dict,
                                 struct tri_jinja_value key, struct tri_jinja_value **out)
{
    *out = NULL;
    TRI_TRY(tri_jinja_step(run, dict->count / 16));
    if (key.kind == TRI_JINJA_STRING) {
        *out = tri_jinja_dict_find(dict, key.as.string->data, key.as.string->bytes);
        return TRI_OK;
    }
    for (int64_t i = 0; i < dict->count; i++) {
        bool same;
        if (dict->pairs[i].key.kind == TRI_JINJA_STRING)
            continue;
        TRI_TRY(tri_jinja_equal(run, dict->pairs[i].key, key, &same));
        if (same) {
            *out = &dict->pairs[i].value;
            break;
        }
    }
    return TRI_OK;
}

enum tri_status tri_jinja_dict_set(struct tri_jinja_run *run, struct tri_jinja_dict *dict,
                                   struct tri_jinja_value key, struct tri_jinja_value value)
{
    struct tri_jinja_value *found;
    if (key.kind == TRI_JINJA_LIST || key.kind == TRI_JINJA_DICT)
        return tri_jinja_fail(run, TRI_INVALID, "%s cannot be a key", tri_jinja_type_name(key));
    TRI_TRY(tri_jinja_lookup(run, dict, key, &found));
    if (found == NULL)
        return tri_jinja_dict_add(&run->pool, dict, key, value);
    *found = value;
    return TRI_OK;
}

static enum tri_status contains(struct tri_jinja_run *run, struct tri_jinja_value container,
                                struct tri_jinja_value item, bool *out)
{
    *out = false;
    if (container.kind == TRI_JINJA_STRING) {
        if (item.kind == TRI_JINJA_UNDEFINED)
            return tri_jinja_fail_undefined(run, item);
        if (item.kind != TRI_JINJA_STRING)
            return tri_jinja_fail(run, TRI_INVALID, "'in <string>' needs a string, not %s",
                                  tri_jinja_type_name(item));
        TRI_TRY(tri_jinja_step(run, (int64_t)(container.as.string->bytes / 64)));
        *out = tri_jinja_find_bytes(container.as.string, item.as.string, 0) >= 0;
        return TRI_OK;
    }
    if (container.kind == TRI_JINJA_DICT) {
        struct tri_jinja_value *found;
        if (item.kind == TRI_JINJA_LIST || item.kind == TRI_JINJA_DICT)
            return tri_jinja_fail(run, TRI_INVALID, "%s cannot be a key",
                                  tri_jinja_type_name(item));
        TRI_TRY(tri_jinja_lookup(run, container.as.dict, item, &found));
        *out = found != NULL;
        return TRI_OK;
    }
    struct tri_jinja_list *list;
    TRI_TRY(tri_jinja_iterate(run, container, &list));
    for (int64_t i = 0; i < list->count && !*out; i++)
        TRI_TRY(tri_jinja_equal(run, list->items[i], item, out));
    return TRI_OK;
}

enum tri_status tri_jinja_compare(struct tri_jinja_run *run, enum tri_jinja_operator op,
                                  struct tri_jinja_value a, struct tri_jinja_value b, bool *out)
{
    bool result;
    switch (op) {
    case TRI_JINJA_EQ:
    case TRI_JINJA_NE:
        TRI_TRY(tri_jinja_equal(run, a, b, &result));
        *out = result == (op == TRI_JINJA_EQ);
        return TRI_OK;
    case TRI_JINJA_IN:
    case TRI_JINJA_NOT_IN:
        TRI_TRY(contains(run, b, a, &result));
        *out = result == (op == TRI_JINJA_IN);
        return TRI_OK;
    default:
        break;
    }
    /* NaN makes every comparison false, so >= is not the opposite of <. */
    const bool swapped = op == TRI_JINJA_GT || op == TRI_JINJA_GE;
    TRI_TRY(tri_jinja_less(run, swapped ? b : a, swapped ? a : b, &result));
    if (!result && (op == TRI_JINJA_LE || op == TRI_JINJA_GE))
        TRI_TRY(tri_jinja_equal(run, a, b, &result));
    *out = result;
    return TRI_OK;
}
