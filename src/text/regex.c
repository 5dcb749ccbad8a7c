#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>
#include <stdlib.h>

#include "text/unicode.h"

enum {
    PATTERN_BYTES = 16384, /* the longest in use have 600 */
    NESTING = 50,
    JIT_STACK_START = 32 << 10,
    JIT_STACK_LIMIT = 8 << 20,
    HEAP_LIMIT_KIB = 1 << 20,
};

struct tri_regex {
    pcre2_code *code;
};

struct tri_regex_work {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static enum tri_status compile(const struct tri_text *pattern, pcre2_code **out)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return tri_fail(TRI_NOMEM, "no memory for a pattern");
    /* Ruby's ^ and $ hold at every line, and lines end in a line feed. */
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    (void)pcre2_set_parens_nest_limit(context, NESTING);
    int error;
    PCRE2_SIZE at;
    pcre2_code *code = pcre2_compile(
        (PCRE2_SPTR)tri_text_data(pattern), pattern->bytes,
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at, context);
    pcre2_compile_context_free(context);
    if (!code) {
        PCRE2_UCHAR message[256];
        (void)pcre2_get_error_message(error, message, sizeof message);
        return tri_fail(TRI_UNSUPPORTED, "the pattern is not valid: %s", (const char *)message);
    }
    /* Without just-in-time compilation (some processors) matching is slower, and the same. */
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    *out = code;
    return TRI_OK;
}

enum tri_status tri_regex_open(const char *pattern, size_t bytes, struct tri_regex **out)
{
    if (bytes > PATTERN_BYTES)
        return tri_fail(TRI_UNSUPPORTED, "a pattern of %zu bytes: at most %d are read", bytes,
                        PATTERN_BYTES);
    struct tri_text translated = {0};
    pcre2_code *code = NULL;
    enum tri_status st = tri_regex_translate(pattern, bytes, &translated);
    if (st == TRI_OK)
        st = compile(&translated, &code);
    tri_text_free(&translated);
    TRI_TRY(st);
    struct tri_regex *regex = malloc(sizeof *regex);
    if (!regex) {
        pcre2_code_free(code);
        return tri_fail(TRI_NOMEM, "no memory for a pattern");
    }
    regex->code = code;
    *out = regex;
    return TRI_OK;
}

void tri_regex_close(struct tri_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    free(regex);
}

enum tri_status tri_regex_work_open(struct tri_regex_work **out)
{
    struct tri_regex_work *work = calloc(1, sizeof *work);
    if (!work)
        return tri_fail(TRI_NOMEM, "no memory to match patterns");
    work->match = pcre2_match_data_create(1, NULL);
    work->context = pcre2_match_context_create(NULL);
    work->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_LIMIT, NULL);
    if (!work->match || !work->context || !work->stack) {
        tri_regex_work_close(work);
        return tri_fail(TRI_NOMEM, "no memory to match patterns");
    }
    pcre2_jit_stack_assign(work->context, NULL, work->stack);
    (void)pcre2_set_heap_limit(work->context, HEAP_LIMIT_KIB);
    *out = work;
    return TRI_OK;
}

void tri_regex_work_close(struct tri_regex_work *work)
{
    if (!work)
        return;
    pcre2_match_data_free(work->match);
    pcre2_match_context_free(work->context);
    pcre2_jit_stack_free(work->stack);
    free(work);
}

static enum tri_status match(const struct tri_regex *regex, struct tri_regex_work *work,
                             const struct tri_regex_walk *walk, bool *found)
{
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)walk->text, walk->bytes, walk->at,
                         PCRE2_NO_UTF_CHECK, work->match, work->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(regex->code, (PCRE2_SPTR)walk->text, walk->bytes, walk->at,
                         PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, work->match, work->context);
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
        PCRE2_UCHAR message[256];
        (void)pcre2_get_error_message(rc, message, sizeof message);
        return tri_fail(rc == PCRE2_ERROR_NOMEMORY ? TRI_NOMEM : TRI_UNSUPPORTED,
                        "a pattern of the tokenizer gives up at byte %zu of a text of %zu: %s",
                        walk->at, walk->bytes, (const char *)message);
    }
    *found = rc >= 0;
    return TRI_OK;
}

enum tri_status tri_regex_next(const struct tri_regex *regex, struct tri_regex_work *work,
                               struct tri_regex_walk *walk, bool *found)
{
    *found = false;
    while (walk->at <= walk->bytes) {
        bool matched;
        TRI_TRY(match(regex, work, walk, &matched));
        if (!matched)
            break;
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(work->match);
        if (range[0] > range[1])
            return tri_fail(TRI_UNSUPPORTED, "a pattern of the tokenizer moves its own beginning");
        const bool empty = range[0] == range[1];
        const bool again = empty && walk->has_matched && range[1] == walk->end;
        walk->at = range[1];
        if (again) {
            /* As in the reference: step over a character and look again. */
            size_t step = 1;
            if (walk->at < walk->bytes)
                (void)tri_char_at(walk->text + walk->at, &step);
            walk->at += step;
            continue;
        }
        walk->has_matched = true;
        walk->begin = range[0];
        walk->end = range[1];
        *found = true;
        return TRI_OK;
    }
    return TRI_OK;
}
