/* Template text to tokens, with the white space rules that Transformers sets (trim_blocks and
 * lstrip_blocks on, one final line end dropped). */
#ifndef TRI_TEXT_JINJA_LEXER_H
#define TRI_TEXT_JINJA_LEXER_H

#include "text/jinja/value.h"

enum tri_jinja_token_kind {
    TRI_JINJA_T_END, /* of the template */
    TRI_JINJA_T_DATA,
    TRI_JINJA_T_BLOCK_BEGIN,
    TRI_JINJA_T_BLOCK_END,
    TRI_JINJA_T_PRINT_BEGIN,
    TRI_JINJA_T_PRINT_END,
    TRI_JINJA_T_NAME,
    TRI_JINJA_T_CONSTANT, /* a string, an integer or a float, in `value` */
    TRI_JINJA_T_OPERATOR, /* its one or two characters are `data` */
};

struct tri_jinja_token {
    enum tri_jinja_token_kind kind;
    int line;
    const char *data; /* of DATA, NAME and OPERATOR */
    size_t bytes;
    struct tri_jinja_value value;
};

struct tri_jinja_tokens {
    struct tri_jinja_token *items; /* the last one is END */
    int64_t count;
};

/* `what` names the template in errors. The tokens live in `pool`. */
enum tri_status tri_jinja_lex(struct tri_jinja_pool *pool, const char *what, const char *text,
                              size_t bytes, struct tri_jinja_tokens *out);

/* The constants, used by the lexer: `data` starts at the literal, *bytes becomes its length. */
enum tri_status tri_jinja_lex_string(struct tri_jinja_pool *pool, const char *what, int line,
                                     const char *data, size_t *bytes, struct tri_jinja_value *out);
enum tri_status tri_jinja_lex_number(const char *what, int line, const char *data, size_t *bytes,
                                     struct tri_jinja_value *out);

#endif
