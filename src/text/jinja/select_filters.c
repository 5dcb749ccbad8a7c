/* map, select and their kin, and the filters that order items. */
#include <string.h>

#include "text/jinja/run.h"

/* The arguments from `first` on, for the filter or test that is named before them. */
static struct tri_jinja_arguments rest_of(const struct tri_jinja_arguments *a, int first)
{
    struct tri_jinja_arguments rest = {0};
    if (a->count > first)
        rest = (struct tri_jinja_arguments){.values = a->values + first,
                                            .names = a->names + first,
                                            .count = a->count - first,
                                            .positional = a->positional - first};
    if (rest.positional < 0)
        rest.positional = 0;
    return rest;
}

/* map('filter', ...) or map(attribute='name', default=...) */
static enum tri_status filter_map(struct tri_jinja_run *run, struct tri_jinja_value self,
                                  const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    const struct tri_jinja_builtin *filter = NULL;
    struct tri_jinja_arguments rest = {0};
    struct tri_jinja_value path = {.kind = TRI_JINJA_MISSING}, fallback = path, result;
    struct tri_jinja_list *list;
    if (a->positional > 0) {
        const struct tri_jinja_string *name;
        TRI_TRY(tri_jinja_string_argument(run, a->values[0], "map: the filter", &name));
        filter = name == NULL ? NULL : tri_jinja_find_filter(name->data, name->bytes);
        if (filter == NULL)
            return tri_jinja_fail(run, TRI_UNSUPPORTED, "map: filter '%.*s' is not known",
                                  name == NULL ? 4 : (int)(name->bytes < 60 ? name->bytes : 60),
                                  name == NULL ? "None" : name->data);
        rest = rest_of(a, 1);
    }
    for (int i = a->positional; i < a->count && filter == NULL; i++) {
        if (tri_jinja_string_is(a->names[i], "attribute"))
            path = a->values[i];
        else if (tri_jinja_string_is(a->names[i], "default"))
            fallback = a->values[i];
        else
            return tri_jinja_fail(run, TRI_INVALID, "map: arguments are attribute and default");
    }
    if (filter == NULL && path.kind == TRI_JINJA_MISSING)
        return tri_jinja_fail(run, TRI_INVALID, "map: needs a filter or attribute=");
    if (!tri_jinja_truth(self)) /* None too: Jinja does not even look at it */
        self = tri_jinja_undefined();
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_ITER, list->count, &result));
    for (int64_t i = 0; i < list->count; i++) {
        struct tri_jinja_value *item = &result.as.list->items[i];
        TRI_TRY(tri_jinja_step(run, 1));
        if (filter != NULL)
            TRI_TRY(tri_jinja_call_builtin(run, filter, list->items[i], &rest, item));
        else
            TRI_TRY(tri_jinja_path(run, list->items[i], path, item));
        if (item->kind == TRI_JINJA_UNDEFINED && fallback.kind != TRI_JINJA_MISSING)
            *item = fallback;
    }
    result.as.list->count = list->count;
    *out = result;
    return TRI_OK;
}

enum { BY_ATTRIBUTE = 1, REJECT = 2 };

/* select(test, ...), reject(...), selectattr(name, test, ...), rejectattr(...); without a test
 * truth decides. */
static enum tri_status filter_select(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *a,
                                     struct tri_jinja_value *out)
{
    const bool attribute = (a->which & BY_ATTRIBUTE) != 0, reject = (a->which & REJECT) != 0;
    const struct tri_jinja_builtin *test = NULL;
    struct tri_jinja_list *list;
    struct tri_jinja_value result;
    if (attribute && a->positional == 0)
        return tri_jinja_fail(run, TRI_INVALID, "selectattr: needs the name of an attribute");
    if (a->positional > attribute) {
        const struct tri_jinja_string *name;
        TRI_TRY(tri_jinja_string_argument(run, a->values[attribute], "select: the test", &name));
        test = name == NULL ? NULL : tri_jinja_find_test(name->data, name->bytes);
        if (test == NULL)
            return tri_jinja_fail(run, TRI_UNSUPPORTED, "select: test '%.*s' is not known",
                                  name == NULL ? 4 : (int)(name->bytes < 60 ? name->bytes : 60),
                                  name == NULL ? "None" : name->data);
    }
    const struct tri_jinja_arguments rest = rest_of(a, attribute + 1);
    if (!tri_jinja_truth(self)) /* None too: Jinja does not even look at it */
        self = tri_jinja_undefined();
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_ITER, 0, &result));
    for (int64_t i = 0; i < list->count; i++) {
        struct tri_jinja_value item = list->items[i], holds;
        TRI_TRY(tri_jinja_step(run, 1));
        if (attribute)
            TRI_TRY(tri_jinja_path(run, item, a->values[0], &item));
        holds = item;
        if (test != NULL)
            TRI_TRY(tri_jinja_call_builtin(run, test, item, &rest, &holds));
        if (tri_jinja_truth(holds) != reject)
            TRI_TRY(tri_jinja_list_add(&run->pool, result.as.list, list->items[i]));
    }
    *out = result;
    return TRI_OK;
}

/* What items are ordered by: an attribute of them, without case unless it matters. */
static enum tri_status order_key(struct tri_jinja_run *run, struct tri_jinja_value item,
                                 struct tri_jinja_value attribute, bool case_matters,
                                 struct tri_jinja_value *out)
{
    *out = item;
    if (attribute.kind == TRI_JINJA_STRING &&
        memchr(attribute.as.string->data, ',', attribute.as.string->bytes) != NULL)
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "sort: several attributes");
    if (attribute.kind != TRI_JINJA_MISSING && attribute.kind != TRI_JINJA_NONE)
        TRI_TRY(tri_jinja_path(run, item, attribute, out));
    if (out->kind == TRI_JINJA_STRING && !case_matters)
        return tri_jinja_case(run, out->as.string, TRI_JINJA_LOWER, out);
    return TRI_OK;
}

/* Stable merge sort of pairs (key, value) by key; `spare` has room for as many. */
static enum tri_status sort_pairs(struct tri_jinja_run *run, struct tri_jinja_pair *pairs,
                                  struct tri_jinja_pair *spare, int64_t count, bool descending)
{
    if (count < 2)
        return TRI_OK;
    const int64_t half = count / 2;
    TRI_TRY(sort_pairs(run, pairs, spare, half, descending));
    TRI_TRY(sort_pairs(run, pairs + half, spare, count - half, descending));
    memcpy(spare, pairs, (size_t)count * sizeof *pairs);
    for (int64_t a = 0, b = half, i = 0; i < count; i++) {
        bool right = a == half;
        if (a < half && b < count)
            TRI_TRY(tri_jinja_less(run, spare[descending ? a : b].key,
                                   spare[descending ? b : a].key, &right));
        pairs[i] = right ? spare[b++] : spare[a++];
    }
    return TRI_OK;
}

static enum tri_status sort_items(struct tri_jinja_run *run, const struct tri_jinja_list *list,
                                  struct tri_jinja_value attribute, bool case_matters,
                                  bool descending, struct tri_jinja_value *out)
{
    const size_t bytes = (size_t)list->count * sizeof(struct tri_jinja_pair) + 1;
    struct tri_jinja_pair *pairs = tri_jinja_pool_get(&run->pool, bytes);
    struct tri_jinja_pair *spare = tri_jinja_pool_get(&run->pool, bytes);
    if (pairs == NULL || spare == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    for (int64_t i = 0; i < list->count; i++) {
        pairs[i].value = list->items[i];
        TRI_TRY(tri_jinja_step(run, 1));
        TRI_TRY(order_key(run, list->items[i], attribute, case_matters, &pairs[i].key));
    }
    TRI_TRY(sort_pairs(run, pairs, spare, list->count, descending));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, list->count, out));
    for (int64_t i = 0; i < list->count; i++)
        out->as.list->items[i] = pairs[i].value;
    out->as.list->count = list->count;
    return TRI_OK;
}

static enum tri_status filter_sort(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    struct tri_jinja_list *list;
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    return sort_items(run, list, a->values[2], tri_jinja_truth(a->values[1]),
                      tri_jinja_truth(a->values[0]), out);
}

static enum tri_status filter_dictsort(struct tri_jinja_run *run, struct tri_jinja_value self,
                                       const struct tri_jinja_arguments *a,
                                       struct tri_jinja_value *out)
{
    const struct tri_jinja_string *by;
    TRI_TRY(tri_jinja_string_argument(run, a->values[1], "dictsort: by", &by));
    if (self.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, self);
    if (self.kind != TRI_JINJA_DICT)
        return tri_jinja_fail(run, TRI_INVALID, "dictsort of %s", tri_jinja_type_name(self));
    const bool value = by != NULL && tri_jinja_string_is(by, "value");
    if (by != NULL && !value && !tri_jinja_string_is(by, "key"))
        return tri_jinja_fail(run, TRI_INVALID, "dictsort: by is 'key' or 'value'");
    struct tri_jinja_value pairs;
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, self.as.dict->count, &pairs));
    for (int64_t i = 0; i < self.as.dict->count; i++)
        TRI_TRY(tri_jinja_pair(&run->pool, self.as.dict->pairs[i].key, self.as.dict->pairs[i].value,
                               &pairs.as.list->items[pairs.as.list->count++]));
    return sort_items(run, pairs.as.list, tri_jinja_int(value), tri_jinja_truth(a->values[0]),
                      tri_jinja_truth(a->values[2]), out);
}

static enum tri_status filter_extreme(struct tri_jinja_run *run, struct tri_jinja_value self,
                                      const struct tri_jinja_arguments *a,
                                      struct tri_jinja_value *out)
{
    static const struct tri_jinja_string name = {"item of an empty sequence", 25, 25, false};
    struct tri_jinja_list *list;
    struct tri_jinja_value best = {.kind = TRI_JINJA_MISSING}, key;
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    *out = tri_jinja_undefined_named(&name);
    for (int64_t i = 0; i < list->count; i++) {
        bool better = true;
        TRI_TRY(order_key(run, list->items[i], a->values[1], tri_jinja_truth(a->values[0]), &key));
        if (i > 0)
            TRI_TRY(tri_jinja_less(run, a->which != 0 ? best : key, a->which != 0 ? key : best,
                                   &better));
        if (better) {
            best = key;
            *out = list->items[i];
        }
    }
    return TRI_OK;
}

static enum tri_status filter_unique(struct tri_jinja_run *run, struct tri_jinja_value self,
                                     const struct tri_jinja_arguments *a,
                                     struct tri_jinja_value *out)
{
    struct tri_jinja_list *list;
    struct tri_jinja_value seen, kept, key;
    TRI_TRY(tri_jinja_iterate(run, self, &list));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, 0, &seen));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_ITER, 0, &kept));
    for (int64_t i = 0; i < list->count; i++) {
        bool known = false;
        TRI_TRY(order_key(run, list->items[i], a->values[1], tri_jinja_truth(a->values[0]), &key));
        for (int64_t k = 0; k < seen.as.list->count && !known; k++)
            TRI_TRY(tri_jinja_equal(run, seen.as.list->items[k], key, &known));
        if (known)
            continue;
        TRI_TRY(tri_jinja_list_add(&run->pool, seen.as.list, key));
        TRI_TRY(tri_jinja_list_add(&run->pool, kept.as.list, list->items[i]));
    }
    *out = kept;
    return TRI_OK;
}

static const struct tri_jinja_builtin items[] = {
    {"map", filter_map, NULL, 0, 0},
    {"select", filter_select, NULL, 0, 0},
    {"reject", filter_select, NULL, 0, REJECT},
    {"selectattr", filter_select, NULL, 0, BY_ATTRIBUTE},
    {"rejectattr", filter_select, NULL, 0, BY_ATTRIBUTE | REJECT},
    {"sort", filter_sort, "reverse,case_sensitive,attribute", 0, 0},
    {"dictsort", filter_dictsort, "case_sensitive,by,reverse", 0, 0},
    {"min", filter_extreme, "case_sensitive,attribute", 0, 0},
    {"max", filter_extreme, "case_sensitive,attribute", 0, 1},
    {"unique", filter_unique, "case_sensitive,attribute", 0, 0},
};
const struct tri_jinja_builtins tri_jinja_select_filters = {items, sizeof items / sizeof *items};
