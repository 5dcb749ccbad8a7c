/* Calls: arguments, macros, builtins. */
#include <string.h>

#include "text/jinja/run.h"

const struct tri_jinja_builtin *tri_jinja_find(struct tri_jinja_builtins table, const char *name,
                                               size_t bytes)
{
    for (size_t i = 0; i < table.count; i++) {
        const char *known = table.items[i].name;
        /* A name from a template may hold any byte, a zero too. */
        if (strlen(known) == bytes && memcmp(known, name, bytes) == 0)
            return &table.items[i];
    }
    return NULL;
}

const struct tri_jinja_builtin *tri_jinja_find_filter(const char *name, size_t bytes)
{
    const struct tri_jinja_builtins *const tables[] = {
        &tri_jinja_text_filters, &tri_jinja_number_filters, &tri_jinja_list_filters,
        &tri_jinja_select_filters};
    const struct tri_jinja_builtin *found = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && found == NULL; i++)
        found = tri_jinja_find(*tables[i], name, bytes);
    return found;
}

const struct tri_jinja_builtin *tri_jinja_find_test(const char *name, size_t bytes)
{
    return tri_jinja_find(tri_jinja_tests, name, bytes);
}

enum tri_status tri_jinja_arguments(struct tri_jinja_run *run, const struct tri_jinja_node *list,
                                    int64_t count, struct tri_jinja_arguments *out)
{
    *out = (struct tri_jinja_arguments){0};
    if (count == 0)
        return TRI_OK;
    out->values = tri_jinja_pool_get(&run->pool, (size_t)count * sizeof *out->values);
    out->names = tri_jinja_pool_get(&run->pool, (size_t)count * sizeof *out->names);
    if (out->values == NULL || out->names == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    for (const struct tri_jinja_node *n = list; n != NULL; n = n->next) {
        struct tri_jinja_value value;
        TRI_TRY(tri_jinja_eval(run, n->a, &value));
        out->values[out->count] = value;
        if (n->value.kind == TRI_JINJA_STRING)
            out->names[out->count] = n->value.as.string;
        else
            out->positional++;
        out->count++;
    }
    return TRI_OK;
}

/* The index of a name in "a,b,c", or -1. */
static int parameter_index(const char *parameters, const struct tri_jinja_string *name)
{
    for (int i = 0; *parameters != '\0'; i++) {
        size_t n = strcspn(parameters, ",");
        if (n == name->bytes && memcmp(parameters, name->data, n) == 0)
            return i;
        parameters += n + (parameters[n] == ',');
    }
    return -1;
}

static int count_parameters(const char *parameters)
{
    int count = *parameters != '\0';
    for (; *parameters != '\0'; parameters++)
        count += *parameters == ',';
    return count;
}

enum { MAX_PARAMETERS = 8 };

enum tri_status tri_jinja_call_builtin(struct tri_jinja_run *run,
                                       const struct tri_jinja_builtin *builtin,
                                       struct tri_jinja_value self,
                                       const struct tri_jinja_arguments *arguments,
                                       struct tri_jinja_value *out)
{
    if (builtin->call == NULL)
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "'%s' of %s is not supported", builtin->name,
                              tri_jinja_type_name(self));
    if (builtin->parameters == NULL) {
        struct tri_jinja_arguments raw = *arguments;
        raw.which = builtin->which;
        TRI_TRY(tri_jinja_descend(run)); /* map may call map, and so on */
        TRI_TRY(builtin->call(run, self, &raw, out));
        run->depth--;
        return TRI_OK;
    }
    struct tri_jinja_value values[MAX_PARAMETERS] = {{.kind = TRI_JINJA_MISSING}};
    const int count = count_parameters(builtin->parameters);
    if (arguments->positional > count)
        return tri_jinja_fail(run, TRI_INVALID, "'%s' takes at most %d arguments, not %d",
                              builtin->name, count, arguments->positional);
    for (int i = 0; i < arguments->count; i++) {
        int at = i;
        if (i >= arguments->positional) {
            const struct tri_jinja_string *name = arguments->names[i];
            at = parameter_index(builtin->parameters, name);
            if (at < 0)
                return tri_jinja_fail(run, TRI_UNSUPPORTED, "'%s' has no argument '%.*s'",
                                      builtin->name, (int)(name->bytes < 60 ? name->bytes : 60),
                                      name->data);
            if (values[at].kind != TRI_JINJA_MISSING)
                return tri_jinja_fail(run, TRI_INVALID, "'%s' is given '%.*s' twice", builtin->name,
                                      (int)(name->bytes < 60 ? name->bytes : 60), name->data);
        }
        values[at] = arguments->values[i];
    }
    for (int i = 0; i < builtin->required; i++)
        if (values[i].kind == TRI_JINJA_MISSING)
            return tri_jinja_fail(run, TRI_INVALID, "'%s' needs %d arguments (%s)", builtin->name,
                                  builtin->required, builtin->parameters);
    const struct tri_jinja_arguments bound = {
        .values = values, .count = count, .positional = count, .which = builtin->which};
    return builtin->call(run, self, &bound, out);
}

enum tri_status tri_jinja_filter(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                 struct tri_jinja_value input, struct tri_jinja_value *out)
{
    struct tri_jinja_arguments arguments;
    if (node->builtin == NULL)
        return tri_jinja_fail(
            run, TRI_UNSUPPORTED, "filter '%.*s' is not known",
            (int)(node->value.as.string->bytes < 60 ? node->value.as.string->bytes : 60),
            node->value.as.string->data);
    TRI_TRY(tri_jinja_arguments(run, node->list, node->count, &arguments));
    run->line = node->line;
    return tri_jinja_call_builtin(run, node->builtin, input, &arguments, out);
}

enum tri_status tri_jinja_filter_chain(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                       struct tri_jinja_value input, struct tri_jinja_value *out)
{
    TRI_TRY(tri_jinja_descend(run));
    if (node->a != NULL)
        TRI_TRY(tri_jinja_filter_chain(run, node->a, input, &input));
    TRI_TRY(tri_jinja_filter(run, node, input, out));
    run->depth--;
    return TRI_OK;
}

/* Set the macro's parameters in the scope at hand. */
static enum tri_status bind_macro(struct tri_jinja_run *run, const struct tri_jinja_macro *macro,
                                  const struct tri_jinja_arguments *arguments)
{
    const struct tri_jinja_node *node = macro->node;
    const struct tri_jinja_string *name = run->jinja->symbols[node->symbol].as.string;
    const int shown = (int)(name->bytes < 60 ? name->bytes : 60);
    int at = 0, used = 0;
    if (arguments->positional > node->count)
        return tri_jinja_fail(run, TRI_INVALID, "macro '%.*s' takes at most %d arguments, not %d",
                              shown, name->data, (int)node->count, arguments->positional);
    for (const struct tri_jinja_node *p = node->list; p != NULL; p = p->next, at++) {
        struct tri_jinja_value value = tri_jinja_undefined_named(p->value.as.string);
        int given = at < arguments->positional ? at : -1;
        for (int i = arguments->positional; i < arguments->count; i++)
            if (tri_jinja_same_string(arguments->names[i], p->value.as.string)) {
                if (given >= 0)
                    return tri_jinja_fail(run, TRI_INVALID,
                                          "macro '%.*s' is given an argument twice", shown,
                                          name->data);
                given = i;
            }
        if (given >= 0) {
            value = arguments->values[given];
            used++;
        } else if (p->a != NULL) {
            TRI_TRY(tri_jinja_eval(run, p->a, &value));
        }
        TRI_TRY(tri_jinja_set(run, p->symbol, value));
    }
    if (used < arguments->count)
        return tri_jinja_fail(run, TRI_INVALID,
                              "macro '%.*s' is given an argument it does not have", shown,
                              name->data);
    return TRI_OK;
}

static enum tri_status call_macro(struct tri_jinja_run *run, const struct tri_jinja_macro *macro,
                                  const struct tri_jinja_arguments *arguments,
                                  struct tri_jinja_value *out)
{
    struct tri_jinja_scope *caller = run->scope;
    enum tri_jinja_flow flow;
    TRI_TRY(tri_jinja_descend(run));
    TRI_TRY(tri_jinja_push_scope(run, macro->scope));
    TRI_TRY(bind_macro(run, macro, arguments));
    TRI_TRY(tri_jinja_catch(run, macro->node->b, &flow, out));
    run->scope = caller;
    run->depth--;
    return TRI_OK;
}

/* cycler.next() is a method; joiner() and loop() are calls of the object itself. */
static enum tri_status call_joiner(struct tri_jinja_run *run, struct tri_jinja_cycler *joiner,
                                   struct tri_jinja_value *out)
{
    if (joiner->at++ == 0)
        return tri_jinja_literal(&run->pool, "", out);
    *out = joiner->separator;
    return TRI_OK;
}

enum tri_status tri_jinja_call(struct tri_jinja_run *run, struct tri_jinja_value callee,
                               const struct tri_jinja_arguments *arguments,
                               struct tri_jinja_value *out)
{
    switch (callee.kind) {
    case TRI_JINJA_BUILTIN:
        return tri_jinja_call_builtin(run, callee.as.bound->builtin, callee.as.bound->self,
                                      arguments, out);
    case TRI_JINJA_MACRO:
        return call_macro(run, callee.as.macro, arguments, out);
    case TRI_JINJA_JOINER:
        return call_joiner(run, callee.as.cycler, out);
    case TRI_JINJA_UNDEFINED:
        if (callee.as.string != NULL && (tri_jinja_string_is(callee.as.string, "append") ||
                                         tri_jinja_string_is(callee.as.string, "update")))
            return tri_jinja_fail(run, TRI_INVALID,
                                  "'%.*s' would change its object, which the sandbox forbids "
                                  "(build a new one: ns.items = ns.items + [x])",
                                  (int)callee.as.string->bytes, callee.as.string->data);
        return tri_jinja_fail_undefined(run, callee);
    default:
        return tri_jinja_fail(run, TRI_INVALID, "%s cannot be called", tri_jinja_type_name(callee));
    }
}
