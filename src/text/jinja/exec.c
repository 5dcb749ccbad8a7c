/* Statements. */
#include "text/jinja/run.h"

#include <inttypes.h>
#include <string.h>

enum tri_status tri_jinja_push_scope(struct tri_jinja_run *run, struct tri_jinja_scope *parent)
{
    struct tri_jinja_scope *scope = tri_jinja_pool_get(&run->pool, sizeof *scope);
    if (scope == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    scope->parent = parent;
    run->scope = scope;
    return TRI_OK;
}

enum tri_status tri_jinja_set(struct tri_jinja_run *run, int symbol, struct tri_jinja_value value)
{
    struct tri_jinja_scope *scope = run->scope;
    for (int i = 0; i < scope->count; i++) {
        if (scope->items[i].symbol == symbol) {
            scope->items[i].value = value;
            return TRI_OK;
        }
    }
    if (scope->count == scope->capacity) {
        int capacity = scope->capacity == 0 ? 4 : 2 * scope->capacity;
        struct tri_jinja_variable *items =
            tri_jinja_pool_get(&run->pool, (size_t)capacity * sizeof *items);
        if (items == NULL)
            return tri_jinja_pool_fail(&run->pool, run->jinja->what);
        if (scope->count > 0)
            memcpy(items, scope->items, (size_t)scope->count * sizeof *items);
        scope->items = items;
        scope->capacity = capacity;
    }
    scope->items[scope->count++] = (struct tri_jinja_variable){.symbol = symbol, .value = value};
    return TRI_OK;
}

enum tri_status tri_jinja_assign(struct tri_jinja_run *run, const struct tri_jinja_node *target,
                                 struct tri_jinja_value value)
{
    if (target->kind == TRI_JINJA_N_NAME)
        return tri_jinja_set(run, target->symbol, value);
    if (target->kind == TRI_JINJA_N_ATTRIBUTE) {
        struct tri_jinja_value object;
        TRI_TRY(tri_jinja_eval(run, target->a, &object));
        if (object.kind != TRI_JINJA_NAMESPACE)
            return tri_jinja_fail(run, TRI_INVALID,
                                  "cannot assign an attribute of %s, only of a namespace",
                                  tri_jinja_type_name(object));
        return tri_jinja_dict_set(run, object.as.dict, target->value, value);
    }
    struct tri_jinja_list *list;
    TRI_TRY(tri_jinja_iterate(run, value, &list));
    if (list->count != target->count)
        return tri_jinja_fail(run, TRI_INVALID,
                              "cannot unpack %" PRId64 " values into %" PRId64 " names",
                              list->count, target->count);
    int64_t i = 0;
    for (const struct tri_jinja_node *n = target->list; n != NULL && i < list->count; n = n->next)
        TRI_TRY(tri_jinja_assign(run, n, list->items[i++]));
    return TRI_OK;
}

enum tri_status tri_jinja_catch(struct tri_jinja_run *run, const struct tri_jinja_node *body,
                                enum tri_jinja_flow *flow, struct tri_jinja_value *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool}, *outer = run->output;
    run->output = &buffer;
    enum tri_status st = tri_jinja_exec(run, body, flow);
    run->output = outer;
    TRI_TRY(st);
    return tri_jinja_buffer_value(&buffer, out);
}

/* Items of the loop that its condition lets through. */
static enum tri_status loop_items(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                  struct tri_jinja_list **out)
{
    const struct tri_jinja_node *target = node->list, *condition = target->next->next;
    struct tri_jinja_value value, kept;
    struct tri_jinja_list *items;
    TRI_TRY(tri_jinja_eval(run, target->next, &value));
    run->line = node->line;
    TRI_TRY(tri_jinja_iterate(run, value, &items));
    *out = items;
    if (condition == NULL)
        return TRI_OK;
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, 0, &kept));
    struct tri_jinja_scope *outer = run->scope;
    for (int64_t i = 0; i < items->count; i++) {
        TRI_TRY(tri_jinja_push_scope(run, outer));
        TRI_TRY(tri_jinja_assign(run, target, items->items[i]));
        TRI_TRY(tri_jinja_eval(run, condition, &value));
        if (tri_jinja_truth(value))
            TRI_TRY(tri_jinja_list_add(&run->pool, kept.as.list, items->items[i]));
    }
    run->scope = outer;
    *out = kept.as.list;
    return TRI_OK;
}

static enum tri_status exec_for(struct tri_jinja_run *run, const struct tri_jinja_node *node)
{
    struct tri_jinja_scope *outer = run->scope;
    struct tri_jinja_list *items;
    enum tri_jinja_flow flow = TRI_JINJA_NEXT;
    TRI_TRY(loop_items(run, node, &items));
    if (items->count == 0) {
        TRI_TRY(tri_jinja_push_scope(run, outer));
        TRI_TRY(tri_jinja_exec(run, node->c, &flow));
        run->scope = outer;
        return TRI_OK;
    }
    struct tri_jinja_loop *loop = tri_jinja_pool_get(&run->pool, sizeof *loop);
    if (loop == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    loop->items = items;
    const int64_t message = run->message;
    const struct tri_jinja_value self = {.kind = TRI_JINJA_LOOP, .as.loop = loop};
    struct tri_jinja_scope *scope = NULL;
    for (; loop->index < items->count && flow != TRI_JINJA_BREAK; loop->index++) {
        struct tri_jinja_value item = items->items[loop->index];
        TRI_TRY(tri_jinja_step(run, 1));
        /* Each turn has names of its own; only a macro may still need those of the last one. */
        if (scope == NULL || scope->captured)
            TRI_TRY(tri_jinja_push_scope(run, outer));
        scope = run->scope;
        scope->count = 0;
        TRI_TRY(tri_jinja_set(run, TRI_JINJA_SYMBOL_LOOP, self));
        run->line = node->line;
        TRI_TRY(tri_jinja_assign(run, node->list, item));
        if (item.kind == TRI_JINJA_DICT && item.as.dict->message >= 0)
            run->message = item.as.dict->message;
        TRI_TRY(tri_jinja_exec(run, node->b, &flow));
        run->scope = scope;
    }
    run->message = message;
    run->scope = outer;
    return TRI_OK;
}

static enum tri_status exec_set_block(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                      enum tri_jinja_flow *flow)
{
    struct tri_jinja_value value;
    struct tri_jinja_scope *outer = run->scope;
    TRI_TRY(tri_jinja_push_scope(run, outer));
    TRI_TRY(tri_jinja_catch(run, node->b, flow, &value));
    run->scope = outer;
    if (*flow != TRI_JINJA_NEXT)
        return TRI_OK;
    if (node->c != NULL)
        TRI_TRY(tri_jinja_filter_chain(run, node->c, value, &value));
    return tri_jinja_assign(run, node->a, value);
}

static enum tri_status exec_filtered(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                     enum tri_jinja_flow *flow)
{
    struct tri_jinja_value value;
    struct tri_jinja_scope *outer = run->scope;
    TRI_TRY(tri_jinja_push_scope(run, outer));
    TRI_TRY(tri_jinja_catch(run, node->b, flow, &value));
    run->scope = outer;
    if (*flow != TRI_JINJA_NEXT)
        return TRI_OK;
    TRI_TRY(tri_jinja_filter_chain(run, node->c, value, &value));
    TRI_TRY(tri_jinja_to_string(run, value, &value));
    return tri_jinja_emit(run, value.as.string->data, value.as.string->bytes);
}

static enum tri_status exec_with(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                 enum tri_jinja_flow *flow)
{
    struct tri_jinja_scope *outer = run->scope, *inner;
    TRI_TRY(tri_jinja_push_scope(run, outer));
    inner = run->scope;
    for (const struct tri_jinja_node *n = node->list; n != NULL; n = n->next->next) {
        struct tri_jinja_value value;
        run->scope = outer; /* values do not see the names beside them */
        TRI_TRY(tri_jinja_eval(run, n->next, &value));
        run->scope = inner;
        TRI_TRY(tri_jinja_assign(run, n, value));
    }
    TRI_TRY(tri_jinja_exec(run, node->b, flow));
    run->scope = outer;
    return TRI_OK;
}

static enum tri_status exec_generation(struct tri_jinja_run *run, const struct tri_jinja_node *node)
{
    struct tri_jinja_scope *outer = run->scope;
    enum tri_jinja_flow flow = TRI_JINJA_NEXT;
    if (run->output != &run->root)
        return tri_jinja_fail(run, TRI_UNSUPPORTED,
                              "a generation block inside a macro or a set block");
    if (run->generation)
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "a generation block inside another");
    TRI_TRY(tri_jinja_push_scope(run, outer));
    run->generation = true;
    TRI_TRY(tri_jinja_exec(run, node->b, &flow));
    run->generation = false;
    run->scope = outer;
    return TRI_OK;
}

static enum tri_status exec_macro(struct tri_jinja_run *run, const struct tri_jinja_node *node)
{
    struct tri_jinja_macro *macro = tri_jinja_pool_get(&run->pool, sizeof *macro);
    if (macro == NULL)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    *macro = (struct tri_jinja_macro){.node = node, .scope = run->scope};
    for (struct tri_jinja_scope *s = run->scope; s != NULL && !s->captured; s = s->parent)
        s->captured = true;
    return tri_jinja_set(run, node->symbol,
                         (struct tri_jinja_value){.kind = TRI_JINJA_MACRO, .as.macro = macro});
}

static enum tri_status exec_if(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                               enum tri_jinja_flow *flow)
{
    struct tri_jinja_value value;
    for (;;) {
        TRI_TRY(tri_jinja_eval(run, node->a, &value));
        if (tri_jinja_truth(value))
            return tri_jinja_exec(run, node->b, flow);
        /* A lone IF in the else part is either an elif or as good as one. */
        if (node->c == NULL || node->c->kind != TRI_JINJA_N_IF || node->c->next != NULL)
            return tri_jinja_exec(run, node->c, flow);
        node = node->c;
    }
}

static enum tri_status exec_print(struct tri_jinja_run *run, const struct tri_jinja_node *node)
{
    struct tri_jinja_value value;
    TRI_TRY(tri_jinja_eval(run, node->a, &value));
    run->line = node->line;
    TRI_TRY(tri_jinja_to_string(run, value, &value));
    return tri_jinja_emit(run, value.as.string->data, value.as.string->bytes);
}

static enum tri_status exec_one(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                enum tri_jinja_flow *flow)
{
    struct tri_jinja_value value;
    switch (node->kind) {
    case TRI_JINJA_N_DATA:
        return tri_jinja_emit(run, node->value.as.string->data, node->value.as.string->bytes);
    case TRI_JINJA_N_PRINT:
        return exec_print(run, node);
    case TRI_JINJA_N_IF:
        return exec_if(run, node, flow);
    case TRI_JINJA_N_FOR:
        return exec_for(run, node);
    case TRI_JINJA_N_SET:
        TRI_TRY(tri_jinja_eval(run, node->b, &value));
        run->line = node->line;
        return tri_jinja_assign(run, node->a, value);
    case TRI_JINJA_N_SET_BLOCK:
        return exec_set_block(run, node, flow);
    case TRI_JINJA_N_MACRO:
        return exec_macro(run, node);
    case TRI_JINJA_N_FILTERED:
        return exec_filtered(run, node, flow);
    case TRI_JINJA_N_WITH:
        return exec_with(run, node, flow);
    case TRI_JINJA_N_GENERATION:
        return exec_generation(run, node);
    case TRI_JINJA_N_BREAK:
        *flow = TRI_JINJA_BREAK;
        return TRI_OK;
    default:
        *flow = TRI_JINJA_CONTINUE;
        return TRI_OK;
    }
}

enum tri_status tri_jinja_exec(struct tri_jinja_run *run, const struct tri_jinja_node *body,
                               enum tri_jinja_flow *flow)
{
    TRI_TRY(tri_jinja_descend(run));
    *flow = TRI_JINJA_NEXT;
    for (; body != NULL && *flow == TRI_JINJA_NEXT; body = body->next) {
        run->line = body->line;
        TRI_TRY(tri_jinja_step(run, 1));
        TRI_TRY(exec_one(run, body, flow));
    }
    run->depth--;
    return TRI_OK;
}
