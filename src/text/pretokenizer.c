#include "text/pretokenizer.h"

#include <string.h>

#include "text/bytechar.h"
#include "text/unicode.h"

/* A text on its way through the steps, and the same for regular expressions (text/unicode.h): equal
 * lengths, mostly equal pointers. */
struct part {
    const char *text, *alike;
    size_t bytes;
    bool at_start;
};

struct pass {
    const struct tri_pretokenizer *pretokenizer;
    struct tri_pretokenizer_work *work;
    enum tri_status (*take)(void *ctx, const char *piece, size_t bytes);
    void *ctx;
};

static enum tri_status run(const struct pass *pass, int number, struct part part);

static enum tri_status run_range(const struct pass *pass, int number, const struct part *part,
                                 size_t begin, size_t end)
{
    if (end <= begin)
        return TRI_OK;
    return run(pass, number,
               (struct part){part->text + begin, part->alike + begin, end - begin,
                             part->at_start && begin == 0});
}

/* The matches of a split, one by one, and what lies between them. */
struct parts {
    const struct pass *pass;
    const struct tri_pretokenizer_step *step;
    const struct part *part;
    struct tri_regex_walk walk;
    size_t done;
    bool found, ended;
};

static enum tri_status find_text(struct parts *parts)
{
    struct tri_regex_walk *walk = &parts->walk;
    const char *match = memmem(walk->text + walk->at, walk->bytes - walk->at, parts->step->text,
                               parts->step->bytes);
    parts->found = match != NULL;
    if (match) {
        walk->begin = (size_t)(match - walk->text);
        walk->at = walk->end = walk->begin + parts->step->bytes;
    }
    return TRI_OK;
}

static enum tri_status find_character(struct parts *parts, bool (*is_match)(uint32_t c))
{
    struct tri_regex_walk *walk = &parts->walk;
    parts->found = false;
    for (size_t length; walk->at < walk->bytes && !parts->found; walk->at += length) {
        parts->found = is_match(tri_char_at(walk->text + walk->at, &length));
        walk->begin = walk->at;
        walk->end = walk->at + length;
    }
    return TRI_OK;
}

static enum tri_status find(struct parts *parts)
{
    switch (parts->step->kind) {
    case TRI_SPLIT_REGEX:
        return tri_regex_next(parts->step->regex, parts->pass->work->regex, &parts->walk,
                              &parts->found);
    case TRI_SPLIT_TEXT:
        return find_text(parts);
    case TRI_SPLIT_SPACE:
        return find_character(parts, tri_char_is_space);
    case TRI_SPLIT_NUMERIC:
        return find_character(parts, tri_char_is_numeric);
    default:
        return tri_fail(TRI_INTERNAL, "a step that does not split");
    }
}

/* The next range and whether it is a match; false behind the last. */
static enum tri_status next_range(struct parts *parts, size_t *begin, size_t *end, bool *is_match,
                                  bool *more)
{
    *more = true;
    if (!parts->found && !parts->ended) {
        TRI_TRY(find(parts));
        parts->ended = !parts->found;
    }
    *begin = parts->done;
    if (parts->found && parts->walk.begin <= parts->done) {
        *end = parts->walk.end;
        *is_match = !parts->step->invert;
        parts->found = false;
    } else {
        *end = parts->found ? parts->walk.begin : parts->part->bytes;
        *is_match = parts->step->invert;
        *more = *end > *begin || parts->found;
    }
    parts->done = *end;
    return TRI_OK;
}

/* Does a range join the one before it? `first` is false for the first range of the text. */
static bool joins(enum tri_split_behavior behavior, bool was_match, bool is_match)
{
    switch (behavior) {
    case TRI_SPLIT_REMOVED:
    case TRI_SPLIT_ISOLATED:
        return false;
    case TRI_SPLIT_MERGED_WITH_PREVIOUS:
        return is_match && !was_match;
    case TRI_SPLIT_MERGED_WITH_NEXT:
        return was_match && !is_match;
    case TRI_SPLIT_CONTIGUOUS:
        return is_match == was_match;
    }
    return false;
}

static enum tri_status split(const struct pass *pass, int number, const struct part *part)
{
    const struct tri_pretokenizer_step *step = &pass->pretokenizer->step[number];
    struct parts parts = {.pass = pass, .step = step, .part = part};
    parts.walk.text = step->kind == TRI_SPLIT_REGEX ? part->alike : part->text;
    parts.walk.bytes = part->bytes;
    size_t held_begin = 0, held_end = 0; /* a range that the next one may join */
    bool held = false, was_match = false;
    for (;;) {
        size_t begin, end;
        bool is_match, more;
        TRI_TRY(next_range(&parts, &begin, &end, &is_match, &more));
        if (!more)
            break;
        if (held && joins(step->behavior, was_match, is_match)) {
            held_end = end;
        } else {
            if (held)
                TRI_TRY(run_range(pass, number + 1, part, held_begin, held_end));
            held = !(step->behavior == TRI_SPLIT_REMOVED && is_match);
            held_begin = begin;
            held_end = end;
        }
        was_match = is_match;
    }
    return held ? run_range(pass, number + 1, part, held_begin, held_end) : TRI_OK;
}

static void put_meta(const struct tri_pretokenizer_step *step, const struct part *part,
                     struct tri_text *out)
{
    const char *text = part->text;
    const bool marked = text[0] == ' ' ||
                        (part->bytes >= step->bytes && memcmp(text, step->text, step->bytes) == 0);
    if (!marked &&
        (step->scheme == TRI_META_ALWAYS || (step->scheme == TRI_META_FIRST && part->at_start)))
        tri_text_add(out, step->text, step->bytes);
    size_t done = 0;
    for (const char *p; (p = memchr(text + done, ' ', part->bytes - done));) {
        const size_t at = (size_t)(p - text);
        tri_text_add(out, text + done, at - done);
        tri_text_add(out, step->text, step->bytes);
        done = at + 1;
    }
    tri_text_add(out, text + done, part->bytes - done);
}

static void map_bytes(const struct part *part, struct tri_text *out)
{
    for (size_t i = 0; i < part->bytes; i++) {
        char character[4];
        tri_text_add(out, character,
                     tri_char_put(tri_byte_char((unsigned char)part->text[i]), character));
    }
}

/* Make part->alike of a text that is new. */
static enum tri_status make_alike(const struct pass *pass, int number, struct part *part)
{
    part->alike = part->text;
    if (!pass->pretokenizer->has_regex || tri_text_is_classified_alike(part->text, part->bytes))
        return TRI_OK;
    struct tri_text *alike = &pass->work->alike[number];
    alike->bytes = 0;
    alike->failed = false;
    tri_text_add(alike, part->text, part->bytes);
    if (alike->failed)
        return tri_fail(TRI_NOMEM, "no memory to split a text of %zu bytes", part->bytes);
    tri_text_classify_alike(alike->data, alike->bytes);
    part->alike = alike->data;
    return TRI_OK;
}

static enum tri_status change(const struct pass *pass, int number, const struct part *part)
{
    const struct tri_pretokenizer_step *step = &pass->pretokenizer->step[number];
    struct tri_text *out = &pass->work->changed[number];
    if (step->kind == TRI_PUT_SPACE && part->text[0] == ' ')
        return run(pass, number + 1, *part);
    out->bytes = 0;
    out->failed = false;
    if (step->kind == TRI_PUT_META) {
        put_meta(step, part, out);
    } else if (step->kind == TRI_MAP_BYTES) {
        map_bytes(part, out);
    } else {
        tri_text_add(out, " ", 1);
        tri_text_add(out, part->text, part->bytes);
    }
    if (out->failed)
        return tri_fail(TRI_NOMEM, "no memory to split a text of %zu bytes", part->bytes);
    struct part changed = {.text = tri_text_data(out), .bytes = out->bytes};
    changed.at_start = part->at_start;
    TRI_TRY(make_alike(pass, number, &changed));
    return run(pass, number + 1, changed);
}

static enum tri_status run(const struct pass *pass, int number, struct part part)
{
    if (number == pass->pretokenizer->count)
        return pass->take(pass->ctx, part.text, part.bytes);
    switch (pass->pretokenizer->step[number].kind) {
    case TRI_PUT_SPACE:
    case TRI_PUT_META:
    case TRI_MAP_BYTES:
        return change(pass, number, &part);
    default:
        return split(pass, number, &part);
    }
}

enum tri_status tri_pretokenize(const struct tri_pretokenizer *pretokenizer,
                                struct tri_pretokenizer_work *work, const char *text, size_t bytes,
                                bool at_start,
                                enum tri_status (*take)(void *ctx, const char *piece, size_t bytes),
                                void *ctx)
{
    if (bytes == 0)
        return TRI_OK;
    const struct pass pass = {pretokenizer, work, take, ctx};
    struct part part = {.text = text, .bytes = bytes, .at_start = at_start};
    TRI_TRY(make_alike(&pass, TRI_PRETOKENIZER_STEPS, &part));
    return run(&pass, 0, part);
}
