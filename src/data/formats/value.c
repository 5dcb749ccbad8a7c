/* JSON values as readers of formats ask for them. */
#include <string.h>

#include "data/formats/format.h"
#include "text/utf8.h"

const char *tri_json_kind(const json_t *value)
{
    if (!value)
        return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "something unknown";
}

const json_t *tri_json_given(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);
    return value && !json_is_null(value) ? value : NULL;
}

enum tri_status tri_json_string_of(const json_t *root, const char *name, const char **text,
                                   size_t *bytes)
{
    const json_t *value = json_object_get(root, name);
    if (!json_is_string(value))
        return tri_fail(TRI_INVALID, "\"%s\" is %s: it must be a string", name,
                        tri_json_kind(value));
    *text = json_string_value(value);
    *bytes = json_string_length(value);
    return TRI_OK;
}

void tri_printable(const char *name, char *out, size_t room)
{
    size_t n = strlen(name);
    if (n >= room)
        n = tri_utf8_valid(name, room - 1); /* cut between characters */
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7F ? '?' : name[i];
    out[n] = '\0';
}
