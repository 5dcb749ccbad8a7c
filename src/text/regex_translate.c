/* Oniguruma's Ruby syntax to that of PCRE2. Everything that is not known to mean the same in both
 * is refused: a pattern that matched a little differently would change token ids in silence. */
#include <string.h>

#include "text/regex.h"

struct translation {
    const char *pattern;
    size_t bytes;
    size_t at;
    int class_depth; /* inside [...], nested */
    struct tri_text *out;
};

static enum tri_status refuse(size_t at, const char *what)
{
    return tri_fail(TRI_UNSUPPORTED, "the pattern is not supported at byte %zu: %s", at, what);
}

/* The byte `ahead` of the current one, 0 behind the end. */
static char peek(const struct translation *t, size_t ahead)
{
    return ahead < t->bytes - t->at ? t->pattern[t->at + ahead] : '\0';
}

static void put(const struct translation *t, const char *text)
{
    tri_text_add(t->out, text, strlen(text));
}

/* Copy the next bytes of the pattern. */
static void copy(struct translation *t, size_t bytes)
{
    tri_text_add(t->out, t->pattern + t->at, bytes);
    t->at += bytes;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_one_of(const char *word, size_t bytes, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == bytes && memcmp(words[i], word, bytes) == 0)
            return true;
    return false;
}

/* \p{...}: general categories, and some scripts. PCRE2 takes a bare script name for script
 * extensions, Oniguruma for the script. */
static enum tri_status property(struct translation *t)
{
    static const char *const categories[] = {
        "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
        "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
        "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cn", "Co", "Cs"};
    static const char *const scripts[] = {"Han",        "Hiragana", "Katakana", "Hangul",
                                          "Latin",      "Thai",     "Cyrillic", "Greek",
                                          "Devanagari", "Hebrew",   "Arabic"};
    const size_t begin = t->at;
    const bool upper = peek(t, 1) == 'P';
    if (peek(t, 2) != '{')
        return refuse(begin, "\\p without braces");
    const bool negated = peek(t, 3) == '^';
    const char *name = t->pattern + t->at + 3 + negated;
    const size_t left = t->bytes - (t->at + 3 + negated);
    const char *close = memchr(name, '}', left);
    if (!close)
        return refuse(begin, "\\p{ without }");
    const size_t length = (size_t)(close - name);
    const bool script = is_one_of(name, length, scripts, sizeof scripts / sizeof *scripts);
    if (!script && !is_one_of(name, length, categories, sizeof categories / sizeof *categories))
        return refuse(begin, "a property that is neither a general category nor a known script");
    put(t, upper != negated ? "\\P{" : "\\p{");
    if (script)
        put(t, "sc:");
    tri_text_add(t->out, name, length);
    put(t, "}");
    t->at = (size_t)(close + 1 - t->pattern);
    return TRI_OK;
}

/* \x41, \x{1F600}, the latter also written \u1F60 */
static enum tri_status code_point(struct translation *t)
{
    const size_t begin = t->at;
    const bool braces = peek(t, 1) == 'x' && peek(t, 2) == '{';
    const size_t want = peek(t, 1) == 'u' ? 4 : 2;
    size_t digits = 0;
    t->at += braces ? 3 : 2;
    while (digits < 8 && is_hex(peek(t, digits)))
        digits++;
    if (braces ? digits == 0 || digits > 6 || peek(t, digits) != '}' : digits < want)
        return refuse(begin, "a code point that is not written in full");
    if (!braces && want == 2 && peek(t, 0) >= '8')
        return refuse(begin, "a single byte of a character");
    if (!braces)
        digits = want;
    put(t, "\\x{");
    copy(t, digits);
    put(t, "}");
    t->at += braces;
    return TRI_OK;
}

static enum tri_status escape(struct translation *t)
{
    /* Oniguruma's \w, with the Latin-1 fractions and superscripts that its table holds. */
    static const char word[] =
        "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}\\x{24B6}-\\x{24E9}"
        "\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}";
    const char c = peek(t, 1);
    if (c == 'p' || c == 'P')
        return property(t);
    if (c == 'x' || c == 'u')
        return code_point(t);
    if (c == 'w' || (c == 'W' && t->class_depth == 0)) {
        t->at += 2;
        if (t->class_depth > 0) {
            put(t, word);
        } else {
            put(t, c == 'w' ? "[" : "[^");
            put(t, word);
            put(t, "]");
        }
        return TRI_OK;
    }
    const bool anywhere = c != '\0' && strchr("sSdDrntfae", c);
    const bool anchor = t->class_depth == 0 && c != '\0' && strchr("AzZ", c);
    const bool punctuation = c == ' ' || (c > ' ' && c < 0x7F && !is_digit(c) &&
                                          !((c | 0x20) >= 'a' && (c | 0x20) <= 'z'));
    if (!anywhere && !anchor && !punctuation)
        return refuse(t->at, "an escape that Oniguruma and PCRE2 may read differently");
    copy(t, 2);
    return TRI_OK;
}

/* {n}, {n,}, {n,m}; any other brace is itself. */
static enum tri_status brace(struct translation *t)
{
    size_t n = 1;
    while (is_digit(peek(t, n)))
        n++;
    const size_t digits = n - 1;
    if (peek(t, 1) == ',')
        return refuse(t->at, "{,n} means {0,n} only to Oniguruma");
    bool exact = true;
    if (digits > 0 && peek(t, n) == ',') {
        exact = false;
        n++;
        while (is_digit(peek(t, n)))
            n++;
    }
    if (digits == 0 || peek(t, n) != '}') {
        put(t, "\\");
        copy(t, 1);
        return TRI_OK;
    }
    copy(t, n + 1);
    if (peek(t, 0) == '+' || (exact && peek(t, 0) == '?'))
        return refuse(t->at, "{n}+ and {n}? mean other things to Oniguruma and PCRE2");
    return TRI_OK;
}

static enum tri_status group(struct translation *t)
{
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"};
    if (t->at == 0 && t->bytes >= 4 && memcmp(t->pattern, "(?i)", 4) == 0) {
        copy(t, 4);
        return TRI_OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t length = strlen(known[i]);
        if (t->bytes - t->at >= length && memcmp(t->pattern + t->at, known[i], length) == 0) {
            copy(t, length);
            return TRI_OK;
        }
    }
    if (peek(t, 1) == '?' || peek(t, 1) == '*')
        return refuse(t->at, "a kind of group that is not read");
    copy(t, 1);
    return TRI_OK;
}

static enum tri_status open_class(struct translation *t)
{
    const bool negated = peek(t, 1) == '^';
    const char first = peek(t, negated ? 2 : 1);
    if (first == ']')
        return refuse(t->at, "a class that begins with ]");
    if (t->class_depth > 0) {
        /* Oniguruma nests classes; a class within a class is their union. */
        if (first == ':' || negated)
            return refuse(t->at, "a POSIX or negated class within a class");
        if (t->out->bytes > 0 && t->out->data[t->out->bytes - 1] == '-')
            return refuse(t->at, "a class behind a hyphen");
        t->at++;
    } else {
        copy(t, negated ? 2 : 1);
    }
    t->class_depth++;
    return TRI_OK;
}

static enum tri_status in_class(struct translation *t)
{
    const char c = peek(t, 0);
    if (c == '[')
        return open_class(t);
    if (c == '\\')
        return escape(t);
    if (c == '&' && peek(t, 1) == '&')
        return refuse(t->at, "an intersection of classes");
    if (c == ']') {
        t->class_depth--;
        if (t->class_depth > 0) {
            if (peek(t, 1) == '-')
                return refuse(t->at, "a hyphen behind a class");
            t->at++;
            return TRI_OK;
        }
    }
    copy(t, 1);
    return TRI_OK;
}

static enum tri_status outside_class(struct translation *t)
{
    switch (peek(t, 0)) {
    case '[':
        return open_class(t);
    case '\\':
        return escape(t);
    case '(':
        return group(t);
    case '{':
        return brace(t);
    default:
        copy(t, 1);
        return TRI_OK;
    }
}

enum tri_status tri_regex_translate(const char *pattern, size_t bytes, struct tri_text *out)
{
    struct translation t = {.pattern = pattern, .bytes = bytes, .out = out};
    while (t.at < bytes)
        TRI_TRY(t.class_depth > 0 ? in_class(&t) : outside_class(&t));
    if (t.class_depth > 0)
        return refuse(bytes, "a class without ]");
    if (out->failed)
        return tri_fail(TRI_NOMEM, "no memory for a pattern");
    return TRI_OK;
}
