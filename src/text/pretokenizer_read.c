/* Pre-tokenizers as tokenizer.json describes them, flattened into a list of steps. */
#include <stdlib.h>
#include <string.h>

#include "text/member.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

/* GPT-2's pattern, which ByteLevel brings along. */
static const char gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* The classes of Rust's \w, which has the joiners that Oniguruma's lacks. */
static const char words_pattern[] =
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}"
    "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}]+|"
    "[^\\s\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{"
    "1F149}"
    "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}]+";

static enum tri_status add_step(struct tri_pretokenizer *p, enum tri_pretokenizer_kind kind,
                                struct tri_pretokenizer_step **out)
{
    if (p->count == TRI_PRETOKENIZER_STEPS)
        return tri_fail(TRI_UNSUPPORTED, "more than %d steps", TRI_PRETOKENIZER_STEPS);
    *out = &p->step[p->count++];
    (*out)->kind = kind;
    return TRI_OK;
}

static enum tri_status add_regex(struct tri_pretokenizer *p, const char *pattern,
                                 enum tri_split_behavior behavior, bool invert)
{
    struct tri_pretokenizer_step *step = NULL;
    TRI_TRY(add_step(p, TRI_SPLIT_REGEX, &step));
    step->behavior = behavior;
    step->invert = invert;
    return tri_regex_open(pattern, strlen(pattern), &step->regex);
}

static enum tri_status read_byte_level(const json_t *value, struct tri_pretokenizer *p)
{
    bool put_space, use_regex;
    struct tri_pretokenizer_step *step = NULL;
    /* trim_offsets concerns places in the text alone, which nobody asks for here. */
    TRI_TRY(tri_members_check(value, "type add_prefix_space trim_offsets use_regex"));
    TRI_TRY(tri_member_bool(value, "add_prefix_space", true, &put_space));
    TRI_TRY(tri_member_bool(value, "use_regex", true, &use_regex));
    if (put_space)
        TRI_TRY(add_step(p, TRI_PUT_SPACE, &step));
    if (use_regex)
        TRI_TRY(add_regex(p, gpt2_pattern, TRI_SPLIT_ISOLATED, false));
    return add_step(p, TRI_MAP_BYTES, &step);
}

static enum tri_status read_behavior(const json_t *value, enum tri_split_behavior *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *name;
    size_t bytes;
    TRI_TRY(tri_member_string(value, "behavior", &name, &bytes));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum tri_split_behavior)i;
            return TRI_OK;
        }
    }
    return tri_fail(TRI_UNSUPPORTED, "the behavior \"%.64s\" is not read", name);
}

static enum tri_status read_split(const json_t *value, struct tri_pretokenizer *p)
{
    struct tri_pretokenizer_step *step = NULL;
    TRI_TRY(tri_members_check(value, "type pattern behavior invert"));
    TRI_TRY(add_step(p, TRI_SPLIT_TEXT, &step));
    TRI_TRY(read_behavior(value, &step->behavior));
    TRI_TRY(tri_member_bool(value, "invert", false, &step->invert));
    TRI_TRY(tri_pattern_read(value, &step->text, &step->bytes, &step->regex));
    if (step->regex)
        step->kind = TRI_SPLIT_REGEX;
    return TRI_OK;
}

static enum tri_status read_digits(const json_t *value, struct tri_pretokenizer *p)
{
    bool individual;
    struct tri_pretokenizer_step *step = NULL;
    TRI_TRY(tri_members_check(value, "type individual_digits"));
    TRI_TRY(tri_member_bool(value, "individual_digits", false, &individual));
    TRI_TRY(add_step(p, TRI_SPLIT_NUMERIC, &step));
    step->behavior = individual ? TRI_SPLIT_ISOLATED : TRI_SPLIT_CONTIGUOUS;
    return TRI_OK;
}

static enum tri_status read_scheme(const json_t *value, enum tri_meta_scheme *out)
{
    static const char *const names[] = {"always", "first", "never"};
    const char *name;
    size_t bytes, i = 0;
    TRI_TRY(tri_member_text(value, "prepend_scheme", &name, &bytes));
    while (name && i < 3 && strcmp(names[i], name) != 0)
        i++;
    if (i == 3)
        return tri_fail(TRI_UNSUPPORTED, "the prepend_scheme \"%.64s\" is not read", name);
    const json_t *prefix = json_object_get(value, "add_prefix_space"); /* what it used to be */
    if (json_is_false(prefix)) {
        if (name && i != TRI_META_NEVER)
            return tri_fail(TRI_FORMAT,
                            "\"add_prefix_space\" and \"prepend_scheme\" contradict each other");
        if (!name)
            return tri_fail(TRI_UNSUPPORTED, "\"add_prefix_space\" without \"prepend_scheme\"");
    }
    *out = (enum tri_meta_scheme)i;
    return TRI_OK;
}

static enum tri_status copy_mark(const char *mark, size_t bytes, struct tri_pretokenizer_step *step)
{
    step->text = strdup(mark);
    if (!step->text)
        return tri_fail(TRI_NOMEM, "no memory for a tokenizer");
    step->bytes = bytes;
    return TRI_OK;
}

static enum tri_status read_metaspace(const json_t *value, struct tri_pretokenizer *p)
{
    const char *mark;
    size_t bytes, length;
    bool split;
    struct tri_pretokenizer_step *step = NULL;
    TRI_TRY(tri_members_check(value, "type replacement prepend_scheme add_prefix_space split "
                                     "str_rep"));
    TRI_TRY(tri_member_string(value, "replacement", &mark, &bytes));
    if (bytes > 0)
        (void)tri_char_at(mark, &length);
    if (bytes == 0 || length != bytes)
        return tri_fail(TRI_FORMAT, "\"replacement\" must be one character");
    TRI_TRY(tri_member_bool(value, "split", true, &split));
    TRI_TRY(add_step(p, TRI_PUT_META, &step));
    TRI_TRY(read_scheme(value, &step->scheme));
    TRI_TRY(copy_mark(mark, bytes, step));
    if (!split)
        return TRI_OK;
    TRI_TRY(add_step(p, TRI_SPLIT_TEXT, &step));
    step->behavior = TRI_SPLIT_MERGED_WITH_NEXT;
    return copy_mark(mark, bytes, step);
}

static enum tri_status read(const json_t *value, int depth, void *ctx)
{
    struct tri_pretokenizer *p = ctx;
    const char *type = tri_member_type(value);
    if (strcmp(type, "Sequence") == 0)
        return tri_member_sequence(value, "pretokenizers", depth, read, p);
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(value, p);
    if (strcmp(type, "Split") == 0)
        return read_split(value, p);
    if (strcmp(type, "Digits") == 0)
        return read_digits(value, p);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(value, p);
    if (strcmp(type, "Whitespace") == 0) {
        TRI_TRY(tri_members_check(value, "type"));
        return add_regex(p, words_pattern, TRI_SPLIT_REMOVED, true);
    }
    if (strcmp(type, "WhitespaceSplit") == 0) {
        struct tri_pretokenizer_step *step = NULL;
        TRI_TRY(tri_members_check(value, "type"));
        TRI_TRY(add_step(p, TRI_SPLIT_SPACE, &step));
        step->behavior = TRI_SPLIT_REMOVED;
        return TRI_OK;
    }
    return tri_fail(TRI_UNSUPPORTED, "\"%.64s\" is not read", type);
}

enum tri_status tri_pretokenizer_open(const json_t *value, struct tri_pretokenizer *out)
{
    struct tri_pretokenizer pretokenizer = {.count = 0};
    if (value && !json_is_null(value)) {
        const enum tri_status st = read(value, 0, &pretokenizer);
        if (st != TRI_OK) {
            tri_error_prefix("pre_tokenizer");
            tri_pretokenizer_close(&pretokenizer);
            return st;
        }
    }
    for (int i = 0; i < pretokenizer.count; i++)
        pretokenizer.has_regex = pretokenizer.has_regex || pretokenizer.step[i].regex;
    if (pretokenizer.count > 0 && pretokenizer.step[pretokenizer.count - 1].kind == TRI_MAP_BYTES) {
        pretokenizer.ends_in_bytes = true;
        pretokenizer.count--;
    }
    *out = pretokenizer;
    return TRI_OK;
}

void tri_pretokenizer_close(struct tri_pretokenizer *pretokenizer)
{
    for (int i = 0; i < pretokenizer->count; i++) {
        tri_regex_close(pretokenizer->step[i].regex);
        free(pretokenizer->step[i].text);
    }
    memset(pretokenizer, 0, sizeof *pretokenizer);
}
