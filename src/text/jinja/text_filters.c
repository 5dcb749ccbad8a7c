/* Filters whose input is taken as text. */
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/run.h"

static enum tri_status filter_string(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *a,
                                     struct tri_jinja_value *out)
{
    (void)a;
    return tri_jinja_to_string(run, self, out);
}

static enum tri_status filter_trim(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    TRI_TRY(tri_jinja_to_string(run, self, &self));
    return tri_jinja_strip(run, self.as.string, a->values[0], true, true, out);
}

static enum tri_status filter_case(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    TRI_TRY(tri_jinja_to_string(run, self, &self));
    return tri_jinja_case(run, self.as.string, (enum tri_jinja_case)a->which, out);
}

static enum tri_status filter_replace(struct tri_jinja_run *run, struct tri_jinja_value self,
                                      const struct tri_jinja_arguments *a,
                                      struct tri_jinja_value *out)
{
    struct tri_jinja_value from, to;
    int64_t count = -1;
    TRI_TRY(tri_jinja_to_string(run, self, &self));
    TRI_TRY(tri_jinja_to_string(run, a->values[0], &from));
    TRI_TRY(tri_jinja_to_string(run, a->values[1], &to));
    if (a->values[2].kind != TRI_JINJA_NONE)
        TRI_TRY(tri_jinja_int_argument(run, a->values[2], "replace: count", -1, &count));
    return tri_jinja_replace(run, self.as.string, from.as.string, to.as.string, count, out);
}

/* Lines as str.splitlines() cuts them, joined by "\n" and `indent` spaces. */
static enum tri_status filter_indent(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *a,
                                     struct tri_jinja_value *out)
{
    enum { MAX_INDENT = 1000 };
    struct tri_jinja_buffer buffer = {.pool = &run->pool}, indent = {.pool = &run->pool};
    struct tri_jinja_value values[1] = {{.kind = TRI_JINJA_MISSING}}, lines;
    const struct tri_jinja_arguments none = {.values = values, .count = 1};
    const bool first = tri_jinja_truth(a->values[1]), blank = tri_jinja_truth(a->values[2]);
    if (a->values[0].kind == TRI_JINJA_STRING) {
        tri_jinja_buffer_add(&indent, a->values[0].as.string->data, a->values[0].as.string->bytes);
    } else {
        int64_t width;
        TRI_TRY(tri_jinja_int_argument(run, a->values[0], "indent: width", 4, &width));
        if (width > MAX_INDENT)
            return tri_jinja_fail(run, TRI_UNSUPPORTED, "indent: a width over %d", MAX_INDENT);
        for (int64_t i = 0; i < width; i++)
            tri_jinja_buffer_text(&indent, " ");
    }
    /* With one more line end, so that text that ends with one keeps an empty last line. */
    struct tri_jinja_buffer text = {.pool = &run->pool};
    TRI_TRY(tri_jinja_str(run, self, &text));
    tri_jinja_buffer_text(&text, "\n");
    TRI_TRY(tri_jinja_buffer_value(&text, &self));
    TRI_TRY(tri_jinja_method_splitlines(run, self, &none, &lines));
    const struct tri_jinja_list *list = lines.as.list;
    for (int64_t i = 0; i < list->count; i++) {
        const struct tri_jinja_string *line = list->items[i].as.string;
        if (i > 0)
            tri_jinja_buffer_text(&buffer, "\n");
        if ((i > 0 && (blank || line->bytes > 0)) || (i == 0 && first)) {
            TRI_TRY(tri_jinja_step(run, 1 + (int64_t)(indent.bytes / 64)));
            tri_jinja_buffer_add(&buffer, indent.data, indent.bytes);
        }
        tri_jinja_buffer_add(&buffer, line->data, line->bytes);
    }
    return tri_jinja_buffer_value(&buffer, out);
}

void tri_jinja_add_escaped(const struct tri_jinja_string *text, bool escape,
                           struct tri_jinja_buffer *out)
{
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    static const char characters[] = "&<>\"'";
    size_t plain = 0; /* what is not written yet starts here */
    for (size_t i = 0; i < text->bytes && escape && !text->markup; i++) {
        const char *found = text->data[i] == '\0' ? NULL : strchr(characters, text->data[i]);
        if (found == NULL)
            continue;
        tri_jinja_buffer_add(out, text->data + plain, i - plain);
        tri_jinja_buffer_text(out, names[found - characters]);
        plain = i + 1;
    }
    tri_jinja_buffer_add(out, text->data + plain, text->bytes - plain);
}

enum tri_status tri_jinja_mark_safe(struct tri_jinja_run *run, struct tri_jinja_value *string)
{
    struct tri_jinja_string *marked = tri_jinja_pool_get(&run->pool, sizeof *marked);
    if (marked == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    *marked = *string->as.string;
    marked->markup = true;
    string->as.string = marked;
    return TRI_OK;
}

static enum tri_status filter_safe(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    (void)a;
    TRI_TRY(tri_jinja_to_string(run, self, out));
    return tri_jinja_mark_safe(run, out);
}

static enum tri_status filter_escape(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *a,
                                     struct tri_jinja_value *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    (void)a;
    TRI_TRY(tri_jinja_to_string(run, self, &self));
    TRI_TRY(tri_jinja_step(run, (int64_t)(self.as.string->bytes / 16)));
    tri_jinja_add_escaped(self.as.string, true, &buffer);
    TRI_TRY(tri_jinja_buffer_value(&buffer, out));
    return tri_jinja_mark_safe(run, out);
}

/* "%s and %s" | format(a, b) */
static enum tri_status filter_format(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *a,
                                     struct tri_jinja_value *out)
{
    struct tri_jinja_value values;
    TRI_TRY(tri_jinja_to_string(run, self, &self));
    if (a->positional > 0 && a->positional < a->count)
        return tri_jinja_fail(run, TRI_INVALID, "format: arguments with and without names");
    if (a->positional == 0 && a->count > 0) {
        TRI_TRY(tri_jinja_dict(&run->pool, TRI_JINJA_DICT, a->count, &values));
        for (int i = 0; i < a->count; i++)
            TRI_TRY(tri_jinja_dict_add(
                &run->pool, values.as.dict,
                (struct tri_jinja_value){.kind = TRI_JINJA_STRING, .as.string = a->names[i]},
                a->values[i]));
    } else {
        TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_TUPLE, a->count, &values));
        for (int i = 0; i < a->count; i++)
            values.as.list->items[values.as.list->count++] = a->values[i];
    }
    return tri_jinja_percent(run, self.as.string, values, out);
}

static enum tri_status filter_wordcount(struct tri_jinja_run *run, struct tri_jinja_value self,
                                        const struct tri_jinja_arguments *a,
                                        struct tri_jinja_value *out)
{
    (void)a;
    TRI_TRY(tri_jinja_to_string(run, self, &self));
    const struct tri_jinja_string *text = self.as.string;
    int64_t words = 0;
    bool inside = false;
    TRI_TRY(tri_jinja_step(run, (int64_t)(text->bytes / 16)));
    for (size_t at = 0; at < text->bytes;) {
        uint32_t c;
        at += tri_character_decode(text->data + at, text->bytes - at, &c);
        bool word = c == '_' || tri_character_is_letter(c) || tri_character_is_digit(c);
        words += word && !inside;
        inside = word;
    }
    *out = tri_jinja_int(words);
    return TRI_OK;
}

static const struct tri_jinja_builtin items[] = {
    {"string", filter_string, "", 0, 0},
    {"safe", filter_safe, "", 0, 0},
    {"trim", filter_trim, "chars", 0, 0},
    {"upper", filter_case, "", 0, TRI_JINJA_UPPER},
    {"lower", filter_case, "", 0, TRI_JINJA_LOWER},
    {"capitalize", filter_case, "", 0, TRI_JINJA_CAPITALIZE},
    {"title", filter_case, "", 0, TRI_JINJA_TITLE_FILTER},
    {"replace", filter_replace, "old,new,count", 2, 0},
    {"indent", filter_indent, "width,first,blank", 0, 0},
    {"escape", filter_escape, "", 0, 0},
    {"e", filter_escape, "", 0, 0},
    {"format", filter_format, NULL, 0, 0},
    {"wordcount", filter_wordcount, "", 0, 0},
    {"tojson", tri_jinja_tojson, "ensure_ascii,indent,separators,sort_keys", 0, 0},
};
const struct tri_jinja_builtins tri_jinja_text_filters = {items, sizeof items / sizeof *items};
