/* Filters on numbers. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/run.h"

enum { NUMBER_BYTES = 400 };

/* A number without spaces around and underscores between digits, NUL-terminated. */
static bool clean_number(const struct tri_jinja_string *text, char clean[NUMBER_BYTES])
{
    size_t from = tri_space_prefix(text->data, text->bytes), n = 0;
    size_t to = tri_space_trimmed(text->data, text->bytes);
    if (from >= to || to - from >= NUMBER_BYTES)
        return false;
    for (size_t i = from; i < to; i++) {
        char c = text->data[i];
        bool between = i > from && i + 1 < to && strchr("0123456789", text->data[i - 1]) != NULL &&
                       strchr("0123456789", text->data[i + 1]) != NULL;
        if (c == '\0' || (c == '_' && !between))
            return false;
        if (c != '_')
            clean[n++] = c;
    }
    clean[n] = '\0';
    return true;
}

static bool parse_float(const struct tri_jinja_string *text, double *out)
{
    char clean[NUMBER_BYTES], *end;
    if (!clean_number(text, clean) || strpbrk(clean, "xXpP(") != NULL)
        return false;
    *out = strtod(clean, &end);
    return *end == '\0';
}

static enum tri_status float_to_int(struct tri_jinja_run *run, double real, bool *fits,
                                    struct tri_jinja_value *out)
{
    *fits = isfinite(real);
    if (!*fits)
        return TRI_OK;
    if (!(real > -0x1p63 && real < 0x1p63))
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "int: an integer of more than 64 bits");
    *out = tri_jinja_int((int64_t)real);
    return TRI_OK;
}

static enum tri_status filter_int(struct tri_jinja_run *run, struct tri_jinja_value self,
                                  const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    int64_t base;
    bool fits = false;
    TRI_TRY(tri_jinja_int_argument(run, a->values[1], "int: base", 10, &base));
    if (base != 0 && (base < 2 || base > 36))
        return tri_jinja_fail(run, TRI_INVALID, "int: base %" PRId64, base);
    if (self.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, self);
    if (tri_jinja_is_integer(self)) {
        *out = tri_jinja_int(tri_jinja_as_int(self));
        return TRI_OK;
    }
    if (self.kind == TRI_JINJA_FLOAT) {
        TRI_TRY(float_to_int(run, self.as.real, &fits, out));
    } else if (self.kind == TRI_JINJA_STRING) {
        char clean[NUMBER_BYTES], *end;
        double real;
        errno = 0;
        if (clean_number(self.as.string, clean)) {
            long long integer = strtoll(clean, &end, (int)base);
            if (*end == '\0' && end > clean) {
                if (errno == ERANGE)
                    return tri_jinja_fail(run, TRI_UNSUPPORTED,
                                          "int: an integer of more than 64 bits");
                *out = tri_jinja_int(integer);
                return TRI_OK;
            }
        }
        if (parse_float(self.as.string, &real))
            TRI_TRY(float_to_int(run, real, &fits, out));
    }
    if (!fits)
        *out = a->values[0].kind == TRI_JINJA_MISSING ? tri_jinja_int(0) : a->values[0];
    return TRI_OK;
}

static enum tri_status filter_float(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *a,
                                    struct tri_jinja_value *out)
{
    double real;
    if (self.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, self);
    if (tri_jinja_is_number(self))
        *out = tri_jinja_float(tri_jinja_as_float(self));
    else if (self.kind == TRI_JINJA_STRING && parse_float(self.as.string, &real))
        *out = tri_jinja_float(real);
    else
        *out = a->values[0].kind == TRI_JINJA_MISSING ? tri_jinja_float(0) : a->values[0];
    return TRI_OK;
}

static enum tri_status filter_abs(struct tri_jinja_run *run, struct tri_jinja_value self,
                                  const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    (void)a;
    if (self.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, self);
    if (!tri_jinja_is_number(self))
        return tri_jinja_fail(run, TRI_INVALID, "abs of %s", tri_jinja_type_name(self));
    if (self.kind == TRI_JINJA_FLOAT)
        *out = tri_jinja_float(fabs(self.as.real));
    else if (tri_jinja_as_int(self) < 0)
        return tri_jinja_operate(run, TRI_JINJA_SUB, tri_jinja_int(0), self, out);
    else
        *out = tri_jinja_int(tri_jinja_as_int(self));
    return TRI_OK;
}

/* Python's round(x, n): the decimal nearest to the exact value, ties to even. */
static enum tri_status round_common(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    int64_t precision, struct tri_jinja_value *out)
{
    char text[NUMBER_BYTES];
    if (tri_jinja_is_integer(self) && precision >= 0) {
        *out = tri_jinja_int(tri_jinja_as_int(self));
        return TRI_OK;
    }
    if (tri_jinja_is_integer(self) || precision < 0)
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "round: a negative precision");
    *out = self;
    if (!isfinite(self.as.real) || precision > 22)
        return TRI_OK;
    snprintf(text, sizeof text, "%.*f", (int)precision, self.as.real);
    *out = tri_jinja_float(strtod(text, NULL));
    return TRI_OK;
}

static enum tri_status filter_round(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *a,
                                    struct tri_jinja_value *out)
{
    const struct tri_jinja_string *method;
    int64_t precision;
    TRI_TRY(tri_jinja_int_argument(run, a->values[0], "round: precision", 0, &precision));
    TRI_TRY(tri_jinja_string_argument(run, a->values[1], "round: method", &method));
    if (self.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, self);
    if (!tri_jinja_is_number(self))
        return tri_jinja_fail(run, TRI_INVALID, "round of %s", tri_jinja_type_name(self));
    if (method == NULL || tri_jinja_string_is(method, "common"))
        return round_common(run, self, precision, out);
    const bool up = tri_jinja_string_is(method, "ceil");
    if (!up && !tri_jinja_string_is(method, "floor"))
        return tri_jinja_fail(run, TRI_INVALID, "round: the method is common, ceil or floor");
    if (precision < 0 || precision > 22)
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "round: a precision of %" PRId64, precision);
    const double scale = pow(10, (double)precision), scaled = tri_jinja_as_float(self) * scale;
    *out = tri_jinja_float((up ? ceil(scaled) : floor(scaled)) / scale);
    return TRI_OK;
}

static const struct tri_jinja_builtin items[] = {
    {"int", filter_int, "default,base", 0, 0},
    {"float", filter_float, "default", 0, 0},
    {"abs", filter_abs, "", 0, 0},
    {"round", filter_round, "precision,method", 0, 0},
};
const struct tri_jinja_builtins tri_jinja_number_filters = {items, sizeof items / sizeof *items};
