/* The tight half of an expression: a literal or a name, what follows it (.name, [index], (call)),
 * filters and tests. */
#include <string.h>

#include "text/jinja/builtin.h"
#include "text/jinja/parser.h"

void tri_jinja_append(struct tri_jinja_node *owner, struct tri_jinja_node ***tail,
                      struct tri_jinja_node *node)
{
    **tail = node;
    *tail = &node->next;
    owner->count++;
}

enum tri_status tri_jinja_binary(struct tri_jinja_parser *p, enum tri_jinja_node_kind kind,
                                 enum tri_jinja_operator op, struct tri_jinja_node *a,
                                 struct tri_jinja_node *b, struct tri_jinja_node **out)
{
    struct tri_jinja_node *node;
    TRI_TRY(tri_jinja_node(p, kind, &node));
    node->line = a->line;
    node->op = op;
    node->a = a;
    node->b = b;
    *out = node;
    return TRI_OK;
}

/* Arguments in parentheses, into the node's list. */
static enum tri_status parse_arguments(struct tri_jinja_parser *p, struct tri_jinja_node *call)
{
    struct tri_jinja_node **tail = &call->list;
    bool named = false;
    TRI_TRY(tri_jinja_expect(p, "("));
    while (!tri_jinja_skip_operator(p, ")")) {
        if (call->count > 0) {
            TRI_TRY(tri_jinja_expect(p, ","));
            if (tri_jinja_skip_operator(p, ")"))
                break;
        }
        if (tri_jinja_at_operator(p, "*") || tri_jinja_at_operator(p, "**"))
            return tri_fail(TRI_UNSUPPORTED, "%s line %d: *arguments in a call are not supported",
                            p->jinja->what, p->token->line);
        struct tri_jinja_node *argument;
        TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_ARGUMENT, &argument));
        const struct tri_jinja_token *next = p->token + 1;
        if (p->token->kind == TRI_JINJA_T_NAME && next->kind == TRI_JINJA_T_OPERATOR &&
            next->bytes == 1 && next->data[0] == '=') {
            TRI_TRY(tri_jinja_string_ref(&p->jinja->pool, p->token->data, p->token->bytes,
                                         &argument->value));
            p->token += 2;
            named = true;
        } else if (named) {
            return tri_jinja_unexpected(p, "an argument by name (name=value)");
        }
        TRI_TRY(tri_jinja_parse_expression(p, true, &argument->a));
        tri_jinja_append(call, &tail, argument);
    }
    return TRI_OK;
}

/* What stands in [ ]. */
static enum tri_status parse_subscript(struct tri_jinja_parser *p, struct tri_jinja_node *object,
                                       struct tri_jinja_node **out)
{
    struct tri_jinja_node *bounds[3] = {NULL};
    int at = 0;
    bool slice = false;
    while (!tri_jinja_at_operator(p, "]")) {
        if (tri_jinja_skip_operator(p, ":")) {
            slice = true;
            if (++at == 3)
                return tri_jinja_unexpected(p, "']'");
        } else if (bounds[at] != NULL) {
            return tri_jinja_unexpected(p, "']'");
        } else if (!slice) {
            TRI_TRY(tri_jinja_parse_tuple(p, true, &bounds[at]));
        } else {
            TRI_TRY(tri_jinja_parse_expression(p, true, &bounds[at]));
        }
    }
    if (!slice && bounds[0] == NULL)
        return tri_jinja_unexpected(p, "an index");
    p->token++;
    TRI_TRY(tri_jinja_binary(p, slice ? TRI_JINJA_N_SLICE : TRI_JINJA_N_ITEM, TRI_JINJA_ADD, object,
                             slice ? NULL : bounds[0], out));
    if (!slice)
        return TRI_OK;
    struct tri_jinja_node **tail = &(*out)->list;
    for (int i = 0; i < 3; i++) {
        if (bounds[i] == NULL) {
            TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_CONSTANT, &bounds[i]));
            bounds[i]->value = tri_jinja_none();
        }
        tri_jinja_append(*out, &tail, bounds[i]);
    }
    return TRI_OK;
}

static enum tri_status parse_postfix(struct tri_jinja_parser *p, struct tri_jinja_node *node,
                                     struct tri_jinja_node **out)
{
    for (;;) {
        struct tri_jinja_node *next;
        if (tri_jinja_skip_operator(p, ".")) {
            const struct tri_jinja_token *token = p->token;
            TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_ATTRIBUTE, &next));
            next->a = node;
            if (token->kind == TRI_JINJA_T_NAME) {
                TRI_TRY(
                    tri_jinja_string_ref(&p->jinja->pool, token->data, token->bytes, &next->value));
            } else if (token->kind == TRI_JINJA_T_CONSTANT && token->value.kind == TRI_JINJA_INT) {
                next->kind = TRI_JINJA_N_ITEM;
                TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_CONSTANT, &next->b));
                next->b->value = token->value;
            } else {
                return tri_jinja_unexpected(p, "a name after '.'");
            }
            p->token++;
        } else if (tri_jinja_skip_operator(p, "[")) {
            TRI_TRY(parse_subscript(p, node, &next));
        } else if (tri_jinja_at_operator(p, "(")) {
            TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_CALL, &next));
            next->a = node;
            TRI_TRY(parse_arguments(p, next));
        } else {
            *out = node;
            return TRI_OK;
        }
        node = next;
    }
}

/* Elements up to `close`; a dict's are key: value. */
static enum tri_status parse_display(struct tri_jinja_parser *p, enum tri_jinja_node_kind kind,
                                     const char *close, struct tri_jinja_node **out)
{
    struct tri_jinja_node *node, *item;
    TRI_TRY(tri_jinja_node(p, kind, &node));
    struct tri_jinja_node **tail = &node->list;
    p->token++;
    while (!tri_jinja_skip_operator(p, close)) {
        if (node->count > 0) {
            TRI_TRY(tri_jinja_expect(p, ","));
            if (tri_jinja_skip_operator(p, close))
                break;
        }
        TRI_TRY(tri_jinja_parse_expression(p, true, &item));
        tri_jinja_append(node, &tail, item);
        if (kind == TRI_JINJA_N_DICT) {
            TRI_TRY(tri_jinja_expect(p, ":"));
            TRI_TRY(tri_jinja_parse_expression(p, true, &item));
            tri_jinja_append(node, &tail, item);
        }
    }
    *out = node;
    return TRI_OK;
}

static enum tri_status parse_parentheses(struct tri_jinja_parser *p, struct tri_jinja_node **out)
{
    p->token++;
    if (tri_jinja_skip_operator(p, ")"))
        return tri_jinja_node(p, TRI_JINJA_N_TUPLE, out);
    TRI_TRY(tri_jinja_parse_tuple(p, true, out));
    return tri_jinja_expect(p, ")");
}

/* Adjacent strings are one string. */
static enum tri_status parse_constant(struct tri_jinja_parser *p, struct tri_jinja_node **out)
{
    TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_CONSTANT, out));
    const struct tri_jinja_token *first = p->token++;
    (*out)->value = first->value;
    if (first->value.kind != TRI_JINJA_STRING)
        return TRI_OK;
    size_t bytes = first->value.as.string->bytes;
    while (p->token->kind == TRI_JINJA_T_CONSTANT && p->token->value.kind == TRI_JINJA_STRING)
        bytes += p->token++->value.as.string->bytes;
    if (p->token == first + 1)
        return TRI_OK;
    char *text = tri_jinja_pool_get(&p->jinja->pool, bytes + 1);
    if (text == NULL)
        return tri_jinja_pool_fail(&p->jinja->pool, p->jinja->what);
    size_t at = 0;
    for (const struct tri_jinja_token *t = first; t < p->token; t++) {
        memcpy(text + at, t->value.as.string->data, t->value.as.string->bytes);
        at += t->value.as.string->bytes;
    }
    return tri_jinja_string_ref(&p->jinja->pool, text, bytes, &(*out)->value);
}

static enum tri_status parse_primary(struct tri_jinja_parser *p, struct tri_jinja_node **out)
{
    if (p->token->kind == TRI_JINJA_T_CONSTANT)
        return parse_constant(p, out);
    if (tri_jinja_at_operator(p, "("))
        return parse_parentheses(p, out);
    if (tri_jinja_at_operator(p, "["))
        return parse_display(p, TRI_JINJA_N_LIST, "]", out);
    if (tri_jinja_at_operator(p, "{"))
        return parse_display(p, TRI_JINJA_N_DICT, "}", out);
    if (p->token->kind != TRI_JINJA_T_NAME)
        return tri_jinja_unexpected(p, "an expression");
    TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_CONSTANT, out));
    if (tri_jinja_at_name(p, "true") || tri_jinja_at_name(p, "True")) {
        (*out)->value = tri_jinja_bool(true);
    } else if (tri_jinja_at_name(p, "false") || tri_jinja_at_name(p, "False")) {
        (*out)->value = tri_jinja_bool(false);
    } else if (tri_jinja_at_name(p, "none") || tri_jinja_at_name(p, "None")) {
        (*out)->value = tri_jinja_none();
    } else {
        (*out)->kind = TRI_JINJA_N_NAME;
        TRI_TRY(tri_jinja_symbol(p, p->token->data, p->token->bytes, &(*out)->symbol));
    }
    p->token++;
    return TRI_OK;
}

/* A filter or test that is not known: as in Jinja an error at once, except under a condition, where
 * templates keep what only other programs have; then it is an error to get there. */
static enum tri_status unknown(struct tri_jinja_parser *p, const char *what,
                               struct tri_jinja_node *node)
{
    if (p->conditions == 0)
        return tri_fail(TRI_UNSUPPORTED, "%s line %d: %s '%.*s' is not known", p->jinja->what,
                        p->token->line, what, (int)(p->token->bytes < 60 ? p->token->bytes : 60),
                        p->token->data);
    return tri_jinja_string_ref(&p->jinja->pool, p->token->data, p->token->bytes, &node->value);
}

enum tri_status tri_jinja_parse_filters(struct tri_jinja_parser *p, bool first,
                                        struct tri_jinja_node *node, struct tri_jinja_node **out)
{
    while (first || tri_jinja_skip_operator(p, "|")) {
        first = false;
        if (p->token->kind != TRI_JINJA_T_NAME)
            return tri_jinja_unexpected(p, "the name of a filter");
        struct tri_jinja_node *filter;
        TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_FILTER, &filter));
        filter->a = node;
        filter->builtin = tri_jinja_find_filter(p->token->data, p->token->bytes);
        if (filter->builtin == NULL)
            TRI_TRY(unknown(p, "filter", filter));
        p->token++;
        if (tri_jinja_at_operator(p, "("))
            TRI_TRY(parse_arguments(p, filter));
        node = filter;
    }
    *out = node;
    return TRI_OK;
}

/* May an argument without parentheses follow the name of a test? */
static bool starts_argument(const struct tri_jinja_parser *p)
{
    switch (p->token->kind) {
    case TRI_JINJA_T_CONSTANT:
        return true;
    case TRI_JINJA_T_NAME:
        return !tri_jinja_at_name(p, "else") && !tri_jinja_at_name(p, "or") &&
               !tri_jinja_at_name(p, "and");
    case TRI_JINJA_T_OPERATOR:
        return *p->token->data == '[' || *p->token->data == '{';
    default:
        return false;
    }
}

static enum tri_status parse_test(struct tri_jinja_parser *p, struct tri_jinja_node *node,
                                  struct tri_jinja_node **out)
{
    struct tri_jinja_node *test, *argument;
    TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_TEST, &test));
    bool negated = tri_jinja_skip_name(p, "not");
    if (p->token->kind != TRI_JINJA_T_NAME)
        return tri_jinja_unexpected(p, "the name of a test");
    test->a = node;
    test->builtin = tri_jinja_find_test(p->token->data, p->token->bytes);
    if (test->builtin == NULL)
        TRI_TRY(unknown(p, "test", test));
    p->token++;
    if (tri_jinja_at_operator(p, "(")) {
        TRI_TRY(parse_arguments(p, test));
    } else if (starts_argument(p)) {
        if (tri_jinja_at_name(p, "is"))
            return tri_jinja_unexpected(p, "something other than a second 'is'");
        TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_ARGUMENT, &argument));
        TRI_TRY(parse_primary(p, &argument->a));
        TRI_TRY(parse_postfix(p, argument->a, &argument->a));
        test->list = argument;
        test->count = 1;
    }
    *out = test;
    if (negated)
        return tri_jinja_binary(p, TRI_JINJA_N_NOT, TRI_JINJA_ADD, test, NULL, out);
    return TRI_OK;
}

enum tri_status tri_jinja_parse_unary(struct tri_jinja_parser *p, bool with_filters,
                                      struct tri_jinja_node **out)
{
    struct tri_jinja_node *node;
    TRI_TRY(tri_jinja_enter(p));
    if (tri_jinja_at_operator(p, "-") || tri_jinja_at_operator(p, "+")) {
        bool minus = *p->token->data == '-';
        TRI_TRY(tri_jinja_node(p, minus ? TRI_JINJA_N_NEGATIVE : TRI_JINJA_N_POSITIVE, &node));
        p->token++;
        TRI_TRY(tri_jinja_parse_unary(p, false, &node->a));
    } else {
        TRI_TRY(parse_primary(p, &node));
    }
    p->depth--;
    TRI_TRY(parse_postfix(p, node, &node));
    while (with_filters) {
        if (tri_jinja_at_operator(p, "|")) {
            TRI_TRY(tri_jinja_parse_filters(p, false, node, &node));
        } else if (tri_jinja_skip_name(p, "is")) {
            TRI_TRY(parse_test(p, node, &node));
        } else if (tri_jinja_at_operator(p, "(")) {
            TRI_TRY(parse_postfix(p, node, &node));
        } else {
            break;
        }
    }
    *out = node;
    return TRI_OK;
}
