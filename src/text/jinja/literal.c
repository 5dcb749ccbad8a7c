/* String and number literals. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/lexer.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The escape after a backslash at `p`: its bytes, and the character, or -1 when the escape stands
 * for nothing (a backslash before a line end). 0 bytes: not an escape, 2: malformed. */
static size_t read_escape(const char *p, size_t left, int64_t *character)
{
    static const char names[] = "abfnrtv\\'\"";
    static const char meant[] = "\a\b\f\n\r\t\v\\'\"";
    *character = -1;
    if (*p == '\n')
        return 1;
    const char *name = memchr(names, *p, sizeof names - 1);
    if (name != NULL) {
        *character = (unsigned char)meant[name - names];
        return 1;
    }
    if (*p >= '0' && *p <= '7') {
        size_t n = 0;
        for (*character = 0; n < 3 && n < left && p[n] >= '0' && p[n] <= '7'; n++)
            *character = *character * 8 + (p[n] - '0');
        return n;
    }
    size_t digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
    if (digits == 0)
        return 0;
    *character = 0;
    for (size_t i = 1; i <= digits; i++) {
        int digit = i < left ? hex_digit(p[i]) : -1;
        if (digit < 0) {
            *character = INT64_MAX;
            break;
        }
        *character = *character * 16 + digit;
    }
    return digits + 1;
}

enum tri_status tri_jinja_lex_string(struct tri_jinja_pool *pool, const char *what, int line,
                                     const char *data, size_t *bytes, struct tri_jinja_value *out)
{
    /* `*bytes` is what is left of the template. An escape never grows: no more room is needed. */
    size_t left = *bytes, n = 0, at = 1;
    while (at < left && data[at] != *data)
        at += data[at] == '\\' ? 2 : 1;
    if (at >= left)
        return tri_fail(TRI_FORMAT, "%s line %d: a string that starts here never ends", what, line);
    char *text = tri_jinja_pool_get(pool, at + 4);
    if (text == NULL)
        return tri_jinja_pool_fail(pool, what);
    *bytes = at + 1;
    for (size_t i = 1; i < at;) {
        if (data[i] != '\\') {
            text[n++] = data[i++];
            continue;
        }
        int64_t character;
        if (data[i + 1] == 'N')
            return tri_fail(TRI_UNSUPPORTED, "%s line %d: \\N{...} in a string is not supported",
                            what, line);
        size_t used = read_escape(data + i + 1, at - i - 1, &character);
        if (character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF))
            return tri_fail(TRI_FORMAT, "%s line %d: '%.*s' in a string is not a character", what,
                            line, (int)(used < at - i ? used + 1 : at - i), data + i);
        if (used == 0)
            text[n++] = '\\';
        else if (character >= 0)
            n += tri_character_encode((uint32_t)character, text + n);
        i += used + 1;
    }
    return tri_jinja_string_ref(pool, text, n, out);
}

static size_t digits_at(const char *p, size_t left)
{
    size_t n = 0;
    while (n < left && ((p[n] >= '0' && p[n] <= '9') || (p[n] == '_' && n > 0 && n + 1 < left &&
                                                         p[n + 1] >= '0' && p[n + 1] <= '9')))
        n++;
    return n;
}

enum { NUMBER_BYTES = 64 };

enum tri_status tri_jinja_lex_number(const char *what, int line, const char *data, size_t *bytes,
                                     struct tri_jinja_value *out)
{
    size_t left = *bytes, n;
    int base = 10;
    bool real = false;
    if (left > 2 && data[0] == '0' && strchr("xXoObB", data[1]) != NULL) {
        base = (data[1] | 0x20) == 'x' ? 16 : (data[1] | 0x20) == 'o' ? 8 : 2;
        for (n = 2; n < left; n++) {
            int digit = hex_digit(data[n]);
            if (data[n] != '_' && (digit < 0 || digit >= base))
                break;
        }
    } else {
        n = digits_at(data, left);
        if (n + 1 < left && data[n] == '.' && digits_at(data + n + 1, left - n - 1) > 0) {
            n += 1 + digits_at(data + n + 1, left - n - 1);
            real = true;
        }
        size_t e = n;
        if (e < left && (data[e] | 0x20) == 'e') {
            e++;
            if (e < left && (data[e] == '+' || data[e] == '-'))
                e++;
            if (e < left && digits_at(data + e, left - e) > 0) {
                n = e + digits_at(data + e, left - e);
                real = true;
            }
        }
    }
    char text[NUMBER_BYTES];
    size_t kept = 0;
    for (size_t i = base == 10 ? 0 : 2; i < n && kept < sizeof text - 1; i++)
        if (data[i] != '_')
            text[kept++] = data[i];
    text[kept] = '\0';
    errno = 0;
    char *end;
    if (real)
        *out = tri_jinja_float(strtod(text, &end));
    else
        *out = tri_jinja_int(strtoll(text, &end, base));
    if (kept == 0 || kept == sizeof text - 1 || *end != '\0' || (errno == ERANGE && !real))
        return tri_fail(TRI_FORMAT, "%s line %d: '%.*s' is not a number of 64 bits", what, line,
                        (int)(n < 40 ? n : 40), data);
    *bytes = n;
    return TRI_OK;
}
