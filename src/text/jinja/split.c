/* Methods of str that cut it, and those that ask about its characters. */
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/run.h"

static enum tri_status add_part(struct tri_jinja_run *run, struct tri_jinja_list *list,
                                const struct tri_jinja_string *text, size_t from, size_t to)
{
    struct tri_jinja_value part;
    TRI_TRY(tri_jinja_step(run, 1 + (int64_t)((to - from) / 64)));
    TRI_TRY(tri_jinja_string_ref(&run->pool, text->data + from, to - from, &part));
    return tri_jinja_list_add(&run->pool, list, part);
}

static void reverse(struct tri_jinja_list *list)
{
    for (int64_t i = 0; i < list->count / 2; i++) {
        struct tri_jinja_value other = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = list->items[i];
        list->items[i] = other;
    }
}

/* Where `part` ends last in text[0, end): the offset of its first byte, or -1. */
static int64_t find_last(const struct tri_jinja_string *text, const struct tri_jinja_string *part,
                         size_t end)
{
    if (part->bytes > end)
        return -1;
    for (size_t at = end - part->bytes + 1; at > 0; at--)
        if (text->data[at - 1] == part->data[0] &&
            memcmp(text->data + at - 1, part->data, part->bytes) == 0)
            return (int64_t)at - 1;
    return -1;
}

/* At white space: no empty parts, and what is left after `limit` cuts keeps its other end. */
static enum tri_status split_spaces(struct tri_jinja_run *run, const struct tri_jinja_string *text,
                                    int64_t limit, bool right, struct tri_jinja_list *list)
{
    size_t begin = 0, end = text->bytes;
    for (int64_t cuts = 0;; cuts++) {
        if (right)
            end = begin + tri_space_trimmed(text->data + begin, end - begin);
        else
            begin += tri_space_prefix(text->data + begin, end - begin);
        if (begin == end)
            break;
        if (cuts == limit) {
            TRI_TRY(add_part(run, list, text, begin, end));
            break;
        }
        size_t at = right ? end : begin;
        while (right ? at > begin : at < end) {
            uint32_t c;
            size_t next = at;
            if (right) {
                for (next--; next > begin && ((unsigned char)text->data[next] & 0xC0) == 0x80;)
                    next--;
                tri_character_decode(text->data + next, at - next, &c);
            } else {
                next += tri_character_decode(text->data + at, end - at, &c);
            }
            if (tri_character_is_space(c))
                break;
            at = next;
        }
        TRI_TRY(add_part(run, list, text, right ? at : begin, right ? end : at));
        begin = right ? begin : at;
        end = right ? at : end;
    }
    return TRI_OK;
}

enum tri_status tri_jinja_method_split(struct tri_jinja_run *run, struct tri_jinja_value self,
                                       const struct tri_jinja_arguments *a,
                                       struct tri_jinja_value *out)
{
    const struct tri_jinja_string *text = self.as.string, *part;
    const bool right = a->which != 0;
    int64_t limit;
    TRI_TRY(tri_jinja_string_argument(run, a->values[0], "split: the separator", &part));
    TRI_TRY(tri_jinja_int_argument(run, a->values[1], "split: maxsplit", -1, &limit));
    TRI_TRY(tri_jinja_step(run, (int64_t)(text->bytes / 64)));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, 0, out));
    struct tri_jinja_list *list = out->as.list;
    if (limit < 0)
        limit = INT64_MAX;
    if (part == NULL) {
        TRI_TRY(split_spaces(run, text, limit, right, list));
    } else if (part->bytes == 0) {
        return tri_jinja_fail(run, TRI_INVALID, "split: the separator is empty");
    } else {
        size_t begin = 0, end = text->bytes;
        for (; limit > 0; limit--) {
            int64_t at =
                right ? find_last(text, part, end) : tri_jinja_find_bytes(text, part, begin);
            if (at < 0)
                break;
            if (right) {
                TRI_TRY(add_part(run, list, text, (size_t)at + part->bytes, end));
                end = (size_t)at;
            } else {
                TRI_TRY(add_part(run, list, text, begin, (size_t)at));
                begin = (size_t)at + part->bytes;
            }
        }
        TRI_TRY(add_part(run, list, text, begin, end));
    }
    if (right)
        reverse(list);
    return TRI_OK;
}

enum tri_status tri_jinja_method_partition(struct tri_jinja_run *run, struct tri_jinja_value self,
                                           const struct tri_jinja_arguments *a,
                                           struct tri_jinja_value *out)
{
    const struct tri_jinja_string *text = self.as.string, *part;
    const bool right = a->which != 0;
    TRI_TRY(tri_jinja_string_argument(run, a->values[0], "partition: the separator", &part));
    if (part == NULL || part->bytes == 0)
        return tri_jinja_fail(run, TRI_INVALID, "partition: the separator is empty");
    TRI_TRY(tri_jinja_step(run, (int64_t)(text->bytes / 64)));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_TUPLE, 3, out));
    int64_t at = right ? find_last(text, part, text->bytes) : tri_jinja_find_bytes(text, part, 0);
    /* Not found: everything, then two empty strings; in rpartition the other way round. */
    size_t cuts[4] = {0, right ? 0 : text->bytes, right ? 0 : text->bytes, text->bytes};
    if (at >= 0) {
        cuts[1] = (size_t)at;
        cuts[2] = (size_t)at + part->bytes;
    }
    for (int i = 0; i < 3; i++)
        TRI_TRY(add_part(run, out->as.list, text, cuts[i], cuts[i + 1]));
    return TRI_OK;
}

static bool ends_line(uint32_t c)
{
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

enum tri_status tri_jinja_method_splitlines(struct tri_jinja_run *run, struct tri_jinja_value self,
                                            const struct tri_jinja_arguments *a,
                                            struct tri_jinja_value *out)
{
    const struct tri_jinja_string *text = self.as.string;
    const bool keep = tri_jinja_truth(a->values[0]);
    size_t begin = 0, at = 0;
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, 0, out));
    while (at < text->bytes) {
        uint32_t c;
        size_t n = tri_character_decode(text->data + at, text->bytes - at, &c);
        if (!ends_line(c)) {
            at += n;
            continue;
        }
        if (c == '\r' && at + 1 < text->bytes && text->data[at + 1] == '\n')
            n = 2;
        TRI_TRY(add_part(run, out->as.list, text, begin, keep ? at + n : at));
        at += n;
        begin = at;
    }
    if (begin < text->bytes)
        TRI_TRY(add_part(run, out->as.list, text, begin, text->bytes));
    return TRI_OK;
}

enum tri_status tri_jinja_method_is(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *a,
                                    struct tri_jinja_value *out)
{
    const struct tri_jinja_string *text = self.as.string;
    bool all = text->bytes > 0;
    TRI_TRY(tri_jinja_step(run, (int64_t)(text->bytes / 64)));
    for (size_t at = 0; at < text->bytes && all;) {
        uint32_t c;
        at += tri_character_decode(text->data + at, text->bytes - at, &c);
        bool digit = tri_character_is_digit(c), letter = tri_character_is_letter(c);
        switch ((enum tri_jinja_character_class)a->which) {
        case TRI_JINJA_IS_DIGIT:
            all = digit;
            break;
        case TRI_JINJA_IS_ALPHA:
            all = letter;
            break;
        case TRI_JINJA_IS_ALNUM:
            all = digit || letter;
            break;
        default:
            all = tri_character_is_space(c);
        }
    }
    *out = tri_jinja_bool(all);
    return TRI_OK;
}
