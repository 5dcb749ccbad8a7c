/* Recursive descent over the tokens; the grammar is that of Jinja 3.1. */
#ifndef TRI_TEXT_JINJA_PARSER_H
#define TRI_TEXT_JINJA_PARSER_H

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

struct tri_jinja_parser {
    struct tri_jinja *jinja; /* being built */
    struct tri_jinja_token *token;
    int depth;      /* of the recursion */
    int loop_depth; /* loops around, up to the next macro or block that is a function of its own */
    int conditions; /* ifs around */
    int symbol_capacity;
};

/* Parse the tokens into jinja->body. */
enum tri_status tri_jinja_parse(struct tri_jinja *jinja, struct tri_jinja_tokens tokens);

/* Parts of the parser that know each other. */

/* An expression; without `choice` it ends before an inline if. */
enum tri_status tri_jinja_parse_expression(struct tri_jinja_parser *p, bool choice,
                                           struct tri_jinja_node **out);
/* One expression, or several with commas: a tuple. */
enum tri_status tri_jinja_parse_tuple(struct tri_jinja_parser *p, bool choice,
                                      struct tri_jinja_node **out);
/* Names with commas, or (when `attribute` is allowed) name.attribute. */
enum tri_status tri_jinja_parse_target(struct tri_jinja_parser *p, bool attribute,
                                       struct tri_jinja_node **out);
/* "| filter | filter(...)" onto `node`, which may be NULL; `first`: the name follows at once. */
enum tri_status tri_jinja_parse_filters(struct tri_jinja_parser *p, bool first,
                                        struct tri_jinja_node *node, struct tri_jinja_node **out);

/* A signed literal, name or bracket with all that follows it. */
enum tri_status tri_jinja_parse_unary(struct tri_jinja_parser *p, bool with_filters,
                                      struct tri_jinja_node **out);

/* Put a node at the end of its owner's list. */
void tri_jinja_append(struct tri_jinja_node *owner, struct tri_jinja_node ***tail,
                      struct tri_jinja_node *node);
enum tri_status tri_jinja_binary(struct tri_jinja_parser *p, enum tri_jinja_node_kind kind,
                                 enum tri_jinja_operator op, struct tri_jinja_node *a,
                                 struct tri_jinja_node *b, struct tri_jinja_node **out);
enum tri_status tri_jinja_node(struct tri_jinja_parser *p, enum tri_jinja_node_kind kind,
                               struct tri_jinja_node **out);
enum tri_status tri_jinja_symbol(struct tri_jinja_parser *p, const char *name, size_t bytes,
                                 int *out);
bool tri_jinja_at_operator(const struct tri_jinja_parser *p, const char *text);
bool tri_jinja_at_name(const struct tri_jinja_parser *p, const char *name);
/* Step over the token if it is this operator or this name. */
bool tri_jinja_skip_operator(struct tri_jinja_parser *p, const char *text);
bool tri_jinja_skip_name(struct tri_jinja_parser *p, const char *name);
enum tri_status tri_jinja_expect(struct tri_jinja_parser *p, const char *operator_text);
/* "WHAT line N: expected X, found Y". */
enum tri_status tri_jinja_unexpected(const struct tri_jinja_parser *p, const char *expected);

/* Count one level of recursion; the caller undoes it with p->depth--. */
enum tri_status tri_jinja_enter(struct tri_jinja_parser *p);

#endif
