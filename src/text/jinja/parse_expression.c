/* The loose half of an expression: operators, from inline if down to **. */
#include <string.h>

#include "text/jinja/parser.h"

/* Left-associative operators, tightest first. */
static const struct level {
    const char *texts[5];
    enum tri_jinja_operator ops[4];
} levels[] = {
    {{"**"}, {TRI_JINJA_POW}},
    {{"*", "/", "//", "%"}, {TRI_JINJA_MUL, TRI_JINJA_DIV, TRI_JINJA_FLOORDIV, TRI_JINJA_MOD}},
    {{"~"}, {TRI_JINJA_ADD}},
    {{"+", "-"}, {TRI_JINJA_ADD, TRI_JINJA_SUB}},
};
enum { CONCAT_LEVEL = 2, LAST_LEVEL = 3 };

static enum tri_status parse_level(struct tri_jinja_parser *p, int level,
                                   struct tri_jinja_node **out)
{
    if (level < 0)
        return tri_jinja_parse_unary(p, true, out);
    struct tri_jinja_node *node, *right, **tail = NULL;
    TRI_TRY(parse_level(p, level - 1, &node));
    for (;;) {
        int i = 0;
        while (levels[level].texts[i] != NULL &&
               !tri_jinja_skip_operator(p, levels[level].texts[i]))
            i++;
        if (levels[level].texts[i] == NULL)
            break;
        TRI_TRY(parse_level(p, level - 1, &right));
        if (level != CONCAT_LEVEL) {
            TRI_TRY(
                tri_jinja_binary(p, TRI_JINJA_N_BINARY, levels[level].ops[i], node, right, &node));
            continue;
        }
        if (tail == NULL) {
            struct tri_jinja_node *first = node;
            TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_CONCAT, &node));
            tail = &node->list;
            tri_jinja_append(node, &tail, first);
        }
        tri_jinja_append(node, &tail, right);
    }
    *out = node;
    return TRI_OK;
}

/* The comparison at hand, stepped over. */
static bool skip_comparison(struct tri_jinja_parser *p, enum tri_jinja_operator *op)
{
    static const struct {
        const char *text;
        enum tri_jinja_operator op;
    } comparisons[] = {{"==", TRI_JINJA_EQ}, {"!=", TRI_JINJA_NE}, {"<", TRI_JINJA_LT},
                       {"<=", TRI_JINJA_LE}, {">", TRI_JINJA_GT},  {">=", TRI_JINJA_GE}};
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        if (tri_jinja_skip_operator(p, comparisons[i].text)) {
            *op = comparisons[i].op;
            return true;
        }
    }
    *op = TRI_JINJA_IN;
    if (tri_jinja_skip_name(p, "in"))
        return true;
    const struct tri_jinja_token *next = p->token + 1;
    if (!tri_jinja_at_name(p, "not") || next->kind != TRI_JINJA_T_NAME || next->bytes != 2 ||
        memcmp(next->data, "in", 2) != 0)
        return false;
    *op = TRI_JINJA_NOT_IN;
    p->token += 2;
    return true;
}

static enum tri_status parse_compare(struct tri_jinja_parser *p, struct tri_jinja_node **out)
{
    struct tri_jinja_node *first, *operand, **tail = NULL;
    enum tri_jinja_operator op;
    TRI_TRY(parse_level(p, LAST_LEVEL, &first));
    *out = first;
    while (skip_comparison(p, &op)) {
        if (tail == NULL) {
            TRI_TRY(tri_jinja_binary(p, TRI_JINJA_N_COMPARE, op, first, NULL, out));
            tail = &(*out)->list;
        }
        TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_OPERAND, &operand));
        operand->op = op;
        TRI_TRY(parse_level(p, LAST_LEVEL, &operand->a));
        tri_jinja_append(*out, &tail, operand);
    }
    return TRI_OK;
}

static enum tri_status parse_not(struct tri_jinja_parser *p, struct tri_jinja_node **out)
{
    if (!tri_jinja_at_name(p, "not"))
        return parse_compare(p, out);
    struct tri_jinja_node *node;
    TRI_TRY(tri_jinja_enter(p));
    TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_NOT, &node));
    p->token++;
    TRI_TRY(parse_not(p, &node->a));
    p->depth--;
    *out = node;
    return TRI_OK;
}

static enum tri_status parse_and(struct tri_jinja_parser *p, struct tri_jinja_node **out)
{
    struct tri_jinja_node *node, *right;
    TRI_TRY(parse_not(p, &node));
    while (tri_jinja_skip_name(p, "and")) {
        TRI_TRY(parse_not(p, &right));
        TRI_TRY(tri_jinja_binary(p, TRI_JINJA_N_AND, TRI_JINJA_ADD, node, right, &node));
    }
    *out = node;
    return TRI_OK;
}

static enum tri_status parse_or(struct tri_jinja_parser *p, struct tri_jinja_node **out)
{
    struct tri_jinja_node *node, *right;
    TRI_TRY(parse_and(p, &node));
    while (tri_jinja_skip_name(p, "or")) {
        TRI_TRY(parse_and(p, &right));
        TRI_TRY(tri_jinja_binary(p, TRI_JINJA_N_OR, TRI_JINJA_ADD, node, right, &node));
    }
    *out = node;
    return TRI_OK;
}

enum tri_status tri_jinja_parse_expression(struct tri_jinja_parser *p, bool choice,
                                           struct tri_jinja_node **out)
{
    struct tri_jinja_node *node, *condition;
    TRI_TRY(tri_jinja_enter(p));
    TRI_TRY(parse_or(p, &node));
    while (choice && tri_jinja_skip_name(p, "if")) {
        TRI_TRY(parse_or(p, &condition));
        TRI_TRY(tri_jinja_binary(p, TRI_JINJA_N_CHOICE, TRI_JINJA_ADD, condition, node, &node));
        if (tri_jinja_skip_name(p, "else"))
            TRI_TRY(tri_jinja_parse_expression(p, true, &node->c));
    }
    p->depth--;
    *out = node;
    return TRI_OK;
}

enum tri_status tri_jinja_parse_tuple(struct tri_jinja_parser *p, bool choice,
                                      struct tri_jinja_node **out)
{
    struct tri_jinja_node *first, *item;
    TRI_TRY(tri_jinja_parse_expression(p, choice, &first));
    *out = first;
    if (!tri_jinja_at_operator(p, ","))
        return TRI_OK;
    struct tri_jinja_node *node;
    TRI_TRY(tri_jinja_node(p, TRI_JINJA_N_TUPLE, &node));
    struct tri_jinja_node **tail = &node->list;
    tri_jinja_append(node, &tail, first);
    while (tri_jinja_skip_operator(p, ",")) {
        if (p->token->kind == TRI_JINJA_T_BLOCK_END || p->token->kind == TRI_JINJA_T_PRINT_END ||
            tri_jinja_at_operator(p, ")") || tri_jinja_at_operator(p, "]"))
            break;
        TRI_TRY(tri_jinja_parse_expression(p, choice, &item));
        tri_jinja_append(node, &tail, item);
    }
    *out = node;
    return TRI_OK;
}
