#include "data/json_list.h"

#include <inttypes.h>
#include <string.h>

enum { ROOM = 1 << 14 };

/* Bytes that wait to be handed on. */
struct out {
    char data[ROOM];
    size_t bytes;
};

static enum tri_status flush(const struct tri_json_list *list, struct out *out, size_t used)
{
    const size_t bytes = out->bytes;
    out->bytes = 0;
    return bytes > 0 ? list->sink.take(list->sink.ctx, out->data, bytes, used) : TRI_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static enum tri_status misplaced(const struct tri_json_list *list, const char *why)
{
    return tri_fail(TRI_FORMAT, "%s is no JSON list: %s (element %" PRId64 ")", list->what, why,
                    list->elements);
}

/* Between elements. */
static enum tri_status take_between(struct tri_json_list *list, char c)
{
    if (c == ',')
        return misplaced(list, "a comma without an element before it");
    if (c == ']') {
        list->depth = 0;
        list->ended = true;
        return TRI_OK;
    }
    list->in_element = true;
    list->elements++;
    return TRI_OK;
}

/* Inside an element; *ends when c is behind it. */
static enum tri_status take_inside(struct tri_json_list *list, char c, bool *ends)
{
    *ends = false;
    if (list->in_string) {
        if (c == '\n' || c == '\r')
            return misplaced(list, "a line break inside a string");
        list->in_string = c != '"' || list->escaped;
        list->escaped = c == '\\' && !list->escaped;
        return TRI_OK;
    }
    if (list->depth == 1 && (c == ',' || c == ']')) {
        *ends = true;
        return TRI_OK;
    }
    if (c == '"')
        list->in_string = true;
    else if (c == '{' || c == '[')
        list->depth++;
    else if (c == '}' || c == ']')
        list->depth--;
    return list->depth < 1 ? misplaced(list, "a bracket closes that was not opened") : TRI_OK;
}

static enum tri_status take_byte(struct tri_json_list *list, char c, struct out *out)
{
    if (!list->in_element) {
        if (is_space(c))
            return TRI_OK;
        if (list->ended)
            return misplaced(list, "there is something behind it");
        if (list->depth == 0) {
            list->depth = 1;
            return c == '[' ? TRI_OK : misplaced(list, "it does not begin with [");
        }
        TRI_TRY(take_between(list, c));
        if (list->ended)
            return TRI_OK;
    }
    bool ends;
    TRI_TRY(take_inside(list, c, &ends));
    if (ends) {
        out->data[out->bytes++] = '\n';
        list->in_element = false;
        list->ended = c == ']';
    } else {
        out->data[out->bytes++] = c == '\n' || c == '\r' ? ' ' : c;
    }
    return TRI_OK;
}

enum tri_status tri_json_list_take(void *ctx, const void *data, size_t bytes, size_t used)
{
    struct tri_json_list *list = ctx;
    const char *text = data;
    struct out out;
    out.bytes = 0;
    for (size_t i = 0; i < bytes; i++) {
        TRI_TRY(take_byte(list, text[i], &out));
        if (out.bytes == ROOM)
            TRI_TRY(flush(list, &out, used));
    }
    return flush(list, &out, used);
}

enum tri_status tri_json_list_finish(const struct tri_json_list *list)
{
    return list->ended ? TRI_OK : misplaced(list, "it ends in the middle");
}
