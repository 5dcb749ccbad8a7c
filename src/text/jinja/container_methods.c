/* Methods of list, tuple and dict, of the loop, and of cyclers. */
#include "text/jinja/run.h"

static enum tri_status dict_get(struct tri_jinja_run *run, struct tri_jinja_value self,
                                const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    struct tri_jinja_value *found;
    TRI_TRY(tri_jinja_lookup(run, self.as.dict, a->values[0], &found));
    if (found != NULL)
        *out = *found;
    else
        *out = a->values[1].kind == TRI_JINJA_MISSING ? tri_jinja_none() : a->values[1];
    return TRI_OK;
}

enum { KEYS, VALUES, ITEMS };

static enum tri_status dict_view(struct tri_jinja_run *run, struct tri_jinja_value self,
                                 const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    static const char *const names[] = {"dict_keys", "dict_values", "dict_items"};
    const struct tri_jinja_dict *dict = self.as.dict;
    TRI_TRY(tri_jinja_step(run, dict->count / 4));
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_VIEW, dict->count, out));
    struct tri_jinja_list *list = out->as.list;
    list->name = names[a->which];
    for (; list->count < dict->count; list->count++) {
        const struct tri_jinja_pair *pair = &dict->pairs[list->count];
        struct tri_jinja_value *item = &list->items[list->count];
        if (a->which == ITEMS)
            TRI_TRY(tri_jinja_pair(&run->pool, pair->key, pair->value, item));
        else
            *item = a->which == KEYS ? pair->key : pair->value;
    }
    return TRI_OK;
}

static enum tri_status copy(struct tri_jinja_run *run, struct tri_jinja_value self,
                            const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    (void)run, (void)a;
    *out = self; /* nothing can change it */
    return TRI_OK;
}

enum { INDEX, COUNT };

static enum tri_status list_find(struct tri_jinja_run *run, struct tri_jinja_value self,
                                 const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    const struct tri_jinja_list *list = self.as.list;
    int64_t count = 0;
    for (int64_t i = 0; i < list->count; i++) {
        bool same;
        TRI_TRY(tri_jinja_equal(run, list->items[i], a->values[0], &same));
        count += same;
        if (same && a->which == INDEX) {
            *out = tri_jinja_int(i);
            return TRI_OK;
        }
    }
    if (a->which == INDEX)
        return tri_jinja_fail(run, TRI_INVALID, "index: the value is not in the list");
    *out = tri_jinja_int(count);
    return TRI_OK;
}

static enum tri_status loop_cycle(struct tri_jinja_run *run, struct tri_jinja_value self,
                                  const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    if (a->count == 0 || a->positional < a->count)
        return tri_jinja_fail(run, TRI_INVALID, "loop.cycle: needs values, without names");
    *out = a->values[self.as.loop->index % a->count];
    return TRI_OK;
}

static enum tri_status loop_changed(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *a,
                                    struct tri_jinja_value *out)
{
    struct tri_jinja_value now;
    bool same;
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_TUPLE, a->count, &now));
    for (int i = 0; i < a->count; i++)
        now.as.list->items[now.as.list->count++] = a->values[i];
    TRI_TRY(tri_jinja_equal(run, now, self.as.loop->changed, &same));
    self.as.loop->changed = now;
    *out = tri_jinja_bool(!same);
    return TRI_OK;
}

static enum tri_status cycler_step(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *a, struct tri_jinja_value *out)
{
    (void)run;
    struct tri_jinja_cycler *cycler = self.as.cycler;
    *out = cycler->items->items[cycler->at];
    cycler->at = a->which == 0 ? 0 : (cycler->at + 1) % cycler->items->count;
    if (a->which == 0)
        *out = tri_jinja_none();
    return TRI_OK;
}

static const struct tri_jinja_builtin list_items[] = {
    {"index", list_find, "value", 1, INDEX},
    {"count", list_find, "value", 1, COUNT},
    {"copy", copy, "", 0, 0},
};
const struct tri_jinja_builtins tri_jinja_list_methods = {list_items,
                                                          sizeof list_items / sizeof *list_items};

static const struct tri_jinja_builtin dict_items[] = {
    {"get", dict_get, "key,default", 1, 0},
    {"keys", dict_view, "", 0, KEYS},
    {"values", dict_view, "", 0, VALUES},
    {"items", dict_view, "", 0, ITEMS},
    {"copy", copy, "", 0, 0},
    {"fromkeys", NULL, "", 0, 0},
};
const struct tri_jinja_builtins tri_jinja_dict_methods = {dict_items,
                                                          sizeof dict_items / sizeof *dict_items};

static const struct tri_jinja_builtin loop_items[] = {
    {"cycle", loop_cycle, NULL, 0, 0},
    {"changed", loop_changed, NULL, 0, 0},
};
static const struct tri_jinja_builtins loop_methods = {loop_items,
                                                       sizeof loop_items / sizeof *loop_items};

static const struct tri_jinja_builtin cycler_items[] = {
    {"next", cycler_step, "", 0, 1},
    {"reset", cycler_step, "", 0, 0},
};
static const struct tri_jinja_builtins cycler_methods = {cycler_items, sizeof cycler_items /
                                                                           sizeof *cycler_items};

const struct tri_jinja_builtin *tri_jinja_find_method(struct tri_jinja_value self, const char *name,
                                                      size_t bytes)
{
    switch (self.kind) {
    case TRI_JINJA_STRING:
        return tri_jinja_find(tri_jinja_string_methods, name, bytes);
    case TRI_JINJA_LIST:
        return tri_jinja_find(tri_jinja_list_methods, name, bytes);
    case TRI_JINJA_TUPLE:
    case TRI_JINJA_RANGE: {
        const struct tri_jinja_builtin *found = tri_jinja_find(tri_jinja_list_methods, name, bytes);
        return found != NULL && found->call == copy ? NULL : found;
    }
    case TRI_JINJA_DICT:
        return tri_jinja_find(tri_jinja_dict_methods, name, bytes);
    case TRI_JINJA_LOOP:
        return tri_jinja_find(loop_methods, name, bytes);
    case TRI_JINJA_CYCLER:
        return tri_jinja_find(cycler_methods, name, bytes);
    default:
        return NULL;
    }
}
