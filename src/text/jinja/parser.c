#include "text/jinja/parser.h"

#include <string.h>

/* Each level takes up to a dozen C functions of a few hundred bytes. */
enum { DEPTH = 100, MAX_SYMBOLS = 4096 };

enum tri_status tri_jinja_enter(struct tri_jinja_parser *p)
{
    if (p->depth == DEPTH)
        return tri_fail(TRI_UNSUPPORTED, "%s line %d: nested more than %d deep", p->jinja->what,
                        p->token->line, DEPTH);
    p->depth++;
    return TRI_OK;
}

enum tri_status tri_jinja_node(struct tri_jinja_parser *p, enum tri_jinja_node_kind kind,
                               struct tri_jinja_node **out)
{
    struct tri_jinja_node *node = tri_jinja_pool_get(&p->jinja->pool, sizeof *node);
    if (node == NULL)
        return tri_jinja_pool_fail(&p->jinja->pool, p->jinja->what);
    node->kind = kind;
    node->line = p->token->line;
    *out = node;
    return TRI_OK;
}

enum tri_status tri_jinja_symbol(struct tri_jinja_parser *p, const char *name, size_t bytes,
                                 int *out)
{
    struct tri_jinja *jinja = p->jinja;
    for (int i = 0; i < jinja->num_symbols; i++) {
        const struct tri_jinja_string *known = jinja->symbols[i].as.string;
        if (known->bytes == bytes && memcmp(known->data, name, bytes) == 0) {
            *out = i;
            return TRI_OK;
        }
    }
    if (jinja->num_symbols == MAX_SYMBOLS)
        return tri_fail(TRI_UNSUPPORTED, "%s line %d: more than %d names", jinja->what,
                        p->token->line, MAX_SYMBOLS);
    if (jinja->num_symbols == p->symbol_capacity) {
        int capacity = p->symbol_capacity == 0 ? 32 : 2 * p->symbol_capacity;
        struct tri_jinja_value *room =
            tri_jinja_pool_get(&jinja->pool, (size_t)capacity * sizeof *room);
        if (room == NULL)
            return tri_jinja_pool_fail(&jinja->pool, jinja->what);
        if (jinja->num_symbols > 0)
            memcpy(room, jinja->symbols, (size_t)jinja->num_symbols * sizeof *room);
        jinja->symbols = room;
        p->symbol_capacity = capacity;
    }
    TRI_TRY(tri_jinja_string_ref(&jinja->pool, name, bytes, &jinja->symbols[jinja->num_symbols]));
    *out = jinja->num_symbols++;
    return TRI_OK;
}

static bool token_is(const struct tri_jinja_token *token, enum tri_jinja_token_kind kind,
                     const char *text)
{
    return token->kind == kind && token->bytes == strlen(text) &&
           memcmp(token->data, text, token->bytes) == 0;
}

bool tri_jinja_at_operator(const struct tri_jinja_parser *p, const char *text)
{
    return token_is(p->token, TRI_JINJA_T_OPERATOR, text);
}

bool tri_jinja_at_name(const struct tri_jinja_parser *p, const char *name)
{
    return token_is(p->token, TRI_JINJA_T_NAME, name);
}

bool tri_jinja_skip_operator(struct tri_jinja_parser *p, const char *text)
{
    bool there = tri_jinja_at_operator(p, text);
    p->token += there;
    return there;
}

bool tri_jinja_skip_name(struct tri_jinja_parser *p, const char *name)
{
    bool there = tri_jinja_at_name(p, name);
    p->token += there;
    return there;
}

enum tri_status tri_jinja_unexpected(const struct tri_jinja_parser *p, const char *expected)
{
    const struct tri_jinja_token *token = p->token;
    const char *found = "a constant";
    int bytes = (int)strlen(found);
    switch (token->kind) {
    case TRI_JINJA_T_NAME:
    case TRI_JINJA_T_OPERATOR:
        return tri_fail(TRI_FORMAT, "%s line %d: expected %s, found '%.*s'", p->jinja->what,
                        token->line, expected, (int)(token->bytes < 60 ? token->bytes : 60),
                        token->data);
    case TRI_JINJA_T_BLOCK_END:
    case TRI_JINJA_T_PRINT_END:
        found = "the end of the tag";
        bytes = (int)strlen(found);
        break;
    case TRI_JINJA_T_END:
        found = "the end of the template";
        bytes = (int)strlen(found);
        break;
    default:
        break;
    }
    return tri_fail(TRI_FORMAT, "%s line %d: expected %s, found %.*s", p->jinja->what, token->line,
                    expected, bytes, found);
}

enum tri_status tri_jinja_expect(struct tri_jinja_parser *p, const char *operator_text)
{
    if (tri_jinja_skip_operator(p, operator_text))
        return TRI_OK;
    char expected[8] = {'\'', 0};
    strncat(expected, operator_text, 4);
    strcat(expected, "'");
    return tri_jinja_unexpected(p, expected);
}
