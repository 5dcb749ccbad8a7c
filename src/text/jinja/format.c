/* "%s" % x, the filter format, and the method format without its mini-language. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja/run.h"

enum { MAX_WIDTH = 200 };

struct spec {
    bool left, zero, plus, space;
    int width, precision; /* -1: none */
    char letter;
};

static bool read_number(const struct tri_jinja_string *text, size_t *at, int *out)
{
    int value = 0;
    for (; *at < text->bytes && text->data[*at] >= '0' && text->data[*at] <= '9'; ++*at) {
        value = value * 10 + (text->data[*at] - '0');
        if (value > MAX_WIDTH)
            return false;
    }
    *out = value;
    return true;
}

/* flags width .precision letter */
static bool read_spec(const struct tri_jinja_string *text, size_t *at, struct spec *out)
{
    *out = (struct spec){.precision = -1};
    for (; *at < text->bytes; ++*at) {
        char c = text->data[*at];
        if (c == '-')
            out->left = true;
        else if (c == '0')
            out->zero = true;
        else if (c == '+')
            out->plus = true;
        else if (c == ' ')
            out->space = true;
        else
            break;
    }
    if (!read_number(text, at, &out->width))
        return false;
    if (*at < text->bytes && text->data[*at] == '.') {
        ++*at;
        if (!read_number(text, at, &out->precision))
            return false;
    }
    if (*at == text->bytes)
        return false;
    out->letter = text->data[(*at)++];
    return strchr("srdiufFeEgGxXo%", out->letter) != NULL && out->letter != '\0';
}

static enum tri_status format_number(struct tri_jinja_run *run, const struct spec *spec,
                                     struct tri_jinja_value value, struct tri_jinja_buffer *out)
{
    char format[32], text[MAX_WIDTH * 2 + 400];
    if (value.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, value);
    if (!tri_jinja_is_number(value))
        return tri_jinja_fail(run, TRI_INVALID, "%%%c needs a number, not %s", spec->letter,
                              tri_jinja_type_name(value));
    const bool real = strchr("fFeEgG", spec->letter) != NULL;
    snprintf(format, sizeof format, "%%%s%s%s%s*.*%s%c", spec->left ? "-" : "",
             spec->zero ? "0" : "", spec->plus ? "+" : "", spec->space ? " " : "",
             real ? "" : PRId64, spec->letter);
    if (!real) {
        double number = tri_jinja_as_float(value);
        bool hex = strchr("xXo", spec->letter) != NULL;
        if (value.kind == TRI_JINJA_FLOAT && (hex || !(fabs(number) < 0x1p62)))
            return tri_jinja_fail(run, TRI_UNSUPPORTED, "%%%c of this number", spec->letter);
        int64_t integer = value.kind == TRI_JINJA_FLOAT ? (int64_t)number : tri_jinja_as_int(value);
        if (hex && integer < 0)
            return tri_jinja_fail(run, TRI_UNSUPPORTED, "%%%c of a negative number", spec->letter);
        snprintf(format, sizeof format, "%%%s%s%s%s*.*l%c", spec->left ? "-" : "",
                 spec->zero && spec->precision < 0 ? "0" : "", spec->plus && !hex ? "+" : "",
                 spec->space && !hex ? " " : "", spec->letter == 'u' ? 'd' : spec->letter);
        snprintf(text, sizeof text, format, spec->width, spec->precision, (long)integer);
    } else {
        snprintf(text, sizeof text, format, spec->width, spec->precision,
                 tri_jinja_as_float(value));
    }
    tri_jinja_buffer_text(out, text);
    return TRI_OK;
}

static enum tri_status format_text(struct tri_jinja_run *run, const struct spec *spec,
                                   struct tri_jinja_value value, struct tri_jinja_buffer *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    if (spec->letter == 'r')
        TRI_TRY(tri_jinja_repr(run, value, &buffer));
    else
        TRI_TRY(tri_jinja_str(run, value, &buffer));
    TRI_TRY(tri_jinja_buffer_value(&buffer, &value));
    if (spec->precision >= 0) {
        const struct tri_jinja_value bounds[3] = {tri_jinja_none(), tri_jinja_int(spec->precision),
                                                  tri_jinja_none()};
        TRI_TRY(tri_jinja_slice(run, value, bounds, &value));
    }
    int64_t pad = spec->width - value.as.string->length;
    for (int64_t i = 0; i < pad && !spec->left; i++)
        tri_jinja_buffer_text(out, " ");
    tri_jinja_buffer_add(out, value.as.string->data, value.as.string->bytes);
    for (int64_t i = 0; i < pad && spec->left; i++)
        tri_jinja_buffer_text(out, " ");
    return TRI_OK;
}

/* The value for "%(name)": the name is stepped over. */
static enum tri_status take_named(struct tri_jinja_run *run, const struct tri_jinja_string *format,
                                  size_t *at, struct tri_jinja_value arguments,
                                  struct tri_jinja_value *out)
{
    const char *name = format->data + *at + 1;
    const char *end = memchr(name, ')', format->bytes - *at - 1);
    if (end == NULL || arguments.kind != TRI_JINJA_DICT)
        return tri_jinja_fail(run, TRI_INVALID, "%%(name) needs a mapping");
    const struct tri_jinja_value *found =
        tri_jinja_dict_find(arguments.as.dict, name, (size_t)(end - name));
    if (found == NULL)
        return tri_jinja_fail(run, TRI_INVALID, "%%(name): no such key");
    *at = (size_t)(end - format->data) + 1;
    *out = *found;
    return TRI_OK;
}

enum tri_status tri_jinja_percent(struct tri_jinja_run *run, const struct tri_jinja_string *format,
                                  struct tri_jinja_value arguments, struct tri_jinja_value *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    const bool tuple = arguments.kind == TRI_JINJA_TUPLE;
    const int64_t count = tuple ? arguments.as.list->count : 1;
    int64_t used = 0;
    bool named = false;
    for (size_t at = 0; at < format->bytes;) {
        const char *percent = memchr(format->data + at, '%', format->bytes - at);
        size_t stop = percent == NULL ? format->bytes : (size_t)(percent - format->data);
        tri_jinja_buffer_add(&buffer, format->data + at, stop - at);
        if (percent == NULL)
            break;
        at = stop + 1;
        struct tri_jinja_value value = tri_jinja_none();
        bool by_name = at < format->bytes && format->data[at] == '(';
        if (by_name)
            TRI_TRY(take_named(run, format, &at, arguments, &value));
        struct spec spec;
        if (!read_spec(format, &at, &spec))
            return tri_jinja_fail(run, TRI_UNSUPPORTED, "a format after %% that is not supported");
        TRI_TRY(tri_jinja_step(run, 1));
        if (spec.letter == '%') {
            tri_jinja_buffer_text(&buffer, "%");
            continue;
        }
        named = named || by_name;
        if (!by_name) {
            if (used == count)
                return tri_jinja_fail(run, TRI_INVALID, "not enough arguments for the format");
            value = tuple ? arguments.as.list->items[used] : arguments;
            used++;
        }
        if (spec.letter == 's' || spec.letter == 'r')
            TRI_TRY(format_text(run, &spec, value, &buffer));
        else
            TRI_TRY(format_number(run, &spec, value, &buffer));
    }
    if (!named && used < count && arguments.kind != TRI_JINJA_DICT)
        return tri_jinja_fail(run, TRI_INVALID, "not all arguments are used by the format");
    return tri_jinja_buffer_value(&buffer, out);
}

/* The value of a field "{}", "{0}" or "{name}" whose text is `field`. */
static enum tri_status take_field(struct tri_jinja_run *run, const char *field, size_t bytes,
                                  const struct tri_jinja_arguments *a, int *next,
                                  struct tri_jinja_value *out)
{
    int at = -1;
    if (bytes == 0) {
        at = (*next)++;
    } else if (field[0] >= '0' && field[0] <= '9' && bytes < 4) {
        at = 0;
        for (size_t i = 0; i < bytes; i++)
            at = field[i] >= '0' && field[i] <= '9' ? at * 10 + (field[i] - '0') : a->count;
    } else {
        for (int i = a->positional; i < a->count; i++)
            if (a->names[i]->bytes == bytes && memcmp(a->names[i]->data, field, bytes) == 0) {
                *out = a->values[i];
                return TRI_OK;
            }
    }
    if (at < 0 || at >= a->positional)
        return tri_jinja_fail(run, TRI_UNSUPPORTED,
                              "format: the field {%.*s} is not supported or has no value",
                              (int)(bytes < 60 ? bytes : 60), field);
    *out = a->values[at];
    return TRI_OK;
}

enum tri_status tri_jinja_method_format(struct tri_jinja_run *run, struct tri_jinja_value self,
                                        const struct tri_jinja_arguments *a,
                                        struct tri_jinja_value *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    const struct tri_jinja_string *format = self.as.string;
    int next = 0;
    for (size_t at = 0; at < format->bytes;) {
        const char c = format->data[at];
        if (c != '{' && c != '}') {
            size_t from = at;
            while (at < format->bytes && format->data[at] != '{' && format->data[at] != '}')
                at++;
            tri_jinja_buffer_add(&buffer, format->data + from, at - from);
            continue;
        }
        if (at + 1 < format->bytes && format->data[at + 1] == c) {
            tri_jinja_buffer_add(&buffer, &c, 1);
            at += 2;
            continue;
        }
        const char *end = c == '}' ? NULL : memchr(format->data + at, '}', format->bytes - at);
        if (end == NULL)
            return tri_jinja_fail(run, TRI_INVALID, "format: a single '%c'", c);
        struct tri_jinja_value value;
        TRI_TRY(tri_jinja_step(run, 1));
        TRI_TRY(take_field(run, format->data + at + 1, (size_t)(end - format->data) - at - 1, a,
                           &next, &value));
        TRI_TRY(tri_jinja_str(run, value, &buffer));
        at = (size_t)(end - format->data) + 1;
    }
    return tri_jinja_buffer_value(&buffer, out);
}
