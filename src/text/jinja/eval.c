/* Expressions. */
#include <stdarg.h>

#include "text/jinja/run.h"

static enum tri_status eval_name(struct tri_jinja_run *run, int symbol, struct tri_jinja_value *out)
{
    for (const struct tri_jinja_scope *scope = run->scope; scope != NULL; scope = scope->parent) {
        for (int i = 0; i < scope->count; i++) {
            if (scope->items[i].symbol == symbol) {
                *out = scope->items[i].value;
                return TRI_OK;
            }
        }
    }
    const struct tri_jinja_string *name = run->jinja->symbols[symbol].as.string;
    const struct tri_jinja_builtin *global =
        tri_jinja_find(tri_jinja_globals, name->data, name->bytes);
    if (global == NULL) {
        *out = tri_jinja_undefined_named(name);
        return TRI_OK;
    }
    struct tri_jinja_bound *bound = tri_jinja_pool_get(&run->pool, sizeof *bound);
    if (bound == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    *bound = (struct tri_jinja_bound){.builtin = global, .self = tri_jinja_none()};
    *out = (struct tri_jinja_value){.kind = TRI_JINJA_BUILTIN, .as.bound = bound};
    return TRI_OK;
}

static enum tri_status eval_list(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                 struct tri_jinja_value *out)
{
    enum tri_jinja_kind kind = node->kind == TRI_JINJA_N_TUPLE ? TRI_JINJA_TUPLE : TRI_JINJA_LIST;
    struct tri_jinja_value list;
    TRI_TRY(tri_jinja_list(&run->pool, kind, node->count, &list));
    for (const struct tri_jinja_node *n = node->list; n != NULL; n = n->next)
        TRI_TRY(tri_jinja_eval(run, n, &list.as.list->items[list.as.list->count++]));
    *out = list;
    return TRI_OK;
}

static enum tri_status eval_dict(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                 struct tri_jinja_value *out)
{
    struct tri_jinja_value dict, key, value;
    TRI_TRY(tri_jinja_dict(&run->pool, TRI_JINJA_DICT, node->count / 2, &dict));
    for (const struct tri_jinja_node *n = node->list; n != NULL; n = n->next->next) {
        TRI_TRY(tri_jinja_eval(run, n, &key));
        TRI_TRY(tri_jinja_eval(run, n->next, &value));
        TRI_TRY(tri_jinja_dict_set(run, dict.as.dict, key, value));
    }
    *out = dict;
    return TRI_OK;
}

static enum tri_status eval_slice(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                  struct tri_jinja_value object, struct tri_jinja_value *out)
{
    struct tri_jinja_value bounds[3];
    int i = 0;
    for (const struct tri_jinja_node *n = node->list; n != NULL; n = n->next)
        TRI_TRY(tri_jinja_eval(run, n, &bounds[i++]));
    return tri_jinja_slice(run, object, bounds, out);
}

static enum tri_status eval_compare(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                    struct tri_jinja_value left, struct tri_jinja_value *out)
{
    bool holds = true;
    for (const struct tri_jinja_node *n = node->list; n != NULL && holds; n = n->next) {
        struct tri_jinja_value right;
        TRI_TRY(tri_jinja_eval(run, n->a, &right));
        run->line = n->line;
        TRI_TRY(tri_jinja_compare(run, n->op, left, right, &holds));
        left = right;
    }
    *out = tri_jinja_bool(holds);
    return TRI_OK;
}

static enum tri_status eval_concat(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                   struct tri_jinja_value *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    for (const struct tri_jinja_node *n = node->list; n != NULL; n = n->next) {
        struct tri_jinja_value value;
        TRI_TRY(tri_jinja_eval(run, n, &value));
        TRI_TRY(tri_jinja_str(run, value, &buffer));
    }
    TRI_TRY(tri_jinja_step(run, (int64_t)(buffer.bytes / 64)));
    return tri_jinja_buffer_value(&buffer, out);
}

static enum tri_status eval_call(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                 struct tri_jinja_value callee, struct tri_jinja_value *out)
{
    struct tri_jinja_arguments arguments;
    TRI_TRY(tri_jinja_arguments(run, node->list, node->count, &arguments));
    run->line = node->line;
    return tri_jinja_call(run, callee, &arguments, out);
}

static enum tri_status eval_test(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                 struct tri_jinja_value value, struct tri_jinja_value *out)
{
    struct tri_jinja_arguments arguments;
    if (node->builtin == NULL)
        return tri_jinja_fail(
            run, TRI_UNSUPPORTED, "test '%.*s' is not known",
            (int)(node->value.as.string->bytes < 60 ? node->value.as.string->bytes : 60),
            node->value.as.string->data);
    TRI_TRY(tri_jinja_arguments(run, node->list, node->count, &arguments));
    run->line = node->line;
    return tri_jinja_call_builtin(run, node->builtin, value, &arguments, out);
}

static enum tri_status eval_sign(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                 struct tri_jinja_value value, struct tri_jinja_value *out)
{
    if (value.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, value);
    if (!tri_jinja_is_number(value))
        return tri_jinja_fail(run, TRI_INVALID, "a sign before %s", tri_jinja_type_name(value));
    if (node->kind == TRI_JINJA_N_NEGATIVE && value.kind == TRI_JINJA_FLOAT)
        *out = tri_jinja_float(-value.as.real);
    else if (node->kind == TRI_JINJA_N_NEGATIVE)
        return tri_jinja_operate(run, TRI_JINJA_SUB, tri_jinja_int(0), value, out);
    else
        *out = value.kind == TRI_JINJA_BOOL ? tri_jinja_int(value.as.boolean) : value;
    return TRI_OK;
}

/* What has an operand `a` that is evaluated first. */
static enum tri_status eval_on(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                               struct tri_jinja_value a, struct tri_jinja_value *out)
{
    struct tri_jinja_value b;
    switch (node->kind) {
    case TRI_JINJA_N_ATTRIBUTE:
        return tri_jinja_attribute(run, a, node->value, out);
    case TRI_JINJA_N_ITEM:
        TRI_TRY(tri_jinja_eval(run, node->b, &b));
        run->line = node->line;
        return tri_jinja_item(run, a, b, out);
    case TRI_JINJA_N_SLICE:
        return eval_slice(run, node, a, out);
    case TRI_JINJA_N_CALL:
        return eval_call(run, node, a, out);
    case TRI_JINJA_N_FILTER:
        return tri_jinja_filter(run, node, a, out);
    case TRI_JINJA_N_TEST:
        return eval_test(run, node, a, out);
    case TRI_JINJA_N_NEGATIVE:
    case TRI_JINJA_N_POSITIVE:
        return eval_sign(run, node, a, out);
    case TRI_JINJA_N_NOT:
        *out = tri_jinja_bool(!tri_jinja_truth(a));
        return TRI_OK;
    case TRI_JINJA_N_AND:
    case TRI_JINJA_N_OR:
        if (tri_jinja_truth(a) == (node->kind == TRI_JINJA_N_AND))
            return tri_jinja_eval(run, node->b, out);
        *out = a;
        return TRI_OK;
    case TRI_JINJA_N_COMPARE:
        return eval_compare(run, node, a, out);
    case TRI_JINJA_N_CHOICE:
        if (tri_jinja_truth(a))
            return tri_jinja_eval(run, node->b, out);
        if (node->c != NULL)
            return tri_jinja_eval(run, node->c, out);
        *out = tri_jinja_undefined();
        return TRI_OK;
    default:
        TRI_TRY(tri_jinja_eval(run, node->b, &b));
        run->line = node->line;
        return tri_jinja_operate(run, node->op, a, b, out);
    }
}

enum tri_status tri_jinja_eval(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                               struct tri_jinja_value *out)
{
    struct tri_jinja_value a;
    run->line = node->line;
    TRI_TRY(tri_jinja_step(run, 1));
    switch (node->kind) {
    case TRI_JINJA_N_CONSTANT:
        *out = node->value;
        return TRI_OK;
    case TRI_JINJA_N_NAME:
        return eval_name(run, node->symbol, out);
    default:
        break;
    }
    TRI_TRY(tri_jinja_descend(run));
    switch (node->kind) {
    case TRI_JINJA_N_LIST:
    case TRI_JINJA_N_TUPLE:
        TRI_TRY(eval_list(run, node, out));
        break;
    case TRI_JINJA_N_DICT:
        TRI_TRY(eval_dict(run, node, out));
        break;
    case TRI_JINJA_N_CONCAT:
        TRI_TRY(eval_concat(run, node, out));
        break;
    default:
        TRI_TRY(tri_jinja_eval(run, node->a, &a));
        run->line = node->line;
        TRI_TRY(eval_on(run, node, a, out));
    }
    run->depth--;
    return TRI_OK;
}
