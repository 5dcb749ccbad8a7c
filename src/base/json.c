#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { JSON_LIMIT_BYTES = 64 << 20, SHORT_DIGITS = 15, FULL_DIGITS = 17 };

/* The parser quotes the input in its errors: keep them one printable line. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            *text = '?';
}

static enum tri_status parse(const char *what, const char *text, size_t bytes, size_t flags,
                             json_t **out)
{
    json_error_t error;
    json_t *value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | flags, &error);
    if (value == NULL) {
        if (json_error_code(&error) == json_error_out_of_memory)
            return tri_fail(TRI_NOMEM, "%s: no memory for %zu bytes of JSON", what, bytes);
        make_printable(error.text);
        return tri_fail(TRI_FORMAT, "%s, line %d, column %d: not valid JSON: %s", what, error.line,
                        error.column, error.text);
    }
    *out = value;
    return TRI_OK;
}

enum tri_status tri_json_parse(const char *what, const char *text, size_t bytes, json_t **out)
{
    return parse(what, text, bytes, 0, out);
}

static enum tri_status load(const char *path, size_t flags, json_t **out)
{
    char *text = NULL;
    size_t bytes = 0;
    TRI_TRY(tri_file_read(path, JSON_LIMIT_BYTES, &text, &bytes));
    enum tri_status st = parse(path, text, bytes, flags, out);
    free(text);
    return st;
}

enum tri_status tri_json_load(const char *path, json_t **out)
{
    return load(path, 0, out);
}

enum tri_status tri_json_load_reals(const char *path, json_t **out)
{
    return load(path, JSON_DECODE_INT_AS_REAL, out);
}

/* Digits that give every number of `value` back exactly: 15 keep "0.1" as people wrote it, and
 * 17 are enough for any double. */
static int digits_needed(const json_t *value)
{
    if (json_is_real(value)) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", SHORT_DIGITS, json_real_value(value));
        return strtod(text, NULL) == json_real_value(value) ? SHORT_DIGITS : FULL_DIGITS;
    }
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)value, name,
                        member) if (digits_needed(member) == FULL_DIGITS) return FULL_DIGITS;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (digits_needed(json_array_get(value, i)) == FULL_DIGITS)
            return FULL_DIGITS;
    return SHORT_DIGITS;
}

enum tri_status tri_json_text(const json_t *value, char **text, size_t *bytes)
{
    char *dump = json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(digits_needed(value)));
    if (dump == NULL)
        return tri_fail(TRI_NOMEM, "no memory to write JSON");
    *bytes = strlen(dump) + 1;
    dump[*bytes - 1] = '\n';
    *text = dump;
    return TRI_OK;
}

enum tri_status tri_json_save(const char *path, const json_t *value)
{
    char *text = NULL;
    size_t bytes = 0;
    enum tri_status st = tri_json_text(value, &text, &bytes);
    if (st != TRI_OK) {
        tri_error_prefix("%s", path);
        return st;
    }
    st = tri_file_write(path, text, bytes);
    free(text);
    return st;
}
