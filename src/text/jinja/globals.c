/* Global functions. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "text/jinja/run.h"

enum { MAX_RANGE = 100000 }; /* of Jinja's sandbox */

static enum tri_status global_range(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *arguments,
                                    struct tri_jinja_value *out)
{
    (void)self;
    int64_t v[3] = {0, 0, 1};
    for (int i = 0; i < 3; i++)
        TRI_TRY(tri_jinja_int_argument(run, arguments->values[i], "range: a bound", v[i], &v[i]));
    if (arguments->values[1].kind == TRI_JINJA_MISSING) {
        v[1] = v[0];
        v[0] = 0;
    }
    const int64_t limit = (int64_t)1 << 60;
    if (v[2] == 0)
        return tri_jinja_fail(run, TRI_INVALID, "range: the step is zero");
    for (int i = 0; i < 3; i++)
        if (v[i] > limit || v[i] < -limit)
            return tri_jinja_fail(run, TRI_UNSUPPORTED, "range: %" PRId64 " is too large", v[i]);
    int64_t distance = v[2] > 0 ? v[1] - v[0] : v[0] - v[1];
    int64_t stride = v[2] > 0 ? v[2] : -v[2];
    int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    if (count > MAX_RANGE)
        return tri_jinja_fail(run, TRI_INVALID, "range: %" PRId64 " items, at most %d are allowed",
                              count, MAX_RANGE);
    TRI_TRY(tri_jinja_step(run, count / 8));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_RANGE, count, out));
    struct tri_jinja_list *list = out->as.list;
    list->start = v[0];
    list->stop = v[1];
    list->step = v[2];
    for (; list->count < count; list->count++)
        list->items[list->count] = tri_jinja_int(v[0] + list->count * v[2]);
    return TRI_OK;
}

/* dict(a=1, ...) and namespace(a=1, ...), both also with a mapping in front. */
static enum tri_status global_dict(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *arguments,
                                   struct tri_jinja_value *out)
{
    (void)self;
    TRI_TRY(
        tri_jinja_dict(&run->pool, (enum tri_jinja_kind)arguments->which, arguments->count, out));
    if (arguments->positional > 1)
        return tri_jinja_fail(run, TRI_INVALID, "at most one argument without a name");
    if (arguments->positional == 1 && arguments->values[0].kind == TRI_JINJA_DICT) {
        const struct tri_jinja_dict *from = arguments->values[0].as.dict;
        TRI_TRY(tri_jinja_step(run, from->count));
        for (int64_t i = 0; i < from->count; i++)
            TRI_TRY(tri_jinja_dict_add(&run->pool, out->as.dict, from->pairs[i].key,
                                       from->pairs[i].value));
    } else if (arguments->positional == 1) {
        struct tri_jinja_list *pairs, *pair;
        TRI_TRY(tri_jinja_iterate(run, arguments->values[0], &pairs));
        for (int64_t i = 0; i < pairs->count; i++) {
            TRI_TRY(tri_jinja_iterate(run, pairs->items[i], &pair));
            if (pair->count != 2)
                return tri_jinja_fail(run, TRI_INVALID, "dict: not a sequence of pairs");
            TRI_TRY(tri_jinja_dict_set(run, out->as.dict, pair->items[0], pair->items[1]));
        }
    }
    for (int i = arguments->positional; i < arguments->count; i++) {
        struct tri_jinja_value key = {.kind = TRI_JINJA_STRING, .as.string = arguments->names[i]};
        TRI_TRY(tri_jinja_dict_set(run, out->as.dict, key, arguments->values[i]));
    }
    return TRI_OK;
}

static enum tri_status global_raise(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *arguments,
                                    struct tri_jinja_value *out)
{
    (void)self;
    TRI_TRY(tri_jinja_to_string(run, arguments->values[0], out));
    const struct tri_jinja_string *text = out->as.string;
    return tri_jinja_fail(run, TRI_INVALID, "the template refuses these messages: %.*s",
                          (int)(text->bytes < 300 ? text->bytes : 300), text->data);
}

/* One directive at a time, so that a hostile width cannot ask for much. */
static enum tri_status global_strftime_now(struct tri_jinja_run *run, struct tri_jinja_value self,
                                           const struct tri_jinja_arguments *arguments,
                                           struct tri_jinja_value *out)
{
    (void)self;
    const struct tri_jinja_string *format;
    TRI_TRY(tri_jinja_string_argument(run, arguments->values[0], "strftime_now: format", &format));
    if (format == NULL)
        return tri_jinja_fail(run, TRI_INVALID, "strftime_now: no format");
    time_t now = (time_t)run->now;
    struct tm tm;
    if (gmtime_r(&now, &tm) == NULL)
        return tri_jinja_fail(run, TRI_INVALID, "strftime_now: a time out of range");
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    for (size_t i = 0; i < format->bytes; i++) {
        char directive[4] = {'%'}, text[128];
        if (format->data[i] != '%') {
            tri_jinja_buffer_add(&buffer, format->data + i, 1);
            continue;
        }
        size_t n = 1;
        if (i + 1 < format->bytes && strchr("-_0^#", format->data[i + 1]) != NULL &&
            format->data[i + 1] != '\0')
            directive[n++] = format->data[++i];
        char letter = i + 1 < format->bytes ? format->data[++i] : '\0';
        if (letter == '\0' || strchr("aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYfzZ%", letter) == NULL)
            return tri_jinja_fail(run, TRI_UNSUPPORTED,
                                  "strftime_now: a directive of '%.*s' is not known",
                                  (int)(format->bytes < 60 ? format->bytes : 60), format->data);
        directive[n] = letter;
        /* A Python datetime without zone prints nothing for it; microseconds are zero here. */
        if (letter == 'f')
            tri_jinja_buffer_text(&buffer, "000000");
        else if (letter != 'z' && letter != 'Z')
            tri_jinja_buffer_add(&buffer, text, strftime(text, sizeof text, directive, &tm));
    }
    return tri_jinja_buffer_value(&buffer, out);
}

static enum tri_status global_cycler(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *arguments,
                                     struct tri_jinja_value *out)
{
    (void)self;
    if (arguments->count == 0 || arguments->positional < arguments->count)
        return tri_jinja_fail(run, TRI_INVALID, "cycler: needs items, without names");
    struct tri_jinja_cycler *cycler = tri_jinja_pool_get(&run->pool, sizeof *cycler);
    if (cycler == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    struct tri_jinja_value items;
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_TUPLE, arguments->count, &items));
    for (int i = 0; i < arguments->count; i++)
        items.as.list->items[items.as.list->count++] = arguments->values[i];
    cycler->items = items.as.list;
    *out = (struct tri_jinja_value){.kind = TRI_JINJA_CYCLER, .as.cycler = cycler};
    return TRI_OK;
}

static enum tri_status global_joiner(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *arguments,
                                     struct tri_jinja_value *out)
{
    (void)self;
    struct tri_jinja_cycler *joiner = tri_jinja_pool_get(&run->pool, sizeof *joiner);
    if (joiner == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    joiner->separator = arguments->values[0];
    if (joiner->separator.kind == TRI_JINJA_MISSING)
        TRI_TRY(tri_jinja_literal(&run->pool, ", ", &joiner->separator));
    *out = (struct tri_jinja_value){.kind = TRI_JINJA_JOINER, .as.cycler = joiner};
    return TRI_OK;
}

static const struct tri_jinja_builtin items[] = {
    {"range", global_range, "start,stop,step", 1, 0},
    {"namespace", global_dict, NULL, 0, TRI_JINJA_NAMESPACE},
    {"dict", global_dict, NULL, 0, TRI_JINJA_DICT},
    {"raise_exception", global_raise, "message", 1, 0},
    {"strftime_now", global_strftime_now, "format", 1, 0},
    {"cycler", global_cycler, NULL, 0, 0},
    {"joiner", global_joiner, "sep", 0, 0},
};

const struct tri_jinja_builtins tri_jinja_globals = {items, sizeof items / sizeof *items};
