/* What a loop sees of a value, its length, and checks of arguments. */
#include "text/jinja/characters.h"
#include "text/jinja/run.h"

static enum tri_status characters_of(struct tri_jinja_run *run,
                                     const struct tri_jinja_string *string,
                                     struct tri_jinja_list *list)
{
    for (size_t at = 0; at < string->bytes;) {
        uint32_t c;
        size_t n = tri_character_decode(string->data + at, string->bytes - at, &c);
        TRI_TRY(tri_jinja_step(run, 1));
        TRI_TRY(
            tri_jinja_string_ref(&run->pool, string->data + at, n, &list->items[list->count++]));
        at += n;
    }
    return TRI_OK;
}

enum tri_status tri_jinja_iterate(struct tri_jinja_run *run, struct tri_jinja_value value,
                                  struct tri_jinja_list **out)
{
    struct tri_jinja_value list;
    switch (value.kind) {
    case TRI_JINJA_LIST:
    case TRI_JINJA_TUPLE:
    case TRI_JINJA_VIEW:
    case TRI_JINJA_RANGE:
        *out = value.as.list;
        return TRI_OK;
    case TRI_JINJA_ITER: {
        /* A generator is used up by whoever iterates first. */
        struct tri_jinja_list *left = value.as.list;
        TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, 0, &list));
        if (left->next < left->count)
            list.as.list->items = left->items + left->next;
        list.as.list->count = list.as.list->capacity = left->count - left->next;
        left->next = left->count;
        *out = list.as.list;
        return TRI_OK;
    }
    case TRI_JINJA_STRING:
        TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, value.as.string->length, &list));
        TRI_TRY(characters_of(run, value.as.string, list.as.list));
        *out = list.as.list;
        return TRI_OK;
    case TRI_JINJA_DICT:
        TRI_TRY(tri_jinja_step(run, value.as.dict->count / 8));
        TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, value.as.dict->count, &list));
        for (int64_t i = 0; i < value.as.dict->count; i++)
            list.as.list->items[list.as.list->count++] = value.as.dict->pairs[i].key;
        *out = list.as.list;
        return TRI_OK;
    case TRI_JINJA_UNDEFINED:
        TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, 0, &list));
        *out = list.as.list;
        return TRI_OK;
    default:
        return tri_jinja_fail(run, TRI_INVALID, "%s cannot be iterated",
                              tri_jinja_type_name(value));
    }
}

enum tri_status tri_jinja_length(struct tri_jinja_run *run, struct tri_jinja_value value,
                                 int64_t *out)
{
    switch (value.kind) {
    case TRI_JINJA_LIST:
    case TRI_JINJA_TUPLE:
    case TRI_JINJA_VIEW:
    case TRI_JINJA_RANGE:
        *out = value.as.list->count;
        return TRI_OK;
    case TRI_JINJA_STRING:
        *out = value.as.string->length;
        return TRI_OK;
    case TRI_JINJA_DICT:
        *out = value.as.dict->count;
        return TRI_OK;
    case TRI_JINJA_UNDEFINED:
        *out = 0;
        return TRI_OK;
    case TRI_JINJA_LOOP:
        *out = value.as.loop->items->count;
        return TRI_OK;
    default:
        return tri_jinja_fail(run, TRI_INVALID, "%s has no length", tri_jinja_type_name(value));
    }
}

enum tri_status tri_jinja_int_argument(struct tri_jinja_run *run, struct tri_jinja_value value,
                                       const char *what, int64_t fallback, int64_t *out)
{
    if (value.kind == TRI_JINJA_MISSING) {
        *out = fallback;
        return TRI_OK;
    }
    if (!tri_jinja_is_integer(value))
        return tri_jinja_fail(run, TRI_INVALID, "%s must be an integer, not %s", what,
                              tri_jinja_type_name(value));
    *out = tri_jinja_as_int(value);
    return TRI_OK;
}

enum tri_status tri_jinja_string_argument(struct tri_jinja_run *run, struct tri_jinja_value value,
                                          const char *what, const struct tri_jinja_string **out)
{
    *out = NULL;
    if (value.kind == TRI_JINJA_MISSING || value.kind == TRI_JINJA_NONE)
        return TRI_OK;
    if (value.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, value);
    if (value.kind != TRI_JINJA_STRING)
        return tri_jinja_fail(run, TRI_INVALID, "%s must be a string, not %s", what,
                              tri_jinja_type_name(value));
    *out = value.as.string;
    return TRI_OK;
}
