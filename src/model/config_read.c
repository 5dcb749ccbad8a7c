#include "model/config_read.h"

#include <math.h>
#include <string.h>

bool tri_config_has(const struct tri_config *c, const char *key)
{
    const json_t *value = json_object_get(c->object, key);
    return value != NULL && !json_is_null(value);
}

/* A text of fixed room that keeps the beginning of what is appended. */
struct beginning {
    char *text;
    size_t room, used; /* used grows past room when something was left out */
};

static int append(const char *piece, size_t bytes, void *ctx)
{
    struct beginning *b = ctx;
    if (b->used < b->room) {
        size_t fits = b->room - b->used;
        memcpy(b->text + b->used, piece, bytes < fits ? bytes : fits);
    }
    b->used += bytes;
    return b->used > b->room ? -1 : 0; /* enough seen: stop there */
}

const char *tri_config_shown(const json_t *value, char *text)
{
    /* One line: control and non-ASCII characters are escaped. */
    const size_t flags =
        JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12);
    if (json_is_object(value)) {
        memcpy(text, "{...}", sizeof "{...}");
        return text;
    }
    struct beginning b = {text, TRI_SHOWN_BYTES - 4, 0};
    json_dump_callback(value, append, &b, flags);
    if (b.used <= b.room)
        text[b.used] = '\0';
    else
        memcpy(text + b.room, "...", sizeof "...");
    return text;
}

static enum tri_status wrong(const struct tri_config *c, const char *key, const json_t *value,
                             const char *expected)
{
    char text[TRI_SHOWN_BYTES];
    return tri_fail(TRI_INVALID, "%s: %s%s is %s: give %s", c->what, c->inside, key,
                    tri_config_shown(value, text), expected);
}

enum tri_status tri_config_int(const struct tri_config *c, const char *key, int64_t min,
                               int64_t max, int64_t *value)
{
    const json_t *member = json_object_get(c->object, key);
    if (member == NULL)
        return TRI_OK;

    int64_t n = 0;
    bool whole = json_is_integer(member);
    if (whole) {
        n = (int64_t)json_integer_value(member);
    } else if (json_is_real(member)) { /* 8192.0 */
        double real = json_real_value(member);
        whole = real == floor(real) && fabs(real) < 9007199254740992.0; /* 2^53 */
        n = whole ? (int64_t)real : 0;
    }
    if (!whole || n < min || n > max) {
        char expected[80];
        snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)min,
                 (long long)max);
        return wrong(c, key, member, expected);
    }
    *value = n;
    return TRI_OK;
}

enum tri_status tri_config_number(const struct tri_config *c, const char *key, double min,
                                  double max, double *value)
{
    const json_t *member = json_object_get(c->object, key);
    if (member == NULL)
        return TRI_OK;
    double number = json_number_value(member);
    if (!json_is_number(member) || !(number >= min && number <= max)) {
        char expected[80];
        snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
        return wrong(c, key, member, expected);
    }
    *value = number;
    return TRI_OK;
}

enum tri_status tri_config_bool(const struct tri_config *c, const char *key, bool *value)
{
    const json_t *member = json_object_get(c->object, key);
    if (member == NULL)
        return TRI_OK;
    if (!json_is_boolean(member))
        return wrong(c, key, member, "true or false");
    *value = json_is_true(member);
    return TRI_OK;
}

enum tri_status tri_config_string(const struct tri_config *c, const char *key, const char **value)
{
    const json_t *member = json_object_get(c->object, key);
    if (member == NULL)
        return TRI_OK;
    if (!json_is_string(member))
        return wrong(c, key, member, "a text in quotes");
    *value = json_string_value(member);
    return TRI_OK;
}
