#include "text/normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "text/member.h"
#include "text/unicode.h"

static enum tri_status copy_text(const char *text, size_t bytes, char **out)
{
    char *copy = malloc(bytes + 1);
    if (!copy)
        return tri_fail(TRI_NOMEM, "no memory for a tokenizer");
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    *out = copy;
    return TRI_OK;
}

enum tri_status tri_pattern_read(const json_t *object, char **text, size_t *bytes,
                                 struct tri_regex **regex)
{
    const json_t *pattern = json_object_get(object, "pattern");
    TRI_TRY(tri_members_check(pattern, "String Regex"));
    if (json_object_size(pattern) != 1)
        return tri_fail(TRI_FORMAT, "\"pattern\" must have one member, \"String\" or \"Regex\"");
    const bool is_regex = json_object_get(pattern, "Regex") != NULL;
    const char *value;
    size_t length;
    TRI_TRY(tri_member_string(pattern, is_regex ? "Regex" : "String", &value, &length));
    if (length == 0)
        return tri_fail(TRI_UNSUPPORTED, "an empty pattern");
    if (is_regex)
        return tri_regex_open(value, length, regex);
    TRI_TRY(copy_text(value, length, text));
    *bytes = length;
    return TRI_OK;
}

static enum tri_status read_step(const json_t *value, const char *type,
                                 struct tri_normalizer_step *step)
{
    static const struct {
        const char *type;
        enum tri_normalizer_kind kind;
        const char *members;
    } kinds[] = {
        {"NFC", TRI_NORMALIZE_NFC, "type"},
        {"NFD", TRI_NORMALIZE_NFD, "type"},
        {"NFKC", TRI_NORMALIZE_NFKC, "type"},
        {"NFKD", TRI_NORMALIZE_NFKD, "type"},
        {"Prepend", TRI_NORMALIZE_PREPEND, "type prepend"},
        {"Replace", TRI_NORMALIZE_REPLACE, "type pattern content"},
        {"Strip", TRI_NORMALIZE_STRIP, "type strip_left strip_right"},
    };
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].type, type) != 0)
        i++;
    if (i == sizeof kinds / sizeof *kinds)
        return tri_fail(TRI_UNSUPPORTED, "\"%.64s\" is not read", type);
    step->kind = kinds[i].kind;
    TRI_TRY(tri_members_check(value, kinds[i].members));
    const char *text = "";
    size_t bytes = 0;
    switch (step->kind) {
    case TRI_NORMALIZE_PREPEND:
        TRI_TRY(tri_member_string(value, "prepend", &text, &bytes));
        break;
    case TRI_NORMALIZE_REPLACE:
        TRI_TRY(tri_pattern_read(value, &step->from, &step->from_bytes, &step->regex));
        TRI_TRY(tri_member_string(value, "content", &text, &bytes));
        break;
    case TRI_NORMALIZE_STRIP:
        TRI_TRY(tri_member_bool(value, "strip_left", false, &step->left));
        TRI_TRY(tri_member_bool(value, "strip_right", false, &step->right));
        break;
    case TRI_NORMALIZE_NFC:
    case TRI_NORMALIZE_NFD:
    case TRI_NORMALIZE_NFKC:
    case TRI_NORMALIZE_NFKD:
        break;
    }
    TRI_TRY(copy_text(text, bytes, &step->to));
    step->to_bytes = bytes;
    return TRI_OK;
}

static enum tri_status read(const json_t *value, int depth, void *ctx)
{
    struct tri_normalizer *normalizer = ctx;
    const char *type = tri_member_type(value);
    if (strcmp(type, "Sequence") == 0)
        return tri_member_sequence(value, "normalizers", depth, read, normalizer);
    if (normalizer->count == TRI_NORMALIZER_STEPS)
        return tri_fail(TRI_UNSUPPORTED, "more than %d steps", TRI_NORMALIZER_STEPS);
    return read_step(value, type, &normalizer->step[normalizer->count++]);
}

enum tri_status tri_normalizer_open(const json_t *value, struct tri_normalizer *out)
{
    struct tri_normalizer normalizer = {.count = 0};
    if (value && !json_is_null(value)) {
        const enum tri_status st = read(value, 0, &normalizer);
        if (st != TRI_OK) {
            tri_error_prefix("normalizer");
            tri_normalizer_close(&normalizer);
            return st;
        }
    }
    *out = normalizer;
    return TRI_OK;
}

void tri_normalizer_close(struct tri_normalizer *normalizer)
{
    for (int i = 0; i < normalizer->count; i++) {
        free(normalizer->step[i].from);
        free(normalizer->step[i].to);
        tri_regex_close(normalizer->step[i].regex);
    }
    memset(normalizer, 0, sizeof *normalizer);
}

/* The next match at or behind `at`; false when there is none. */
static enum tri_status next_match(const struct tri_regex *regex, struct tri_regex_work *work,
                                  const char *from, size_t from_bytes, struct tri_regex_walk *walk,
                                  bool *found)
{
    if (regex)
        return tri_regex_next(regex, work, walk, found);
    const char *match = memmem(walk->text + walk->at, walk->bytes - walk->at, from, from_bytes);
    *found = match != NULL;
    if (match) {
        walk->begin = (size_t)(match - walk->text);
        walk->at = walk->end = walk->begin + from_bytes;
    }
    return TRI_OK;
}

enum tri_status tri_replace(const struct tri_regex *regex, struct tri_regex_work *work,
                            const char *from, size_t from_bytes, const char *to, size_t to_bytes,
                            const char *text, size_t bytes, struct tri_text *out, bool *same)
{
    char *alike = NULL;
    struct tri_regex_walk walk = {.text = text, .bytes = bytes};
    if (regex && !tri_text_is_classified_alike(text, bytes)) {
        TRI_TRY(copy_text(text, bytes, &alike));
        tri_text_classify_alike(alike, bytes);
        walk.text = alike;
    }
    size_t done = 0;
    bool found = false, any = false;
    enum tri_status st = TRI_OK;
    if (bytes > 0)
        st = next_match(regex, work, from, from_bytes, &walk, &found);
    while (st == TRI_OK && found) {
        any = true;
        tri_text_add(out, text + done, walk.begin - done);
        tri_text_add(out, to, to_bytes);
        done = walk.end;
        st = next_match(regex, work, from, from_bytes, &walk, &found);
    }
    if (st == TRI_OK && any)
        tri_text_add(out, text + done, bytes - done);
    if (st == TRI_OK && out->failed)
        st = tri_fail(TRI_NOMEM, "no memory to normalise a text of %zu bytes", bytes);
    free(alike);
    *same = !any;
    return st;
}

static void strip(const struct tri_normalizer_step *step, const char **text, size_t *bytes)
{
    size_t length;
    while (step->left && *bytes > 0 && tri_char_is_space(tri_char_at(*text, &length))) {
        *text += length;
        *bytes -= length;
    }
    while (step->right && *bytes > 0) {
        const size_t last = tri_char_before(*text, *bytes);
        if (!tri_char_is_space(tri_char_at(*text + *bytes - last, &length)))
            break;
        *bytes -= last;
    }
}

/* Apply a step that may need room: *same when the text stays. */
static enum tri_status apply(const struct tri_normalizer_step *step,
                             struct tri_normalizer_work *work, const char *text, size_t bytes,
                             struct tri_text *out, bool *same)
{
    switch (step->kind) {
    case TRI_NORMALIZE_PREPEND:
        *same = bytes == 0;
        if (bytes > 0) {
            tri_text_add(out, step->to, step->to_bytes);
            tri_text_add(out, text, bytes);
        }
        break;
    case TRI_NORMALIZE_REPLACE:
        return tri_replace(step->regex, work->regex, step->from, step->from_bytes, step->to,
                           step->to_bytes, text, bytes, out, same);
    case TRI_NORMALIZE_STRIP:
        *same = true; /* done by its caller */
        break;
    case TRI_NORMALIZE_NFC:
    case TRI_NORMALIZE_NFD:
    case TRI_NORMALIZE_NFKC:
    case TRI_NORMALIZE_NFKD:
        return tri_normal_form(step->kind, text, bytes, out, same);
    }
    if (out->failed)
        return tri_fail(TRI_NOMEM, "no memory to normalise a text of %zu bytes", bytes);
    return TRI_OK;
}

enum tri_status tri_normalize(const struct tri_normalizer *normalizer,
                              struct tri_normalizer_work *work, const char *text, size_t bytes,
                              const char **out, size_t *out_bytes)
{
    int into = 0;
    for (int i = 0; i < normalizer->count; i++) {
        const struct tri_normalizer_step *step = &normalizer->step[i];
        if (step->kind == TRI_NORMALIZE_STRIP) {
            strip(step, &text, &bytes);
            continue;
        }
        struct tri_text *buffer = &work->buffer[into];
        buffer->bytes = 0;
        buffer->failed = false;
        bool same;
        TRI_TRY(apply(step, work, text, bytes, buffer, &same));
        if (same)
            continue;
        text = tri_text_data(buffer);
        bytes = buffer->bytes;
        into = 1 - into;
    }
    *out = text;
    *out_bytes = bytes;
    return TRI_OK;
}
