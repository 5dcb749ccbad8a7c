/* Numbers as people write them. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* sign digits [. digits] [e exponent] [^ power] suffix, cut into parts. */
struct parts {
    bool negative;
    char digits[64];  /* without sign, underscores and point; no leading or useless zeros */
    int64_t point;    /* how many of `digits` stand behind the decimal point */
    int64_t exponent; /* power of ten, the suffix k, m, g, t and % included */
    int64_t binary;   /* power of two of the suffix ki, mi, gi, ti */
    bool has_power;   /* a ^ was there */
    int64_t power;
};

static enum tri_status not_a_number(const char *text)
{
    return tri_fail(TRI_INVALID,
                    "'%.60s' is not a number (5, 0.1, 1e-5, 250_000, 128k, 128ki, "
                    "2^20 and 10%% are)",
                    text);
}

/* An exponent: optional sign and at most four digits. */
static const char *read_exponent(const char *p, int64_t *out)
{
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    int64_t value = 0;
    int count = 0;
    for (; isdigit((unsigned char)*p) && count < 4; p++, count++)
        value = 10 * value + (*p - '0');
    if (count == 0 || isdigit((unsigned char)*p))
        return NULL;
    *out = negative ? -value : value;
    return p;
}

/* Digits with single underscores between them; NULL if there are too many. */
static const char *read_digits(const char *p, char *digits, size_t *count)
{
    while (isdigit((unsigned char)*p)) {
        if (*count > 0 || *p != '0') {
            if (*count + 1 >= sizeof((struct parts *)0)->digits)
                return NULL;
            digits[(*count)++] = *p;
        }
        p++;
        if (*p == '_' && isdigit((unsigned char)p[1]))
            p++;
    }
    return p;
}

static bool read_suffix(const char *p, struct parts *parts)
{
    static const char letters[] = "kmgt";
    if (*p == '\0')
        return true;
    if (strcmp(p, "%") == 0) {
        parts->exponent -= 2;
        return true;
    }
    int letter = tolower((unsigned char)*p);
    const char *found = strchr(letters, letter == 'b' ? 'g' : letter);
    if (found == NULL)
        return false;
    int64_t step = found - letters + 1;
    if (p[1] == '\0')
        parts->exponent += 3 * step;
    else if (tolower((unsigned char)p[1]) == 'i' && p[2] == '\0' && letter != 'b')
        parts->binary = 10 * step;
    else
        return false;
    return true;
}

static enum tri_status split(const char *text, struct parts *out)
{
    struct parts parts = {0};
    const char *p = text;
    parts.negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!isdigit((unsigned char)*p) && !(*p == '.' && isdigit((unsigned char)p[1])))
        return not_a_number(text);
    size_t count = 0;
    p = read_digits(p, parts.digits, &count);
    if (p != NULL && *p == '.') {
        /* Zeros right behind the point are dropped from the digits but move the point. */
        const char *start = ++p;
        p = read_digits(p, parts.digits, &count);
        for (const char *q = start; p != NULL && q < p; q++)
            parts.point += isdigit((unsigned char)*q) != 0;
    }
    if (p == NULL)
        return tri_fail(TRI_INVALID, "'%.60s...' has too many digits", text);
    while (count > 0 && parts.point > 0 && parts.digits[count - 1] == '0') {
        count--;
        parts.point--;
    }
    if (count == 0)
        parts.point = 0;
    parts.digits[count] = '\0';
    if ((*p == 'e' || *p == 'E') && (p = read_exponent(p + 1, &parts.exponent)) == NULL)
        return not_a_number(text);
    if (*p == '^' && !parts.negative) {
        parts.has_power = true;
        p = read_exponent(p + 1, &parts.power);
        if (p == NULL || *p != '\0')
            return not_a_number(text);
    } else if (!read_suffix(p, &parts)) {
        return not_a_number(text);
    }
    *out = parts;
    return TRI_OK;
}

static enum tri_status too_large(const char *text)
{
    return tri_fail(TRI_INVALID, "%.60s is too large for a 64-bit integer", text);
}

enum tri_status tri_text_int(const char *text, int64_t *out)
{
    struct parts parts;
    TRI_TRY(split(text, &parts));

    uint64_t value = 0;
    bool over = false;
    for (const char *p = parts.digits; *p != '\0'; p++)
        over = over || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
               __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    int64_t tens = parts.exponent - parts.point;
    if (value != 0 && !over) {
        for (int64_t i = 0; i < parts.binary && !over; i++)
            over = __builtin_mul_overflow(value, UINT64_C(2), &value);
        for (; tens > 0 && !over; tens--)
            over = __builtin_mul_overflow(value, UINT64_C(10), &value);
        for (; tens < 0 && !over; tens++) {
            if (value % 10 != 0)
                return tri_fail(TRI_INVALID, "expected a whole number, got %.60s", text);
            value /= 10;
        }
    }
    if (parts.has_power && !over) {
        if (parts.power < 0)
            return tri_fail(TRI_INVALID, "expected a whole number, got %.60s", text);
        uint64_t base = value;
        value = 1;
        for (int64_t i = 0; i < parts.power && !over; i++)
            over = __builtin_mul_overflow(value, base, &value);
    }
    if (over || value > (uint64_t)INT64_MAX)
        return too_large(text);
    *out = parts.negative ? -(int64_t)value : (int64_t)value;
    return TRI_OK;
}

enum tri_status tri_text_number(const char *text, double *out)
{
    struct parts parts;
    TRI_TRY(split(text, &parts));

    /* strtod rounds once; the suffix is part of the exponent, so 10% is exactly 0.1. */
    char clean[96];
    snprintf(clean, sizeof clean, "%s%se%lld", parts.negative ? "-" : "",
             parts.digits[0] == '\0' ? "0" : parts.digits,
             (long long)(parts.exponent - parts.point));
    double value = ldexp(strtod(clean, NULL), (int)parts.binary);
    if (parts.has_power)
        value = pow(value, (double)parts.power);
    if (!isfinite(value))
        return tri_fail(TRI_INVALID, "%.60s is too large", text);
    if (value == 0 && parts.digits[0] != '\0')
        return tri_fail(TRI_INVALID, "%.60s is too small", text);
    *out = value;
    return TRI_OK;
}

char *tri_number_text(double value, char *out)
{
    char text[32];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    /* 1e+06 as 1000000, 1e-05 as 1e-5. */
    if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(out, 32, "%.0f", value);
        return out;
    }
    char *exponent = strchr(text, 'e');
    if (exponent != NULL) {
        char *from = exponent + 1 + (exponent[1] == '-' || exponent[1] == '+');
        char *to = exponent + 1 + (exponent[1] == '-');
        while (*from == '0' && from[1] != '\0')
            from++;
        memmove(to, from, strlen(from) + 1);
    }
    snprintf(out, 32, "%s", text);
    return out;
}

struct tri_bytes_text tri_bytes(double bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    struct tri_bytes_text text;
    int unit = 0;
    if (bytes < 1023.5) {
        snprintf(text.s, sizeof text.s, "%.0f byte%s", bytes,
                 bytes >= 0.5 && bytes < 1.5 ? "" : "s");
        return text;
    }
    bytes /= 1024;
    for (; unit < 3 && bytes >= 1023.5; unit++) /* what would be shown as 1024 of this unit */
        bytes /= 1024;
    /* Fewer digits behind the point, the more there are before it. */
    snprintf(text.s, sizeof text.s, "%.*f %s",
             bytes < 9.995   ? 2
             : bytes < 99.95 ? 1
                             : 0,
             bytes, units[unit]);
    return text;
}

const char *tri_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}
