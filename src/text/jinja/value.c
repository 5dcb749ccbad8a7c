#include "text/jinja/value.h"

#include <string.h>

static enum tri_status no_memory(const struct tri_jinja_pool *pool)
{
    return tri_jinja_pool_fail(pool, "chat template");
}

struct tri_jinja_value tri_jinja_none(void)
{
    return (struct tri_jinja_value){.kind = TRI_JINJA_NONE};
}

struct tri_jinja_value tri_jinja_bool(bool value)
{
    return (struct tri_jinja_value){.kind = TRI_JINJA_BOOL, .as.boolean = value};
}

struct tri_jinja_value tri_jinja_int(int64_t value)
{
    return (struct tri_jinja_value){.kind = TRI_JINJA_INT, .as.integer = value};
}

struct tri_jinja_value tri_jinja_float(double value)
{
    return (struct tri_jinja_value){.kind = TRI_JINJA_FLOAT, .as.real = value};
}

struct tri_jinja_value tri_jinja_undefined(void)
{
    return (struct tri_jinja_value){.kind = TRI_JINJA_UNDEFINED};
}

enum tri_status tri_jinja_string_ref(struct tri_jinja_pool *pool, const char *data, size_t bytes,
                                     struct tri_jinja_value *out)
{
    struct tri_jinja_string *string = tri_jinja_pool_get(pool, sizeof *string);
    if (string == NULL)
        return no_memory(pool);
    int64_t length = 0;
    for (size_t i = 0; i < bytes; i++)
        length += ((unsigned char)data[i] & 0xC0) != 0x80;
    *string = (struct tri_jinja_string){.data = data, .bytes = bytes, .length = length};
    *out = (struct tri_jinja_value){.kind = TRI_JINJA_STRING, .as.string = string};
    return TRI_OK;
}

enum tri_status tri_jinja_string(struct tri_jinja_pool *pool, const char *data, size_t bytes,
                                 struct tri_jinja_value *out)
{
    char *copy = tri_jinja_pool_get(pool, bytes + 1);
    if (copy == NULL)
        return no_memory(pool);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    return tri_jinja_string_ref(pool, copy, bytes, out);
}

enum tri_status tri_jinja_literal(struct tri_jinja_pool *pool, const char *text,
                                  struct tri_jinja_value *out)
{
    return tri_jinja_string_ref(pool, text, strlen(text), out);
}

enum tri_status tri_jinja_list(struct tri_jinja_pool *pool, enum tri_jinja_kind kind,
                               int64_t capacity, struct tri_jinja_value *out)
{
    struct tri_jinja_list *list = tri_jinja_pool_get(pool, sizeof *list);
    if (list == NULL)
        return no_memory(pool);
    if (capacity > 0) {
        if ((uint64_t)capacity > pool->limit / sizeof *list->items)
            return no_memory(pool);
        list->items = tri_jinja_pool_get(pool, (size_t)capacity * sizeof *list->items);
        if (list->items == NULL)
            return no_memory(pool);
        list->capacity = capacity;
    }
    *out = (struct tri_jinja_value){.kind = kind, .as.list = list};
    return TRI_OK;
}

/* Twice the room for an array; the old one stays in the pool. */
static void *grow(struct tri_jinja_pool *pool, const void *old, int64_t *capacity, size_t size)
{
    int64_t wanted = *capacity < 4 ? 8 : 2 * *capacity;
    if ((uint64_t)wanted > pool->limit / size)
        return NULL;
    void *room = tri_jinja_pool_get(pool, (size_t)wanted * size);
    if (room == NULL)
        return NULL;
    if (*capacity > 0)
        memcpy(room, old, (size_t)*capacity * size);
    *capacity = wanted;
    return room;
}

enum tri_status tri_jinja_list_add(struct tri_jinja_pool *pool, struct tri_jinja_list *list,
                                   struct tri_jinja_value item)
{
    if (list->count == list->capacity) {
        struct tri_jinja_value *room = grow(pool, list->items, &list->capacity, sizeof *room);
        if (room == NULL)
            return no_memory(pool);
        list->items = room;
    }
    list->items[list->count++] = item;
    return TRI_OK;
}

enum tri_status tri_jinja_pair(struct tri_jinja_pool *pool, struct tri_jinja_value first,
                               struct tri_jinja_value second, struct tri_jinja_value *out)
{
    TRI_TRY(tri_jinja_list(pool, TRI_JINJA_TUPLE, 2, out));
    out->as.list->items[0] = first;
    out->as.list->items[1] = second;
    out->as.list->count = 2;
    return TRI_OK;
}

enum tri_status tri_jinja_dict(struct tri_jinja_pool *pool, enum tri_jinja_kind kind,
                               int64_t capacity, struct tri_jinja_value *out)
{
    struct tri_jinja_dict *dict = tri_jinja_pool_get(pool, sizeof *dict);
    if (dict == NULL)
        return no_memory(pool);
    dict->message = -1;
    if (capacity > 0) {
        if ((uint64_t)capacity > pool->limit / sizeof *dict->pairs)
            return no_memory(pool);
        dict->pairs = tri_jinja_pool_get(pool, (size_t)capacity * sizeof *dict->pairs);
        if (dict->pairs == NULL)
            return no_memory(pool);
        dict->capacity = capacity;
    }
    *out = (struct tri_jinja_value){.kind = kind, .as.dict = dict};
    return TRI_OK;
}

enum tri_status tri_jinja_dict_add(struct tri_jinja_pool *pool, struct tri_jinja_dict *dict,
                                   struct tri_jinja_value key, struct tri_jinja_value value)
{
    if (dict->count == dict->capacity) {
        struct tri_jinja_pair *room = grow(pool, dict->pairs, &dict->capacity, sizeof *room);
        if (room == NULL)
            return no_memory(pool);
        dict->pairs = room;
    }
    dict->pairs[dict->count++] = (struct tri_jinja_pair){.key = key, .value = value};
    return TRI_OK;
}

struct tri_jinja_value *tri_jinja_dict_find(const struct tri_jinja_dict *dict, const char *key,
                                            size_t bytes)
{
    for (int64_t i = 0; i < dict->count; i++) {
        const struct tri_jinja_value *k = &dict->pairs[i].key;
        if (k->kind == TRI_JINJA_STRING && k->as.string->bytes == bytes &&
            memcmp(k->as.string->data, key, bytes) == 0)
            return &dict->pairs[i].value;
    }
    return NULL;
}

bool tri_jinja_string_is(const struct tri_jinja_string *string, const char *text)
{
    return string->bytes == strlen(text) && memcmp(string->data, text, string->bytes) == 0;
}

bool tri_jinja_same_string(const struct tri_jinja_string *a, const struct tri_jinja_string *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

bool tri_jinja_is_listlike(struct tri_jinja_value value)
{
    return value.kind >= TRI_JINJA_LIST && value.kind <= TRI_JINJA_RANGE;
}

bool tri_jinja_is_number(struct tri_jinja_value value)
{
    return value.kind >= TRI_JINJA_BOOL && value.kind <= TRI_JINJA_FLOAT;
}

bool tri_jinja_is_integer(struct tri_jinja_value value)
{
    return value.kind == TRI_JINJA_BOOL || value.kind == TRI_JINJA_INT;
}

int64_t tri_jinja_as_int(struct tri_jinja_value value)
{
    return value.kind == TRI_JINJA_BOOL ? value.as.boolean : value.as.integer;
}

double tri_jinja_as_float(struct tri_jinja_value value)
{
    return value.kind == TRI_JINJA_FLOAT ? value.as.real : (double)tri_jinja_as_int(value);
}

bool tri_jinja_truth(struct tri_jinja_value value)
{
    switch (value.kind) {
    case TRI_JINJA_MISSING:
    case TRI_JINJA_UNDEFINED:
    case TRI_JINJA_NONE:
        return false;
    case TRI_JINJA_BOOL:
        return value.as.boolean;
    case TRI_JINJA_INT:
        return value.as.integer != 0;
    case TRI_JINJA_FLOAT:
        return value.as.real != 0;
    case TRI_JINJA_STRING:
        return value.as.string->bytes > 0;
    case TRI_JINJA_LIST:
    case TRI_JINJA_TUPLE:
    case TRI_JINJA_VIEW:
    case TRI_JINJA_RANGE:
        return value.as.list->count > 0;
    case TRI_JINJA_DICT:
        return value.as.dict->count > 0;
    default:
        return true;
    }
}

const char *tri_jinja_type_name(struct tri_jinja_value value)
{
    static const char *const names[] = {
        [TRI_JINJA_MISSING] = "nothing",  [TRI_JINJA_UNDEFINED] = "Undefined",
        [TRI_JINJA_NONE] = "NoneType",    [TRI_JINJA_BOOL] = "bool",
        [TRI_JINJA_INT] = "int",          [TRI_JINJA_FLOAT] = "float",
        [TRI_JINJA_STRING] = "str",       [TRI_JINJA_LIST] = "list",
        [TRI_JINJA_TUPLE] = "tuple",      [TRI_JINJA_VIEW] = "dict view",
        [TRI_JINJA_ITER] = "generator",   [TRI_JINJA_RANGE] = "range",
        [TRI_JINJA_DICT] = "dict",        [TRI_JINJA_NAMESPACE] = "Namespace",
        [TRI_JINJA_LOOP] = "LoopContext", [TRI_JINJA_MACRO] = "Macro",
        [TRI_JINJA_BUILTIN] = "function", [TRI_JINJA_CYCLER] = "Cycler",
        [TRI_JINJA_JOINER] = "Joiner",
    };
    return names[value.kind];
}
