/* Filters on sequences and mappings as a whole. */
#include <inttypes.h>

#include "text/jinja/run.h"

static enum tri_status filter_length(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *a,
                                     struct tri_jinja_value *out)
{
    int64_t length;
    (void)a;
    TRI_TRY(tri_jinja_length(run, self, &length));
    *out = tri_jinja_int(length);
    return TRI_OK;
}

static enum tri_status filter_default(struct tri_jinja_run *run, struct tri_jinja_value self,
                                      const struct tri_jinja_arguments *a,
                                      struct tri_jinja_value *out)
{
    const bool falsy = tri_jinja_truth(a->values[1]);
    *out = self;
    if (self.kind != TRI_JINJA_UNDEFINED && (!falsy || tri_jinja_truth(self)))
        return TRI_OK;
    *out = a->values[0];
    return out->kind == TRI_JINJA_MISSING ? tri_jinja_literal(&run->pool, "", out) : TRI_OK;
}

static enum tri_status filter_end(struct tri_jinja_run *run, struct tri_jinja_value self,
                                  const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    static const struct tri_jinja_string name = {"item of an empty sequence", 25, 25, false};
    const bool last = a->which != 0;
    struct tri_jinja_list *list;
    if (last && self.kind == TRI_JINJA_ITER)
        return tri_jinja_fail(run, TRI_INVALID, "last of a generator (add the filter list)");
    if (self.kind == TRI_JINJA_STRING)
        return self.as.string->length == 0
                   ? (*out = tri_jinja_undefined_named(&name), TRI_OK)
                   : tri_jinja_item(run, self, tri_jinja_int(last ? -1 : 0), out);
    if (self.kind == TRI_JINJA_ITER) {
        /* Takes one item; the others stay. */
        list = self.as.list;
        *out =
            list->next < list->count ? list->items[list->next++] : tri_jinja_undefined_named(&name);
        return TRI_OK;
    }
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    *out = list->count == 0 ? tri_jinja_undefined_named(&name)
                            : list->items[last ? list->count - 1 : 0];
    return TRI_OK;
}

static enum tri_status filter_list(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    struct tri_jinja_list *list;
    (void)a;
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    TRI_TRY(tri_jinja_step(run, list->count / 8));
    *out = (struct tri_jinja_value){.kind = TRI_JINJA_LIST, .as.list = list};
    return TRI_OK;
}

static enum tri_status filter_join(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    struct tri_jinja_value separator;
    struct tri_jinja_list *list;
    TRI_TRY(tri_jinja_literal(&run->pool, "", &separator));
    if (a->values[0].kind != TRI_JINJA_MISSING)
        TRI_TRY(tri_jinja_to_string(run, a->values[0], &separator));
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    for (int64_t i = 0; i < list->count; i++) {
        struct tri_jinja_value item = list->items[i];
        TRI_TRY(tri_jinja_step(run, 1));
        if (tri_jinja_truth(a->values[1]))
            TRI_TRY(tri_jinja_path(run, item, a->values[1], &item));
        if (i > 0)
            tri_jinja_buffer_add(&buffer, separator.as.string->data, separator.as.string->bytes);
        TRI_TRY(tri_jinja_str(run, item, &buffer));
    }
    TRI_TRY(tri_jinja_step(run, (int64_t)(buffer.bytes / 64)));
    return tri_jinja_buffer_value(&buffer, out);
}

static enum tri_status filter_items(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *a,
                                    struct tri_jinja_value *out)
{
    (void)a;
    if (self.kind != TRI_JINJA_UNDEFINED && self.kind != TRI_JINJA_DICT)
        return tri_jinja_fail(run, TRI_INVALID, "items of %s, which is not a mapping",
                              tri_jinja_type_name(self));
    const int64_t count = self.kind == TRI_JINJA_DICT ? self.as.dict->count : 0;
    TRI_TRY(tri_jinja_step(run, count));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_ITER, count, out));
    for (int64_t i = 0; i < count; i++)
        TRI_TRY(tri_jinja_pair(&run->pool, self.as.dict->pairs[i].key, self.as.dict->pairs[i].value,
                               &out->as.list->items[out->as.list->count++]));
    return TRI_OK;
}

static enum tri_status filter_reverse(struct tri_jinja_run *run, struct tri_jinja_value self,
                                      const struct tri_jinja_arguments *a,
                                      struct tri_jinja_value *out)
{
    struct tri_jinja_list *list;
    (void)a;
    if (self.kind == TRI_JINJA_STRING) {
        const struct tri_jinja_value bounds[3] = {tri_jinja_none(), tri_jinja_none(),
                                                  tri_jinja_int(-1)};
        return tri_jinja_slice(run, self, bounds, out);
    }
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    TRI_TRY(tri_jinja_step(run, list->count / 8));
    TRI_TRY(tri_jinja_list(&run->pool,
                           self.kind == TRI_JINJA_ITER ? TRI_JINJA_LIST : TRI_JINJA_ITER,
                           list->count, out));
    for (int64_t i = list->count; i > 0; i--)
        out->as.list->items[out->as.list->count++] = list->items[i - 1];
    return TRI_OK;
}

static enum tri_status filter_batch(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *a,
                                    struct tri_jinja_value *out)
{
    int64_t size;
    struct tri_jinja_list *list;
    TRI_TRY(tri_jinja_int_argument(run, a->values[0], "batch: the count", 0, &size));
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    if (size < 1)
        return tri_jinja_fail(run, TRI_INVALID, "batch: a count of %" PRId64, size);
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_ITER, 0, out));
    for (int64_t i = 0; i < list->count; i += size) {
        struct tri_jinja_value batch;
        TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, 0, &batch));
        for (int64_t k = i; k < i + size; k++) {
            const bool filled = k >= list->count;
            if (filled &&
                (a->values[1].kind == TRI_JINJA_MISSING || a->values[1].kind == TRI_JINJA_NONE))
                break;
            TRI_TRY(tri_jinja_step(run, 1));
            TRI_TRY(tri_jinja_list_add(&run->pool, batch.as.list,
                                       filled ? a->values[1] : list->items[k]));
        }
        TRI_TRY(tri_jinja_list_add(&run->pool, out->as.list, batch));
        if (size > list->count)
            break;
    }
    return TRI_OK;
}

static enum tri_status filter_sum(struct tri_jinja_run *run, struct tri_jinja_value self,
                                  const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    struct tri_jinja_list *list;
    struct tri_jinja_value sum =
        a->values[1].kind == TRI_JINJA_MISSING ? tri_jinja_int(0) : a->values[1];
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    for (int64_t i = 0; i < list->count; i++) {
        struct tri_jinja_value item = list->items[i];
        TRI_TRY(tri_jinja_step(run, 1));
        if (a->values[0].kind != TRI_JINJA_MISSING && a->values[0].kind != TRI_JINJA_NONE)
            TRI_TRY(tri_jinja_path(run, item, a->values[0], &item));
        TRI_TRY(tri_jinja_operate(run, TRI_JINJA_ADD, sum, item, &sum));
    }
    *out = sum;
    return TRI_OK;
}

/* getattr alone: no item of a mapping. */
static enum tri_status filter_attr(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    struct tri_jinja_value name;
    TRI_TRY(tri_jinja_to_string(run, a->values[0], &name));
    if (self.kind == TRI_JINJA_DICT &&
        tri_jinja_find_method(self, name.as.string->data, name.as.string->bytes) == NULL) {
        *out = tri_jinja_undefined_named(name.as.string);
        return TRI_OK;
    }
    return tri_jinja_attribute(run, self, name, out);
}

static const struct tri_jinja_builtin items[] = {
    {"length", filter_length, "", 0, 0},
    {"count", filter_length, "", 0, 0},
    {"default", filter_default, "default_value,boolean", 0, 0},
    {"d", filter_default, "default_value,boolean", 0, 0},
    {"first", filter_end, "", 0, 0},
    {"last", filter_end, "", 0, 1},
    {"list", filter_list, "", 0, 0},
    {"join", filter_join, "d,attribute", 0, 0},
    {"items", filter_items, "", 0, 0},
    {"reverse", filter_reverse, "", 0, 0},
    {"batch", filter_batch, "linecount,fill_with", 1, 0},
    {"sum", filter_sum, "attribute,start", 0, 0},
    {"attr", filter_attr, "name", 1, 0},
};
const struct tri_jinja_builtins tri_jinja_list_filters = {items, sizeof items / sizeof *items};
