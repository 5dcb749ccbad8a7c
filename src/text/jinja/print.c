/* str() and repr() of values. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/run.h"

char *tri_jinja_float_text(double value, char text[32])
{
    if (!isfinite(value)) {
        strcpy(text, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return text;
    }
    /* The fewest digits that read back to the same bits, then Python's layout of them. */
    char digits[32];
    for (int n = 0; n < 17; n++) {
        snprintf(digits, sizeof digits, "%.*e", n, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    const char *p = digits;
    char *out = text;
    if (*p == '-')
        *out++ = *p++;
    int exponent = atoi(strchr(p, 'e') + 1), count = 0;
    char plain[20] = {0};
    for (; *p != 'e'; p++)
        if (*p != '.')
            plain[count++] = *p;
    if (exponent < -4 || exponent >= 16) {
        *out++ = plain[0];
        if (count > 1) {
            *out++ = '.';
            memcpy(out, plain + 1, (size_t)count - 1);
            out += count - 1;
        }
        sprintf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return text;
    }
    int point = exponent + 1; /* digits before it */
    if (point <= 0) {
        *out++ = '0';
        *out++ = '.';
        for (; point < 0; point++)
            *out++ = '0';
        point = -1;
    }
    for (int i = 0; i < count || i <= point; i++) {
        if (i == point)
            *out++ = '.';
        *out++ = i < count ? plain[i] : '0';
    }
    *out = '\0';
    return text;
}

static void repr_string(const struct tri_jinja_string *string, struct tri_jinja_buffer *out)
{
    const bool apostrophe = memchr(string->data, '\'', string->bytes) != NULL;
    const bool quote = memchr(string->data, '"', string->bytes) != NULL;
    const uint32_t mark = apostrophe && !quote ? '"' : '\'';
    char escape[16];
    tri_jinja_buffer_character(out, mark);
    for (size_t at = 0; at < string->bytes;) {
        uint32_t c;
        at += tri_character_decode(string->data + at, string->bytes - at, &c);
        if (c == mark || c == '\\') {
            tri_jinja_buffer_character(out, '\\');
            tri_jinja_buffer_character(out, c);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            tri_jinja_buffer_text(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (tri_character_is_printable(c)) {
            tri_jinja_buffer_character(out, c);
        } else {
            snprintf(escape, sizeof escape,
                     c < 0x100     ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                     (unsigned)c);
            tri_jinja_buffer_text(out, escape);
        }
    }
    tri_jinja_buffer_character(out, mark);
}

static enum tri_status repr_list(struct tri_jinja_run *run, struct tri_jinja_value value,
                                 struct tri_jinja_buffer *out)
{
    const struct tri_jinja_list *list = value.as.list;
    char text[96];
    if (value.kind == TRI_JINJA_RANGE) {
        snprintf(text, sizeof text,
                 list->step == 1 ? "range(%" PRId64 ", %" PRId64 ")"
                                 : "range(%" PRId64 ", %" PRId64 ", %" PRId64 ")",
                 list->start, list->stop, list->step);
        tri_jinja_buffer_text(out, text);
        return TRI_OK;
    }
    if (value.kind == TRI_JINJA_VIEW) {
        tri_jinja_buffer_text(out, list->name);
        tri_jinja_buffer_text(out, "(");
    }
    tri_jinja_buffer_text(out, value.kind == TRI_JINJA_TUPLE ? "(" : "[");
    for (int64_t i = 0; i < list->count; i++) {
        if (i > 0)
            tri_jinja_buffer_text(out, ", ");
        TRI_TRY(tri_jinja_repr(run, list->items[i], out));
    }
    if (value.kind == TRI_JINJA_TUPLE)
        tri_jinja_buffer_text(out, list->count == 1 ? ",)" : ")");
    else
        tri_jinja_buffer_text(out, value.kind == TRI_JINJA_VIEW ? "])" : "]");
    return TRI_OK;
}

static enum tri_status repr_dict(struct tri_jinja_run *run, struct tri_jinja_value value,
                                 struct tri_jinja_buffer *out)
{
    const bool namespace = value.kind == TRI_JINJA_NAMESPACE;
    tri_jinja_buffer_text(out, namespace ? "<Namespace {" : "{");
    for (int64_t i = 0; i < value.as.dict->count; i++) {
        if (i > 0)
            tri_jinja_buffer_text(out, ", ");
        TRI_TRY(tri_jinja_repr(run, value.as.dict->pairs[i].key, out));
        tri_jinja_buffer_text(out, ": ");
        TRI_TRY(tri_jinja_repr(run, value.as.dict->pairs[i].value, out));
    }
    tri_jinja_buffer_text(out, namespace ? "}>" : "}");
    return TRI_OK;
}

static enum tri_status repr_deep(struct tri_jinja_run *run, struct tri_jinja_value value,
                                 struct tri_jinja_buffer *out)
{
    TRI_TRY(tri_jinja_descend(run));
    if (tri_jinja_is_listlike(value))
        TRI_TRY(repr_list(run, value, out));
    else
        TRI_TRY(repr_dict(run, value, out));
    run->depth--;
    return TRI_OK;
}

enum tri_status tri_jinja_repr(struct tri_jinja_run *run, struct tri_jinja_value value,
                               struct tri_jinja_buffer *out)
{
    char text[64];
    TRI_TRY(tri_jinja_step(run, 1));
    switch (value.kind) {
    case TRI_JINJA_UNDEFINED:
        tri_jinja_buffer_text(out, "Undefined");
        return TRI_OK;
    case TRI_JINJA_NONE:
        tri_jinja_buffer_text(out, "None");
        return TRI_OK;
    case TRI_JINJA_BOOL:
        tri_jinja_buffer_text(out, value.as.boolean ? "True" : "False");
        return TRI_OK;
    case TRI_JINJA_INT:
        snprintf(text, sizeof text, "%" PRId64, value.as.integer);
        tri_jinja_buffer_text(out, text);
        return TRI_OK;
    case TRI_JINJA_FLOAT:
        tri_jinja_buffer_text(out, tri_jinja_float_text(value.as.real, text));
        return TRI_OK;
    case TRI_JINJA_STRING:
        TRI_TRY(tri_jinja_step(run, (int64_t)(value.as.string->bytes / 16)));
        repr_string(value.as.string, out);
        return TRI_OK;
    case TRI_JINJA_LIST:
    case TRI_JINJA_TUPLE:
    case TRI_JINJA_VIEW:
    case TRI_JINJA_RANGE:
    case TRI_JINJA_DICT:
    case TRI_JINJA_NAMESPACE:
        return repr_deep(run, value, out);
    case TRI_JINJA_LOOP:
        snprintf(text, sizeof text, "<LoopContext %" PRId64 "/%" PRId64 ">",
                 value.as.loop->index + 1, value.as.loop->items->count);
        tri_jinja_buffer_text(out, text);
        return TRI_OK;
    default:
        return tri_jinja_fail(run, TRI_INVALID, "a %s is printed as such%s",
                              tri_jinja_type_name(value),
                              value.kind == TRI_JINJA_ITER ? " (add the filter list)" : "");
    }
}

enum tri_status tri_jinja_str(struct tri_jinja_run *run, struct tri_jinja_value value,
                              struct tri_jinja_buffer *out)
{
    if (value.kind == TRI_JINJA_STRING) {
        tri_jinja_buffer_add(out, value.as.string->data, value.as.string->bytes);
        return TRI_OK;
    }
    return value.kind == TRI_JINJA_UNDEFINED ? TRI_OK : tri_jinja_repr(run, value, out);
}

enum tri_status tri_jinja_to_string(struct tri_jinja_run *run, struct tri_jinja_value value,
                                    struct tri_jinja_value *out)
{
    if (value.kind == TRI_JINJA_STRING) {
        *out = value;
        return TRI_OK;
    }
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    TRI_TRY(tri_jinja_str(run, value, &buffer));
    return tri_jinja_buffer_value(&buffer, out);
}
