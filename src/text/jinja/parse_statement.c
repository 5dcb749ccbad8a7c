/* Statements: what stands in {% %}. */
#include <string.h>

#include "text/jinja/parser.h"

enum { MAX_ENDS = 3 };

static enum tri_status parse_statement(struct tri_jinja_parser *p, struct tri_jinja_node **out);

/* Everything up to a tag named by one of `ends` (NULL: the end of the template); its name is the
 * next token then. */
static enum tri_status parse_body(struct tri_jinja_parser *p, const char *const ends[MAX_ENDS],
                                  struct tri_jinja_node **out)
{
    struct tri_jinja_node *node, **tail = out;
    *out = NULL;
    for (;;) {
        const struct tri_jinja_token *token = p->token;
        switch (token->kind) {
        case TRI_JINJA_T_DATA:
            TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_DATA, &node));
            TRI_TRY(tri_jinja_string_ref(&p->jinja->pool, token->data, token->bytes, &node->value));
            p->token++;
            break;
        case TRI_JINJA_T_PRINT_BEGIN:
            TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_PRINT, &node));
            p->token++;
            TRI_TRY(tri_jinja_parse_tuple(p, true, &node->a));
            if (p->token->kind != TRI_JINJA_T_PRINT_END)
                return tri_jinja_unexpected(p, "'}}'");
            p->token++;
            break;
        case TRI_JINJA_T_BLOCK_BEGIN:
            p->token++;
            for (int i = 0; ends != NULL && i < MAX_ENDS && ends[i] != NULL; i++)
                if (tri_jinja_at_name(p, ends[i]))
                    return TRI_OK;
            TRI_TRY(parse_statement(p, &node));
            if (p->token->kind != TRI_JINJA_T_BLOCK_END)
                return tri_jinja_unexpected(p, "'%}'");
            p->token++;
            break;
        default:
            if (ends == NULL)
                return TRI_OK;
            char expected[64] = "a tag {% ";
            strncat(expected, ends[0], 20);
            strncat(expected, " %}", 4);
            return tri_jinja_unexpected(p, expected);
        }
        *tail = node;
        tail = &node->next;
    }
}

static enum tri_status end_tag(struct tri_jinja_parser *p)
{
    if (p->token->kind != TRI_JINJA_T_BLOCK_END)
        return tri_jinja_unexpected(p, "'%}'");
    p->token++;
    return TRI_OK;
}

/* "%} body {% end": the end's name is stepped over. */
static enum tri_status parse_block(struct tri_jinja_parser *p, const char *end,
                                   struct tri_jinja_node **out)
{
    const char *const ends[MAX_ENDS] = {end};
    TRI_TRY(end_tag(p));
    TRI_TRY(parse_body(p, ends, out));
    p->token++;
    return TRI_OK;
}

enum tri_status tri_jinja_parse_target(struct tri_jinja_parser *p, bool attribute,
                                       struct tri_jinja_node **out)
{
    struct tri_jinja_node *node, *item, *first = NULL;
    bool tuple = false;
    TRI_TRY(tri_jinja_enter(p));
    struct tri_jinja_node **tail = &first;
    int64_t count = 0;
    do {
        if (count > 0 && p->token->kind != TRI_JINJA_T_NAME && !tri_jinja_at_operator(p, "("))
            break;
        if (tri_jinja_skip_operator(p, "(")) {
            TRI_TRY(tri_jinja_parse_target(p, false, &item));
            TRI_TRY(tri_jinja_expect(p, ")"));
        } else {
            if (p->token->kind != TRI_JINJA_T_NAME || tri_jinja_at_name(p, "loop") ||
                tri_jinja_at_name(p, "true") || tri_jinja_at_name(p, "false") ||
                tri_jinja_at_name(p, "none"))
                return tri_jinja_unexpected(p, "a name to assign to");
            TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_NAME, &item));
            TRI_TRY(tri_jinja_symbol(p, p->token->data, p->token->bytes, &item->symbol));
            p->token++;
            if (attribute && tri_jinja_skip_operator(p, ".")) {
                if (p->token->kind != TRI_JINJA_T_NAME)
                    return tri_jinja_unexpected(p, "a name after '.'");
                TRI_TRY(
                    tri_jinja_binary(p, TRI_JINJA_N_ATTRIBUTE, TRI_JINJA_ADD, item, NULL, &item));
                TRI_TRY(tri_jinja_string_ref(&p->jinja->pool, p->token->data, p->token->bytes,
                                             &item->value));
                p->token++;
                first = item;
                count = 1;
                break;
            }
        }
        *tail = item;
        tail = &item->next;
        count++;
        tuple = tri_jinja_skip_operator(p, ",");
    } while (tuple);
    p->depth--;
    if (count == 1 && !tuple) {
        *out = first;
        return TRI_OK;
    }
    TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_TUPLE, &node));
    node->list = first;
    node->count = count;
    *out = node;
    return TRI_OK;
}

static enum tri_status parse_for(struct tri_jinja_parser *p, struct tri_jinja_node *node)
{
    struct tri_jinja_node *target, *iterable;
    TRI_TRY(tri_jinja_parse_target(p, false, &target));
    if (!tri_jinja_skip_name(p, "in"))
        return tri_jinja_unexpected(p, "'in'");
    TRI_TRY(tri_jinja_parse_tuple(p, false, &iterable));
    node->list = target;
    target->next = iterable;
    if (tri_jinja_skip_name(p, "if"))
        TRI_TRY(tri_jinja_parse_expression(p, true, &iterable->next));
    if (tri_jinja_at_name(p, "recursive"))
        return tri_fail(TRI_UNSUPPORTED, "%s line %d: recursive loops are not supported",
                        p->jinja->what, p->token->line);
    static const char *const ends[MAX_ENDS] = {"endfor", "else"};
    TRI_TRY(end_tag(p));
    p->loop_depth++;
    TRI_TRY(parse_body(p, ends, &node->b));
    p->loop_depth--;
    if (tri_jinja_skip_name(p, "else"))
        return parse_block(p, "endfor", &node->c);
    p->token++;
    return TRI_OK;
}

static enum tri_status parse_if(struct tri_jinja_parser *p, struct tri_jinja_node *node)
{
    static const char *const ends[MAX_ENDS] = {"endif", "else", "elif"};
    p->conditions++;
    for (;;) {
        TRI_TRY(tri_jinja_parse_tuple(p, false, &node->a));
        TRI_TRY(end_tag(p));
        TRI_TRY(parse_body(p, ends, &node->b));
        if (tri_jinja_skip_name(p, "else")) {
            TRI_TRY(parse_block(p, "endif", &node->c));
            p->conditions--;
            return TRI_OK;
        }
        if (!tri_jinja_skip_name(p, "elif"))
            break;
        TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_IF, &node->c));
        node = node->c;
    }
    p->conditions--;
    p->token++;
    return TRI_OK;
}

static enum tri_status parse_set(struct tri_jinja_parser *p, struct tri_jinja_node *node)
{
    TRI_TRY(tri_jinja_parse_target(p, true, &node->a));
    if (tri_jinja_skip_operator(p, "="))
        return tri_jinja_parse_tuple(p, true, &node->b);
    node->kind = TRI_JINJA_N_SET_BLOCK;
    if (tri_jinja_at_operator(p, "|"))
        TRI_TRY(tri_jinja_parse_filters(p, false, NULL, &node->c));
    return parse_block(p, "endset", &node->b);
}

static enum tri_status parse_macro(struct tri_jinja_parser *p, struct tri_jinja_node *node)
{
    if (p->token->kind != TRI_JINJA_T_NAME)
        return tri_jinja_unexpected(p, "the name of a macro");
    TRI_TRY(tri_jinja_symbol(p, p->token->data, p->token->bytes, &node->symbol));
    p->token++;
    TRI_TRY(tri_jinja_expect(p, "("));
    struct tri_jinja_node **tail = &node->list;
    bool defaults = false;
    while (!tri_jinja_skip_operator(p, ")")) {
        struct tri_jinja_node *parameter;
        if (node->count > 0)
            TRI_TRY(tri_jinja_expect(p, ","));
        if (p->token->kind != TRI_JINJA_T_NAME)
            return tri_jinja_unexpected(p, "the name of a parameter");
        TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_PARAMETER, &parameter));
        TRI_TRY(tri_jinja_symbol(p, p->token->data, p->token->bytes, &parameter->symbol));
        parameter->value = p->jinja->symbols[parameter->symbol];
        p->token++;
        if (tri_jinja_skip_operator(p, "=")) {
            defaults = true;
            TRI_TRY(tri_jinja_parse_expression(p, true, &parameter->a));
        } else if (defaults) {
            return tri_jinja_unexpected(p, "a default (an earlier parameter has one)");
        }
        tri_jinja_append(node, &tail, parameter);
    }
    int loops = p->loop_depth;
    p->loop_depth = 0;
    TRI_TRY(parse_block(p, "endmacro", &node->b));
    p->loop_depth = loops;
    return TRI_OK;
}

static enum tri_status parse_with(struct tri_jinja_parser *p, struct tri_jinja_node *node)
{
    struct tri_jinja_node **tail = &node->list;
    while (p->token->kind != TRI_JINJA_T_BLOCK_END) {
        struct tri_jinja_node *target, *value;
        if (node->count > 0)
            TRI_TRY(tri_jinja_expect(p, ","));
        TRI_TRY(tri_jinja_parse_target(p, false, &target));
        TRI_TRY(tri_jinja_expect(p, "="));
        TRI_TRY(tri_jinja_parse_expression(p, true, &value));
        tri_jinja_append(node, &tail, target);
        tri_jinja_append(node, &tail, value);
    }
    return parse_block(p, "endwith", &node->b);
}

static enum tri_status parse_generation(struct tri_jinja_parser *p, struct tri_jinja_node *node)
{
    p->jinja->has_generation = true;
    int loops = p->loop_depth;
    p->loop_depth = 0;
    TRI_TRY(parse_block(p, "endgeneration", &node->b));
    p->loop_depth = loops;
    return TRI_OK;
}

static enum tri_status parse_loop_control(struct tri_jinja_parser *p, struct tri_jinja_node *node)
{
    if (p->loop_depth == 0)
        return tri_fail(TRI_FORMAT, "%s line %d: '%s' stands outside of a loop", p->jinja->what,
                        node->line, node->kind == TRI_JINJA_N_BREAK ? "break" : "continue");
    return TRI_OK;
}

static enum tri_status parse_filter_block(struct tri_jinja_parser *p, struct tri_jinja_node *node)
{
    TRI_TRY(tri_jinja_parse_filters(p, true, NULL, &node->c));
    return parse_block(p, "endfilter", &node->b);
}

static enum tri_status parse_statement(struct tri_jinja_parser *p, struct tri_jinja_node **out)
{
    static const struct {
        const char *name;
        enum tri_jinja_node_kind kind;
        enum tri_status (*parse)(struct tri_jinja_parser *p, struct tri_jinja_node *node);
    } statements[] = {
        {"if", TRI_JINJA_N_IF, parse_if},
        {"for", TRI_JINJA_N_FOR, parse_for},
        {"set", TRI_JINJA_N_SET, parse_set},
        {"macro", TRI_JINJA_N_MACRO, parse_macro},
        {"filter", TRI_JINJA_N_FILTERED, parse_filter_block},
        {"with", TRI_JINJA_N_WITH, parse_with},
        {"generation", TRI_JINJA_N_GENERATION, parse_generation},
        {"break", TRI_JINJA_N_BREAK, parse_loop_control},
        {"continue", TRI_JINJA_N_CONTINUE, parse_loop_control},
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!tri_jinja_at_name(p, statements[i].name))
            continue;
        TRI_TRY(tri_jinja_enter(p));
        TRI_TRY(tri_jinja_node(p, statements[i].kind, out));
        p->token++;
        TRI_TRY(statements[i].parse(p, *out));
        p->depth--;
        return TRI_OK;
    }
    if (p->token->kind != TRI_JINJA_T_NAME)
        return tri_jinja_unexpected(p, "the name of a tag");
    return tri_fail(TRI_UNSUPPORTED, "%s line %d: tag '%.*s' is not supported here", p->jinja->what,
                    p->token->line, (int)(p->token->bytes < 60 ? p->token->bytes : 60),
                    p->token->data);
}

enum tri_status tri_jinja_parse(struct tri_jinja *jinja, struct tri_jinja_tokens tokens)
{
    struct tri_jinja_parser p = {.jinja = jinja, .token = tokens.items};
    int loop;
    TRI_TRY(tri_jinja_symbol(&p, "loop", 4, &loop));
    return parse_body(&p, NULL, &jinja->body);
}
