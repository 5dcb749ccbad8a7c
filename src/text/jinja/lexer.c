#include "text/jinja/lexer.h"

#include <ctype.h>
#include <string.h>

#include "text/jinja/characters.h"

enum { NESTING = 64 };

struct lexer {
    struct tri_jinja_pool *pool;
    const char *what;
    const char *text;
    size_t bytes, at;
    size_t counted; /* lines are counted up to here */
    int line;
    bool line_start; /* is `at` the start of a line, or right after a tag that ate its line end? */
    struct tri_jinja_token *items;
    int64_t count, capacity;
};

static int line_of(struct lexer *x, size_t at)
{
    for (; x->counted < at; x->counted++)
        x->line += x->text[x->counted] == '\n';
    return x->line;
}

static enum tri_status add(struct lexer *x, struct tri_jinja_token token)
{
    if (x->count == x->capacity) {
        int64_t capacity = x->capacity == 0 ? 256 : 2 * x->capacity;
        struct tri_jinja_token *items =
            tri_jinja_pool_get(x->pool, (size_t)capacity * sizeof *items);
        if (items == NULL)
            return tri_jinja_pool_fail(x->pool, x->what);
        if (x->count > 0)
            memcpy(items, x->items, (size_t)x->count * sizeof *items);
        x->items = items;
        x->capacity = capacity;
    }
    x->items[x->count++] = token;
    return TRI_OK;
}

static bool looks_at(const struct lexer *x, size_t at, const char *word)
{
    size_t n = strlen(word);
    return n <= x->bytes - at && memcmp(x->text + at, word, n) == 0;
}

/* Add template text [from, to), which a tag follows. `sign` is the character after the tag's
 * opening; `block` is false for {{. */
static enum tri_status add_data(struct lexer *x, size_t from, size_t to, char sign, bool block)
{
    size_t end = to;
    if (sign == '-') {
        end = from + tri_space_trimmed(x->text + from, to - from);
    } else if (sign != '+' && block) {
        size_t start = to;
        while (start > from && x->text[start - 1] != '\n')
            start--;
        if ((start > from || x->line_start) && start < to &&
            tri_space_prefix(x->text + start, to - start) == to - start)
            end = start;
    }
    if (end == from)
        return TRI_OK;
    return add(x, (struct tri_jinja_token){.kind = TRI_JINJA_T_DATA,
                                           .line = line_of(x, from),
                                           .data = x->text + from,
                                           .bytes = end - from});
}

/* The end of a tag of kind `close` ("%}", "#}", "}}") at `at`, or 0: how many bytes it takes with
 * its sign and the white space it eats. */
static size_t tag_end(const struct lexer *x, size_t at, const char *close)
{
    bool print = *close == '}';
    size_t n = 0;
    char sign = x->text[at];
    if (sign == '-' || (sign == '+' && !print))
        n = 1;
    else
        sign = ' ';
    if (!looks_at(x, at + n, close))
        return 0;
    n += 2;
    if (sign == '-')
        n += tri_space_prefix(x->text + at + n, x->bytes - at - n);
    else if (sign == ' ' && !print && at + n < x->bytes && x->text[at + n] == '\n')
        n++;
    return n;
}

static void step_over(struct lexer *x, size_t end)
{
    x->at = end;
    x->line_start = end > 0 && x->text[end - 1] == '\n';
}

static enum tri_status lex_comment(struct lexer *x)
{
    int line = line_of(x, x->at);
    size_t from = x->at + 2;
    if (from < x->bytes && (x->text[from] == '-' || x->text[from] == '+'))
        from++;
    for (size_t at = from; at < x->bytes; at++) {
        size_t n = tag_end(x, at, "#}");
        if (n > 0) {
            step_over(x, at + n);
            return TRI_OK;
        }
    }
    return tri_fail(TRI_FORMAT, "%s line %d: a comment that starts here never ends with #}",
                    x->what, line);
}

/* If a tag {% word %} starts at `at`, its bytes, else 0; *sign is the one after {%. */
static size_t word_tag(const struct lexer *x, size_t at, const char *word, char *sign)
{
    if (!looks_at(x, at, "{%"))
        return 0;
    size_t p = at + 2;
    *sign = p < x->bytes ? x->text[p] : ' ';
    if (*sign == '-' || *sign == '+')
        p++;
    p += tri_space_prefix(x->text + p, x->bytes - p);
    if (!looks_at(x, p, word))
        return 0;
    p += strlen(word);
    p += tri_space_prefix(x->text + p, x->bytes - p);
    size_t n = p < x->bytes ? tag_end(x, p, "%}") : 0;
    return n == 0 ? 0 : p + n - at;
}

static enum tri_status lex_raw(struct lexer *x, size_t begin_bytes)
{
    size_t from = x->at + begin_bytes;
    /* Unlike other tags, {% raw %} does not eat the line end that follows it. */
    if (x->text[from - 1] == '\n' && x->text[from - 2] == '}' && x->text[from - 4] != '-')
        from--;
    int line = line_of(x, x->at);
    step_over(x, from);
    for (size_t at = from; at < x->bytes; at++) {
        char sign;
        size_t n = word_tag(x, at, "endraw", &sign);
        if (n == 0)
            continue;
        TRI_TRY(add_data(x, from, at, sign, true));
        step_over(x, at + n);
        return TRI_OK;
    }
    return tri_fail(TRI_FORMAT, "%s line %d: {%% raw %%} without {%% endraw %%}", x->what, line);
}

static enum tri_status lex_operator(struct lexer *x, char *stack, int *depth, int line)
{
    static const char doubles[][3] = {"//", "**", "==", "!=", ">=", "<="};
    const char *p = x->text + x->at;
    size_t n = 1;
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        if (looks_at(x, x->at, doubles[i]))
            n = 2;
    if (n == 1 && (*p == '\0' || strchr("+-/*%~[](){}><=.:|,;", *p) == NULL))
        return tri_fail(TRI_FORMAT, "%s line %d: unexpected character '%c' (byte 0x%02x)", x->what,
                        line, isprint((unsigned char)*p) ? *p : '?', (unsigned char)*p);
    if (*p == '(' || *p == '[' || *p == '{') {
        if (*depth == NESTING)
            return tri_fail(TRI_FORMAT, "%s line %d: brackets nested more than %d deep", x->what,
                            line, NESTING);
        stack[(*depth)++] = *p == '(' ? ')' : *p == '[' ? ']' : '}';
    } else if (*p == ')' || *p == ']' || *p == '}') {
        if (*depth == 0 || stack[*depth - 1] != *p)
            return tri_fail(TRI_FORMAT, "%s line %d: unexpected '%c'", x->what, line, *p);
        --*depth;
    }
    x->at += n;
    return add(x, (struct tri_jinja_token){
                      .kind = TRI_JINJA_T_OPERATOR, .line = line, .data = p, .bytes = n});
}

static bool is_name_byte(char c, bool first)
{
    return c == '_' || isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

/* The inside of {% %} or {{ }}, up to and including its end. */
static enum tri_status lex_tag(struct lexer *x, const char *close)
{
    const bool print = *close == '}';
    const int begin = line_of(x, x->at);
    char stack[NESTING];
    int depth = 0;
    x->at += 2;
    if (x->at < x->bytes && (x->text[x->at] == '-' || (x->text[x->at] == '+' && !print)))
        x->at++;
    TRI_TRY(add(x, (struct tri_jinja_token){.kind = print ? TRI_JINJA_T_PRINT_BEGIN
                                                          : TRI_JINJA_T_BLOCK_BEGIN,
                                            .line = begin}));
    while (x->at < x->bytes) {
        const char *p = x->text + x->at;
        size_t n = tri_space_prefix(p, x->bytes - x->at);
        if (n > 0) {
            x->at += n;
            continue;
        }
        const int line = line_of(x, x->at);
        n = depth == 0 ? tag_end(x, x->at, close) : 0;
        if (n > 0) {
            step_over(x, x->at + n);
            return add(x, (struct tri_jinja_token){.kind = print ? TRI_JINJA_T_PRINT_END
                                                                 : TRI_JINJA_T_BLOCK_END,
                                                   .line = line});
        }
        struct tri_jinja_token token = {.line = line, .data = p, .bytes = x->bytes - x->at};
        if (is_name_byte(*p, true)) {
            token.kind = TRI_JINJA_T_NAME;
            for (n = 1; x->at + n < x->bytes && is_name_byte(p[n], false);)
                n++;
            token.bytes = n;
        } else if (isdigit((unsigned char)*p)) {
            token.kind = TRI_JINJA_T_CONSTANT;
            /* In x.0.1 the numbers are indices. */
            if (x->count > 0 && x->items[x->count - 1].kind == TRI_JINJA_T_OPERATOR &&
                x->items[x->count - 1].data[0] == '.' && x->text[x->at - 1] == '.')
                for (token.bytes = 1;
                     x->at + token.bytes < x->bytes && isdigit((unsigned char)p[token.bytes]);)
                    token.bytes++;
            TRI_TRY(tri_jinja_lex_number(x->what, line, p, &token.bytes, &token.value));
        } else if (*p == '\'' || *p == '"') {
            token.kind = TRI_JINJA_T_CONSTANT;
            TRI_TRY(tri_jinja_lex_string(x->pool, x->what, line, p, &token.bytes, &token.value));
        } else {
            TRI_TRY(lex_operator(x, stack, &depth, line));
            continue;
        }
        x->at += token.bytes;
        TRI_TRY(add(x, token));
    }
    return tri_fail(TRI_FORMAT, "%s line %d: a tag that starts here never ends with %s", x->what,
                    begin, close);
}

static enum tri_status lex(struct lexer *x)
{
    while (x->at < x->bytes) {
        const size_t from = x->at;
        size_t to = from;
        while (to < x->bytes && !looks_at(x, to, "{%") && !looks_at(x, to, "{{") &&
               !looks_at(x, to, "{#"))
            to++;
        const bool block = to < x->bytes && x->text[to + 1] != '{';
        const char sign = to + 2 < x->bytes ? x->text[to + 2] : ' ';
        TRI_TRY(add_data(x, from, to, to == x->bytes ? '+' : sign, block));
        x->at = to;
        if (to == x->bytes)
            break;
        char raw_sign;
        size_t raw = word_tag(x, to, "raw", &raw_sign);
        if (raw > 0)
            TRI_TRY(lex_raw(x, raw));
        else if (x->text[to + 1] == '#')
            TRI_TRY(lex_comment(x));
        else
            TRI_TRY(lex_tag(x, block ? "%}" : "}}"));
    }
    return add(x, (struct tri_jinja_token){.kind = TRI_JINJA_T_END, .line = line_of(x, x->bytes)});
}

enum tri_status tri_jinja_lex(struct tri_jinja_pool *pool, const char *what, const char *text,
                              size_t bytes, struct tri_jinja_tokens *out)
{
    /* Every kind of line end is one line end, and the last one is dropped. */
    char *copy = tri_jinja_pool_get(pool, bytes + 1);
    if (copy == NULL)
        return tri_jinja_pool_fail(pool, what);
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\r' && i + 1 < bytes && text[i + 1] == '\n')
            continue;
        copy[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (n > 0 && copy[n - 1] == '\n')
        n--;
    struct lexer x = {.pool = pool, .what = what, .text = copy, .bytes = n, .line = 1};
    x.line_start = true;
    TRI_TRY(lex(&x));
    *out = (struct tri_jinja_tokens){.items = x.items, .count = x.count};
    return TRI_OK;
}
