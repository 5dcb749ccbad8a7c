#include "text/member.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_among(const char *name, const char *names)
{
    const size_t length = strlen(name);
    while (*names != '\0') {
        const size_t word = strcspn(names, " ");
        if (word == length && memcmp(names, name, word) == 0)
            return true;
        names += word + (names[word] == ' ');
    }
    return false;
}

enum tri_status tri_members_check(const json_t *object, const char *names)
{
    if (!json_is_object(object))
        return tri_fail(TRI_FORMAT, "this must be a JSON object");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if (!is_among(name, names))
            return tri_fail(TRI_UNSUPPORTED, "\"%.64s\" is not known, and may change the tokens",
                            name);
    }
    return TRI_OK;
}

const char *tri_member_type(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "";
}

static const json_t *get(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

enum tri_status tri_member_bool(const json_t *object, const char *name, bool fallback, bool *out)
{
    const json_t *value = get(object, name);
    if (value && !json_is_boolean(value))
        return tri_fail(TRI_FORMAT, "\"%s\" must be true or false", name);
    *out = value ? json_is_true(value) : fallback;
    return TRI_OK;
}

enum tri_status tri_member_text(const json_t *object, const char *name, const char **out,
                                size_t *bytes)
{
    const json_t *value = get(object, name);
    if (value && !json_is_string(value))
        return tri_fail(TRI_FORMAT, "\"%s\" must be a string", name);
    *out = json_string_value(value);
    *bytes = json_string_length(value);
    return TRI_OK;
}

enum tri_status tri_member_string(const json_t *object, const char *name, const char **out,
                                  size_t *bytes)
{
    if (!get(object, name))
        return tri_fail(TRI_FORMAT, "\"%s\" is missing", name);
    return tri_member_text(object, name, out, bytes);
}

enum tri_status tri_member_array(const json_t *object, const char *name, const json_t **out)
{
    const json_t *value = get(object, name);
    if (!json_is_array(value))
        return tri_fail(TRI_FORMAT, "\"%s\" must be a list", name);
    *out = value;
    return TRI_OK;
}

enum tri_status
tri_member_sequence(const json_t *object, const char *name, int depth,
                    enum tri_status (*visit)(const json_t *part, int depth, void *ctx), void *ctx)
{
    enum { DEPTH = 8 };
    char names[64];
    const json_t *list = NULL;
    snprintf(names, sizeof names, "type %s", name);
    TRI_TRY(tri_members_check(object, names));
    TRI_TRY(tri_member_array(object, name, &list));
    if (depth == DEPTH)
        return tri_fail(TRI_UNSUPPORTED, "more than %d Sequences inside each other", DEPTH);
    for (size_t i = 0; i < json_array_size(list); i++)
        TRI_TRY(visit(json_array_get(list, i), depth + 1, ctx));
    return TRI_OK;
}

enum tri_status tri_member_count(const json_t *object, const char *name, int64_t max, int64_t *out)
{
    const json_t *value = get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > max)
        return tri_fail(TRI_FORMAT, "\"%s\" must be an integer from 0 to %" PRId64, name, max);
    *out = json_integer_value(value);
    return TRI_OK;
}
