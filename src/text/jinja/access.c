/* a.name, a[index] and a[start:stop:step]. */
#include <inttypes.h>
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/run.h"

struct tri_jinja_value tri_jinja_undefined_named(const struct tri_jinja_string *name)
{
    return (struct tri_jinja_value){.kind = TRI_JINJA_UNDEFINED, .as.string = name};
}

enum tri_status tri_jinja_fail_undefined(const struct tri_jinja_run *run,
                                         struct tri_jinja_value value)
{
    const struct tri_jinja_string *name = value.as.string;
    if (name == NULL)
        return tri_jinja_fail(run, TRI_INVALID, "an undefined value is used");
    return tri_jinja_fail(run, TRI_INVALID, "'%.*s' is undefined",
                          (int)(name->bytes < 200 ? name->bytes : 200), name->data);
}

static enum tri_status loop_attribute(struct tri_jinja_run *run, struct tri_jinja_value object,
                                      const struct tri_jinja_string *name,
                                      struct tri_jinja_value *out)
{
    const struct tri_jinja_loop *loop = object.as.loop;
    const int64_t i = loop->index, n = loop->items->count;
    static const struct tri_jinja_string previous = {"loop.previtem", 13, 13, false};
    static const struct tri_jinja_string following = {"loop.nextitem", 13, 13, false};
    if (tri_jinja_string_is(name, "index"))
        *out = tri_jinja_int(i + 1);
    else if (tri_jinja_string_is(name, "index0"))
        *out = tri_jinja_int(i);
    else if (tri_jinja_string_is(name, "revindex"))
        *out = tri_jinja_int(n - i);
    else if (tri_jinja_string_is(name, "revindex0"))
        *out = tri_jinja_int(n - i - 1);
    else if (tri_jinja_string_is(name, "first"))
        *out = tri_jinja_bool(i == 0);
    else if (tri_jinja_string_is(name, "last"))
        *out = tri_jinja_bool(i == n - 1);
    else if (tri_jinja_string_is(name, "length"))
        *out = tri_jinja_int(n);
    else if (tri_jinja_string_is(name, "depth"))
        *out = tri_jinja_int(1);
    else if (tri_jinja_string_is(name, "depth0"))
        *out = tri_jinja_int(0);
    else if (tri_jinja_string_is(name, "previtem"))
        *out = i > 0 ? loop->items->items[i - 1] : tri_jinja_undefined_named(&previous);
    else if (tri_jinja_string_is(name, "nextitem"))
        *out = i + 1 < n ? loop->items->items[i + 1] : tri_jinja_undefined_named(&following);
    else
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "loop.%.*s is not known",
                              (int)(name->bytes < 60 ? name->bytes : 60), name->data);
    return TRI_OK;
}

/* Methods that change their object: the sandbox of Transformers hides them. */
static bool is_mutator(struct tri_jinja_value object, const struct tri_jinja_string *name)
{
    static const char *const of_list[] = {"append", "clear",   "extend", "insert",
                                          "pop",    "reverse", "sort",   "remove"};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update"};
    bool list = object.kind == TRI_JINJA_LIST;
    if (!list && object.kind != TRI_JINJA_DICT)
        return false;
    size_t count = list ? sizeof of_list / sizeof *of_list : sizeof of_dict / sizeof *of_dict;
    for (size_t i = 0; i < count; i++)
        if (tri_jinja_string_is(name, list ? of_list[i] : of_dict[i]))
            return true;
    return false;
}

/* Python's getattr; MISSING when there is no such attribute. */
static enum tri_status get_attribute(struct tri_jinja_run *run, struct tri_jinja_value object,
                                     const struct tri_jinja_string *name,
                                     struct tri_jinja_value *out)
{
    *out = (struct tri_jinja_value){.kind = TRI_JINJA_MISSING};
    if (is_mutator(object, name)) {
        *out = tri_jinja_undefined_named(name);
        return TRI_OK;
    }
    const struct tri_jinja_builtin *method = tri_jinja_find_method(object, name->data, name->bytes);
    if (method != NULL) {
        struct tri_jinja_bound *bound = tri_jinja_pool_get(&run->pool, sizeof *bound);
        if (bound == NULL)
            return tri_jinja_pool_fail(&run->pool, run->jinja->what);
        *bound = (struct tri_jinja_bound){.builtin = method, .self = object};
        *out = (struct tri_jinja_value){.kind = TRI_JINJA_BUILTIN, .as.bound = bound};
        return TRI_OK;
    }
    if (object.kind == TRI_JINJA_LOOP)
        return loop_attribute(run, object, name, out);
    if (object.kind == TRI_JINJA_NAMESPACE) {
        struct tri_jinja_value *found =
            tri_jinja_dict_find(object.as.dict, name->data, name->bytes);
        if (found != NULL)
            *out = *found;
    } else if (object.kind == TRI_JINJA_MACRO && tri_jinja_string_is(name, "name")) {
        *out = run->jinja->symbols[object.as.macro->node->symbol];
    } else if (object.kind == TRI_JINJA_CYCLER && tri_jinja_string_is(name, "current")) {
        *out = object.as.cycler->items->items[object.as.cycler->at];
    }
    return TRI_OK;
}

enum tri_status tri_jinja_attribute(struct tri_jinja_run *run, struct tri_jinja_value object,
                                    struct tri_jinja_value name, struct tri_jinja_value *out)
{
    if (object.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, object);
    TRI_TRY(get_attribute(run, object, name.as.string, out));
    if (out->kind != TRI_JINJA_MISSING)
        return TRI_OK;
    struct tri_jinja_value *found = NULL;
    if (object.kind == TRI_JINJA_DICT) {
        TRI_TRY(tri_jinja_step(run, object.as.dict->count / 16));
        found = tri_jinja_dict_find(object.as.dict, name.as.string->data, name.as.string->bytes);
    }
    *out = found != NULL ? *found : tri_jinja_undefined_named(name.as.string);
    return TRI_OK;
}

/* Byte offset of character `index` in [0, length]. */
static size_t character_offset(const struct tri_jinja_string *string, int64_t index)
{
    if ((size_t)string->length == string->bytes)
        return (size_t)index;
    size_t at = 0;
    for (; index > 0 && at < string->bytes; index--) {
        uint32_t c;
        at += tri_character_decode(string->data + at, string->bytes - at, &c);
    }
    return at;
}

static enum tri_status character_at(struct tri_jinja_run *run,
                                    const struct tri_jinja_string *string, int64_t index,
                                    struct tri_jinja_value *out)
{
    TRI_TRY(tri_jinja_step(run, index / 64));
    size_t from = character_offset(string, index);
    uint32_t c;
    size_t n = tri_character_decode(string->data + from, string->bytes - from, &c);
    return tri_jinja_string_ref(&run->pool, string->data + from, n, out);
}

enum tri_status tri_jinja_item(struct tri_jinja_run *run, struct tri_jinja_value object,
                               struct tri_jinja_value index, struct tri_jinja_value *out)
{
    static const struct tri_jinja_string out_of_range = {"item out of range", 17, 17, false};
    if (object.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, object);
    if (object.kind == TRI_JINJA_DICT) {
        struct tri_jinja_value *found;
        TRI_TRY(tri_jinja_lookup(run, object.as.dict, index, &found));
        if (found != NULL) {
            *out = *found;
            return TRI_OK;
        }
    }
    if (index.kind == TRI_JINJA_STRING) {
        TRI_TRY(get_attribute(run, object, index.as.string, out));
        if (out->kind == TRI_JINJA_MISSING)
            *out = tri_jinja_undefined_named(index.as.string);
        return TRI_OK;
    }
    *out = tri_jinja_undefined_named(&out_of_range);
    if (!tri_jinja_is_integer(index))
        return TRI_OK;
    int64_t i = tri_jinja_as_int(index);
    if (object.kind == TRI_JINJA_LIST || object.kind == TRI_JINJA_TUPLE ||
        object.kind == TRI_JINJA_RANGE) {
        const struct tri_jinja_list *list = object.as.list;
        if (i < 0)
            i += list->count;
        if (i >= 0 && i < list->count)
            *out = list->items[i];
    } else if (object.kind == TRI_JINJA_STRING) {
        if (i < 0)
            i += object.as.string->length;
        if (i >= 0 && i < object.as.string->length)
            return character_at(run, object.as.string, i, out);
    }
    return TRI_OK;
}

/* Python's slice.indices: first index, count and step. */
static enum tri_status slice_indices(struct tri_jinja_run *run,
                                     const struct tri_jinja_value bounds[3], int64_t length,
                                     int64_t *first, int64_t *count, int64_t *step)
{
    int64_t limits[2];
    for (int i = 0; i < 3; i++)
        if (bounds[i].kind != TRI_JINJA_NONE && !tri_jinja_is_integer(bounds[i]))
            return tri_jinja_fail(run, TRI_INVALID, "a slice by %s, not by integers",
                                  tri_jinja_type_name(bounds[i]));
    *step = bounds[2].kind == TRI_JINJA_NONE ? 1 : tri_jinja_as_int(bounds[2]);
    if (*step == 0 || *step < -INT64_MAX)
        return tri_jinja_fail(run, TRI_INVALID, "a slice with step %" PRId64, *step);
    const int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? length - 1 : length;
    for (int i = 0; i < 2; i++) {
        if (bounds[i].kind == TRI_JINJA_NONE) {
            limits[i] = (*step < 0) == (i == 0) ? high : low;
            continue;
        }
        int64_t b = tri_jinja_as_int(bounds[i]);
        if (b < 0)
            b = b + length < low ? low : b + length;
        limits[i] = b > high ? high : b;
    }
    *first = limits[0];
    int64_t distance = *step > 0 ? limits[1] - limits[0] : limits[0] - limits[1];
    int64_t stride = *step > 0 ? *step : -*step;
    *count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    return TRI_OK;
}

static enum tri_status slice_string(struct tri_jinja_run *run,
                                    const struct tri_jinja_string *string, int64_t first,
                                    int64_t count, int64_t step, struct tri_jinja_value *out)
{
    TRI_TRY(tri_jinja_step(run, string->length / 64));
    if (step == 1 || count <= 1) {
        size_t from = character_offset(string, count > 0 ? first : 0);
        struct tri_jinja_string rest = {.data = string->data + from,
                                        .bytes = string->bytes - from,
                                        .length = string->length - (count > 0 ? first : 0)};
        return tri_jinja_string_ref(&run->pool, rest.data, character_offset(&rest, count), out);
    }
    /* Offsets of all characters, then the wanted ones in their order. */
    size_t *offsets =
        tri_jinja_pool_get(&run->pool, ((size_t)string->length + 1) * sizeof *offsets);
    if (offsets == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    size_t at = 0;
    for (int64_t i = 0; i < string->length && at < string->bytes; i++) {
        uint32_t c;
        offsets[i] = at;
        at += tri_character_decode(string->data + at, string->bytes - at, &c);
    }
    offsets[string->length] = string->bytes;
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    for (int64_t i = 0; i < count; i++) {
        int64_t c = first + i * step;
        tri_jinja_buffer_add(&buffer, string->data + offsets[c], offsets[c + 1] - offsets[c]);
    }
    return tri_jinja_buffer_value(&buffer, out);
}

enum tri_status tri_jinja_slice(struct tri_jinja_run *run, struct tri_jinja_value object,
                                const struct tri_jinja_value bounds[3], struct tri_jinja_value *out)
{
    int64_t first, count, step;
    if (object.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, object);
    if (object.kind == TRI_JINJA_STRING) {
        TRI_TRY(slice_indices(run, bounds, object.as.string->length, &first, &count, &step));
        return slice_string(run, object.as.string, first, count, step, out);
    }
    if (object.kind != TRI_JINJA_LIST && object.kind != TRI_JINJA_TUPLE &&
        object.kind != TRI_JINJA_RANGE) {
        *out = tri_jinja_undefined();
        return TRI_OK;
    }
    const struct tri_jinja_list *list = object.as.list;
    TRI_TRY(slice_indices(run, bounds, list->count, &first, &count, &step));
    TRI_TRY(tri_jinja_step(run, count / 8));
    enum tri_jinja_kind kind = object.kind == TRI_JINJA_TUPLE ? TRI_JINJA_TUPLE : TRI_JINJA_LIST;
    TRI_TRY(tri_jinja_list(&run->pool, kind, count, out));
    for (int64_t i = 0; i < count; i++)
        out->as.list->items[i] = list->items[first + i * step];
    out->as.list->count = count;
    return TRI_OK;
}

enum tri_status tri_jinja_path(struct tri_jinja_run *run, struct tri_jinja_value object,
                               struct tri_jinja_value path, struct tri_jinja_value *out)
{
    if (tri_jinja_is_integer(path))
        return tri_jinja_item(run, object, path, out);
    if (path.kind != TRI_JINJA_STRING)
        return tri_jinja_fail(run, TRI_INVALID, "an attribute is a string, not %s",
                              tri_jinja_type_name(path));
    const struct tri_jinja_string *text = path.as.string;
    size_t from = 0;
    *out = object;
    while (from <= text->bytes) {
        const char *dot = memchr(text->data + from, '.', text->bytes - from);
        size_t end = dot == NULL ? text->bytes : (size_t)(dot - text->data);
        struct tri_jinja_value key;
        bool digits = end > from && end - from < 10;
        int64_t number = 0;
        for (size_t i = from; i < end && digits; i++) {
            digits = text->data[i] >= '0' && text->data[i] <= '9';
            number = number * 10 + (text->data[i] - '0');
        }
        if (digits)
            key = tri_jinja_int(number);
        else
            TRI_TRY(tri_jinja_string_ref(&run->pool, text->data + from, end - from, &key));
        TRI_TRY(tri_jinja_step(run, 1));
        TRI_TRY(tri_jinja_item(run, *out, key, out));
        from = end + 1;
    }
    return TRI_OK;
}
