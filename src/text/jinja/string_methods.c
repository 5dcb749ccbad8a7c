/* Methods of str. */
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/run.h"

int64_t tri_jinja_find_bytes(const struct tri_jinja_string *text,
                             const struct tri_jinja_string *part, size_t from)
{
    if (from > text->bytes)
        return -1;
    if (part->bytes == 0)
        return (int64_t)from;
    const char *at = memmem(text->data + from, text->bytes - from, part->data, part->bytes);
    return at == NULL ? -1 : at - text->data;
}

static enum tri_status charge(struct tri_jinja_run *run, const struct tri_jinja_string *text)
{
    return tri_jinja_step(run, (int64_t)(text->bytes / 64));
}

/* Is `c` in the set, or a space when there is no set? */
static bool strips(uint32_t c, const struct tri_jinja_string *set)
{
    if (set == NULL)
        return tri_character_is_space(c);
    for (size_t at = 0; at < set->bytes;) {
        uint32_t s;
        at += tri_character_decode(set->data + at, set->bytes - at, &s);
        if (s == c)
            return true;
    }
    return false;
}

enum tri_status tri_jinja_strip(struct tri_jinja_run *run, const struct tri_jinja_string *text,
                                struct tri_jinja_value characters, bool left, bool right,
                                struct tri_jinja_value *out)
{
    const struct tri_jinja_string *set;
    TRI_TRY(tri_jinja_string_argument(run, characters, "the characters to strip", &set));
    TRI_TRY(charge(run, text));
    size_t begin = 0, end = text->bytes;
    uint32_t c;
    while (left && begin < end) {
        size_t n = tri_character_decode(text->data + begin, end - begin, &c);
        if (!strips(c, set))
            break;
        begin += n;
    }
    while (right && begin < end) {
        size_t start = end - 1;
        while (start > begin && ((unsigned char)text->data[start] & 0xC0) == 0x80)
            start--;
        tri_character_decode(text->data + start, end - start, &c);
        if (!strips(c, set))
            break;
        end = start;
    }
    return tri_jinja_string_ref(&run->pool, text->data + begin, end - begin, out);
}

enum { LEFT = 1, RIGHT = 2 };

static enum tri_status method_strip(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *a,
                                    struct tri_jinja_value *out)
{
    return tri_jinja_strip(run, self.as.string, a->values[0], (a->which & LEFT) != 0,
                           (a->which & RIGHT) != 0, out);
}

static enum tri_status method_case(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    return tri_jinja_case(run, self.as.string, (enum tri_jinja_case)a->which, out);
}

static bool fits_at(const struct tri_jinja_string *text, const struct tri_jinja_string *part,
                    bool end)
{
    return part->bytes <= text->bytes &&
           memcmp(text->data + (end ? text->bytes - part->bytes : 0), part->data, part->bytes) == 0;
}

/* startswith and endswith, of one string or of any of a tuple. */
static enum tri_status method_fits(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    const bool end = a->which == RIGHT;
    const struct tri_jinja_string *part;
    if (a->values[1].kind != TRI_JINJA_MISSING || a->values[2].kind != TRI_JINJA_MISSING)
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "%s with bounds is not supported",
                              end ? "endswith" : "startswith");
    if (a->values[0].kind != TRI_JINJA_TUPLE) {
        TRI_TRY(
            tri_jinja_string_argument(run, a->values[0], "startswith, endswith: the text", &part));
        if (part == NULL)
            return tri_jinja_fail(run, TRI_INVALID, "startswith, endswith: the text is None");
        *out = tri_jinja_bool(fits_at(self.as.string, part, end));
        return TRI_OK;
    }
    bool fits = false;
    const struct tri_jinja_list *parts = a->values[0].as.list;
    TRI_TRY(tri_jinja_step(run, parts->count));
    for (int64_t i = 0; i < parts->count && !fits; i++) {
        TRI_TRY(
            tri_jinja_string_argument(run, parts->items[i], "startswith, endswith: a text", &part));
        fits = part != NULL && fits_at(self.as.string, part, end);
    }
    *out = tri_jinja_bool(fits);
    return TRI_OK;
}

static enum tri_status method_remove(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *a,
                                     struct tri_jinja_value *out)
{
    const bool end = a->which == RIGHT;
    const struct tri_jinja_string *text = self.as.string, *part;
    TRI_TRY(tri_jinja_string_argument(run, a->values[0], "the text to remove", &part));
    *out = self;
    if (part == NULL || part->bytes == 0 || !fits_at(text, part, end))
        return TRI_OK;
    return tri_jinja_string_ref(&run->pool, text->data + (end ? 0 : part->bytes),
                                text->bytes - part->bytes, out);
}

/* Byte offset to index of a character. */
static int64_t characters_before(const struct tri_jinja_string *text, int64_t offset)
{
    int64_t count = 0;
    for (int64_t i = 0; i < offset; i++)
        count += ((unsigned char)text->data[i] & 0xC0) != 0x80;
    return count;
}

enum { FIND, INDEX, RFIND, RINDEX, COUNT };

static enum tri_status method_find(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    const struct tri_jinja_string *part;
    TRI_TRY(tri_jinja_string_argument(run, a->values[0], "find: the text", &part));
    if (part == NULL)
        return tri_jinja_fail(run, TRI_INVALID, "find: the text is None");
    struct tri_jinja_value bounds[3] = {a->values[1], a->values[2], tri_jinja_none()}, window;
    int64_t skipped = 0;
    for (int i = 0; i < 2; i++)
        if (bounds[i].kind == TRI_JINJA_MISSING)
            bounds[i] = tri_jinja_none();
    TRI_TRY(tri_jinja_slice(run, self, bounds, &window));
    const struct tri_jinja_string *text = window.as.string;
    if (bounds[0].kind != TRI_JINJA_NONE) {
        skipped = tri_jinja_as_int(bounds[0]);
        if (skipped < 0)
            skipped = skipped + self.as.string->length < 0 ? 0 : skipped + self.as.string->length;
    }
    TRI_TRY(charge(run, text));
    int64_t found = -1, count = 0;
    for (int64_t at = tri_jinja_find_bytes(text, part, 0); at >= 0; count++) {
        found = at;
        if (a->which == FIND || a->which == INDEX || (size_t)at >= text->bytes)
            break;
        at = tri_jinja_find_bytes(
            text, part, (size_t)at + (a->which == COUNT && part->bytes > 0 ? part->bytes : 1));
    }
    if (a->which == COUNT) {
        if (part->bytes == 0)
            return tri_jinja_fail(run, TRI_UNSUPPORTED, "count of an empty string");
        *out = tri_jinja_int(count);
        return TRI_OK;
    }
    if (found < 0 && (a->which == INDEX || a->which == RINDEX))
        return tri_jinja_fail(run, TRI_INVALID, "index: substring not found");
    *out = tri_jinja_int(found < 0 ? -1 : skipped + characters_before(text, found));
    return TRI_OK;
}

enum tri_status tri_jinja_replace(struct tri_jinja_run *run, const struct tri_jinja_string *text,
                                  const struct tri_jinja_string *from,
                                  const struct tri_jinja_string *to, int64_t count,
                                  struct tri_jinja_value *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    size_t done = 0;
    TRI_TRY(charge(run, text));
    if (count < 0)
        count = INT64_MAX;
    while (count > 0) {
        int64_t at = tri_jinja_find_bytes(text, from, done);
        if (at < 0)
            break;
        TRI_TRY(tri_jinja_step(run, 1));
        tri_jinja_buffer_add(&buffer, text->data + done, (size_t)at - done);
        tri_jinja_buffer_add(&buffer, to->data, to->bytes);
        done = (size_t)at + from->bytes;
        count--;
        if (from->bytes == 0) {
            /* Between all characters: one of them goes along each time. */
            if (done == text->bytes)
                break;
            uint32_t c;
            size_t n = tri_character_decode(text->data + done, text->bytes - done, &c);
            tri_jinja_buffer_add(&buffer, text->data + done, n);
            done += n;
        }
    }
    if (done < text->bytes)
        tri_jinja_buffer_add(&buffer, text->data + done, text->bytes - done);
    return tri_jinja_buffer_value(&buffer, out);
}

static enum tri_status method_replace(struct tri_jinja_run *run, struct tri_jinja_value self,
                                      const struct tri_jinja_arguments *a,
                                      struct tri_jinja_value *out)
{
    const struct tri_jinja_string *from, *to;
    int64_t count;
    TRI_TRY(tri_jinja_string_argument(run, a->values[0], "replace: the old text", &from));
    TRI_TRY(tri_jinja_string_argument(run, a->values[1], "replace: the new text", &to));
    TRI_TRY(tri_jinja_int_argument(run, a->values[2], "replace: count", -1, &count));
    if (from == NULL || to == NULL)
        return tri_jinja_fail(run, TRI_INVALID, "replace: a text is None");
    return tri_jinja_replace(run, self.as.string, from, to, count, out);
}

static enum tri_status method_join(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    struct tri_jinja_list *list;
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    TRI_TRY(tri_jinja_iterate(run, a->values[0], &list));
    for (int64_t i = 0; i < list->count; i++) {
        const struct tri_jinja_string *item;
        TRI_TRY(tri_jinja_step(run, 1));
        TRI_TRY(tri_jinja_string_argument(run, list->items[i], "join: an item", &item));
        if (item == NULL)
            return tri_jinja_fail(run, TRI_INVALID, "join: an item is None");
        if (i > 0)
            tri_jinja_buffer_add(&buffer, self.as.string->data, self.as.string->bytes);
        tri_jinja_buffer_add(&buffer, item->data, item->bytes);
    }
    return tri_jinja_buffer_value(&buffer, out);
}

static const struct tri_jinja_builtin items[] = {
    {"strip", method_strip, "chars", 0, LEFT | RIGHT},
    {"lstrip", method_strip, "chars", 0, LEFT},
    {"rstrip", method_strip, "chars", 0, RIGHT},
    {"upper", method_case, "", 0, TRI_JINJA_UPPER},
    {"lower", method_case, "", 0, TRI_JINJA_LOWER},
    {"capitalize", method_case, "", 0, TRI_JINJA_CAPITALIZE},
    {"title", method_case, "", 0, TRI_JINJA_TITLE},
    {"startswith", method_fits, "prefix,start,end", 1, LEFT},
    {"endswith", method_fits, "suffix,start,end", 1, RIGHT},
    {"removeprefix", method_remove, "prefix", 1, LEFT},
    {"removesuffix", method_remove, "suffix", 1, RIGHT},
    {"find", method_find, "sub,start,end", 1, FIND},
    {"index", method_find, "sub,start,end", 1, INDEX},
    {"rfind", method_find, "sub,start,end", 1, RFIND},
    {"rindex", method_find, "sub,start,end", 1, RINDEX},
    {"count", method_find, "sub,start,end", 1, COUNT},
    {"replace", method_replace, "old,new,count", 2, 0},
    {"join", method_join, "iterable", 1, 0},
    {"split", tri_jinja_method_split, "sep,maxsplit", 0, 0},
    {"rsplit", tri_jinja_method_split, "sep,maxsplit", 0, 1},
    {"splitlines", tri_jinja_method_splitlines, "keepends", 0, 0},
    {"partition", tri_jinja_method_partition, "sep", 1, 0},
    {"rpartition", tri_jinja_method_partition, "sep", 1, 1},
    {"isdigit", tri_jinja_method_is, "", 0, TRI_JINJA_IS_DIGIT},
    {"isdecimal", tri_jinja_method_is, "", 0, TRI_JINJA_IS_DIGIT},
    {"isnumeric", tri_jinja_method_is, "", 0, TRI_JINJA_IS_DIGIT},
    {"isalpha", tri_jinja_method_is, "", 0, TRI_JINJA_IS_ALPHA},
    {"isalnum", tri_jinja_method_is, "", 0, TRI_JINJA_IS_ALNUM},
    {"isspace", tri_jinja_method_is, "", 0, TRI_JINJA_IS_SPACE},
    {"format", tri_jinja_method_format, NULL, 0, 0},
    {"casefold", NULL, "", 0, 0},
    {"center", NULL, "", 0, 0},
    {"encode", NULL, "", 0, 0},
    {"expandtabs", NULL, "", 0, 0},
    {"format_map", NULL, "", 0, 0},
    {"isascii", NULL, "", 0, 0},
    {"isidentifier", NULL, "", 0, 0},
    {"islower", NULL, "", 0, 0},
    {"isprintable", NULL, "", 0, 0},
    {"istitle", NULL, "", 0, 0},
    {"isupper", NULL, "", 0, 0},
    {"ljust", NULL, "", 0, 0},
    {"maketrans", NULL, "", 0, 0},
    {"rjust", NULL, "", 0, 0},
    {"swapcase", NULL, "", 0, 0},
    {"translate", NULL, "", 0, 0},
    {"zfill", NULL, "", 0, 0},
};

const struct tri_jinja_builtins tri_jinja_string_methods = {items, sizeof items / sizeof *items};
