/* The tree of a parsed template. Nodes live in the template's pool and never change after parsing,
 * so that any number of threads may render one template. */
#ifndef TRI_TEXT_JINJA_AST_H
#define TRI_TEXT_JINJA_AST_H

#include "text/jinja/value.h"

struct tri_jinja_builtin;

enum tri_jinja_node_kind {
    /* Expressions. `list` is a chain by `next`. */
    TRI_JINJA_N_CONSTANT,  /* value */
    TRI_JINJA_N_NAME,      /* symbol */
    TRI_JINJA_N_LIST,      /* list */
    TRI_JINJA_N_TUPLE,     /* list; also a target of several names */
    TRI_JINJA_N_DICT,      /* list: key, value, key, value, ... */
    TRI_JINJA_N_ATTRIBUTE, /* a.value */
    TRI_JINJA_N_ITEM,      /* a[b] */
    TRI_JINJA_N_SLICE,     /* a[list], a chain of three; an absent bound is the constant None */
    TRI_JINJA_N_CALL,      /* a(list of arguments) */
    TRI_JINJA_N_FILTER,    /* a | builtin(list of arguments); a may be NULL in a filter block */
    TRI_JINJA_N_TEST,      /* a is builtin(list of arguments) */
    TRI_JINJA_N_ARGUMENT,  /* a, by name if value is a string */
    TRI_JINJA_N_NEGATIVE,  /* -a */
    TRI_JINJA_N_POSITIVE,  /* +a */
    TRI_JINJA_N_NOT,       /* not a */
    TRI_JINJA_N_AND,       /* a and b */
    TRI_JINJA_N_OR,        /* a or b */
    TRI_JINJA_N_BINARY,    /* a op b */
    TRI_JINJA_N_COMPARE,   /* a op operand op operand ... (list of OPERAND) */
    TRI_JINJA_N_OPERAND,   /* op, a */
    TRI_JINJA_N_CONCAT,    /* list joined by ~ */
    TRI_JINJA_N_CHOICE,    /* b if a else c; c may be NULL */
    /* Statements. Bodies are chains by `next`. */
    TRI_JINJA_N_DATA,       /* value, printed as it is */
    TRI_JINJA_N_PRINT,      /* a */
    TRI_JINJA_N_IF,         /* a: condition, b: body, c: else */
    TRI_JINJA_N_FOR,        /* list: target, iterable and, maybe, condition; b: body, c: else */
    TRI_JINJA_N_SET,        /* a: target, b: value */
    TRI_JINJA_N_SET_BLOCK,  /* a: target, b: body, c: chain of filters or NULL */
    TRI_JINJA_N_MACRO,      /* symbol, list of PARAMETER, b: body */
    TRI_JINJA_N_PARAMETER,  /* symbol, value: its name; a: default or NULL */
    TRI_JINJA_N_FILTERED,   /* b: body, c: chain of filters */
    TRI_JINJA_N_WITH,       /* list: target, value, ...; b: body */
    TRI_JINJA_N_GENERATION, /* b: body */
    TRI_JINJA_N_BREAK,
    TRI_JINJA_N_CONTINUE,
};

enum tri_jinja_operator {
    TRI_JINJA_ADD,
    TRI_JINJA_SUB,
    TRI_JINJA_MUL,
    TRI_JINJA_DIV,
    TRI_JINJA_FLOORDIV,
    TRI_JINJA_MOD,
    TRI_JINJA_POW,
    TRI_JINJA_EQ,
    TRI_JINJA_NE,
    TRI_JINJA_LT,
    TRI_JINJA_LE,
    TRI_JINJA_GT,
    TRI_JINJA_GE,
    TRI_JINJA_IN,
    TRI_JINJA_NOT_IN,
};

struct tri_jinja_node {
    enum tri_jinja_node_kind kind;
    enum tri_jinja_operator op;
    int line;
    int symbol; /* index of a name in the template's table */
    struct tri_jinja_node *a, *b, *c;
    struct tri_jinja_node *list;
    struct tri_jinja_node *next;
    int64_t count; /* of `list` */
    const struct tri_jinja_builtin *builtin;
    struct tri_jinja_value value;
};

/* The symbol that every template has. */
enum { TRI_JINJA_SYMBOL_LOOP = 0 };

/* A parsed template. */
struct tri_jinja {
    struct tri_jinja_pool pool;
    const char *what;
    struct tri_jinja_node *body;
    struct tri_jinja_value *symbols; /* strings */
    int num_symbols;
    bool has_generation; /* {% generation %} is somewhere */
};

#endif
