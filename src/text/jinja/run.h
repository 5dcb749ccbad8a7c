/* One rendering of a template: its state, and the parts of the interpreter that know each other. */
#ifndef TRI_TEXT_JINJA_RUN_H
#define TRI_TEXT_JINJA_RUN_H

#include "text/jinja/ast.h"
#include "text/jinja/builtin.h"
#include "text/jinja/jinja.h"

/* Text that grows in a pool. When the pool is out it stays as it was and `failed` is set. */
struct tri_jinja_buffer {
    struct tri_jinja_pool *pool;
    char *data;
    size_t bytes, capacity;
    bool failed;
};
void tri_jinja_buffer_add(struct tri_jinja_buffer *buffer, const char *data, size_t bytes);
void tri_jinja_buffer_text(struct tri_jinja_buffer *buffer, const char *text);
void tri_jinja_buffer_character(struct tri_jinja_buffer *buffer, uint32_t character);
/* The buffer as a string value; the buffer must not be used any more. */
enum tri_status tri_jinja_buffer_value(struct tri_jinja_buffer *buffer,
                                       struct tri_jinja_value *out);

struct tri_jinja_variable {
    int symbol;
    struct tri_jinja_value value;
};

struct tri_jinja_scope {
    struct tri_jinja_scope *parent;
    struct tri_jinja_variable *items;
    int count, capacity;
    bool captured; /* a macro was defined inside */
};

struct tri_jinja_loop {
    struct tri_jinja_list *items;
    int64_t index;
    int64_t depth;
    struct tri_jinja_value changed; /* the last arguments of loop.changed */
};

struct tri_jinja_macro {
    const struct tri_jinja_node *node;
    struct tri_jinja_scope *scope; /* where it was defined */
};

struct tri_jinja_bound {
    const struct tri_jinja_builtin *builtin;
    struct tri_jinja_value self;
};

struct tri_jinja_run {
    const struct tri_jinja *jinja;
    struct tri_jinja_pool pool;
    struct tri_jinja_scope *scope;
    struct tri_jinja_buffer *output; /* of the template, or of a block that is caught */
    struct tri_jinja_buffer root;
    int line;                     /* of what is being evaluated, for errors */
    int depth;                    /* of the C recursion */
    int64_t loops;                /* loops around */
    int64_t steps;                /* left */
    int64_t now;                  /* seconds since 1970 UTC */
    int64_t message;              /* of the loop over messages at hand, or -1 */
    bool generation;              /* inside {% generation %} */
    struct tri_jinja_mark *marks; /* of the output, in order */
    size_t num_marks, marks_capacity;
};

/* Fail with "WHAT line N: ". */
enum tri_status tri_jinja_fail(const struct tri_jinja_run *run, enum tri_status status,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Charge `steps` to the budget. */
enum tri_status tri_jinja_step(struct tri_jinja_run *run, int64_t steps);
/* One level deeper in C; undone by run->depth--. */
enum tri_status tri_jinja_descend(struct tri_jinja_run *run);

/* Write to the output at hand. */
enum tri_status tri_jinja_emit(struct tri_jinja_run *run, const char *data, size_t bytes);
/* A JSON value as a value; `message` is put on objects (see struct tri_jinja_dict). */
enum tri_status tri_jinja_from_json(struct tri_jinja_run *run, const json_t *json,
                                    struct tri_jinja_value *out);

/* eval.c */
enum tri_status tri_jinja_eval(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                               struct tri_jinja_value *out);
/* call.c */
enum tri_status tri_jinja_arguments(struct tri_jinja_run *run, const struct tri_jinja_node *list,
                                    int64_t count, struct tri_jinja_arguments *out);
enum tri_status tri_jinja_call(struct tri_jinja_run *run, struct tri_jinja_value callee,
                               const struct tri_jinja_arguments *arguments,
                               struct tri_jinja_value *out);
enum tri_status tri_jinja_filter(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                 struct tri_jinja_value input, struct tri_jinja_value *out);
/* The filters of a block, whose innermost one has no operand but `input`. */
enum tri_status tri_jinja_filter_chain(struct tri_jinja_run *run, const struct tri_jinja_node *node,
                                       struct tri_jinja_value input, struct tri_jinja_value *out);
/* exec.c */
enum tri_jinja_flow { TRI_JINJA_NEXT, TRI_JINJA_BREAK, TRI_JINJA_CONTINUE };
enum tri_status tri_jinja_exec(struct tri_jinja_run *run, const struct tri_jinja_node *body,
                               enum tri_jinja_flow *flow);
/* Run the body with its output caught as a string. */
enum tri_status tri_jinja_catch(struct tri_jinja_run *run, const struct tri_jinja_node *body,
                                enum tri_jinja_flow *flow, struct tri_jinja_value *out);
enum tri_status tri_jinja_assign(struct tri_jinja_run *run, const struct tri_jinja_node *target,
                                 struct tri_jinja_value value);
enum tri_status tri_jinja_set(struct tri_jinja_run *run, int symbol, struct tri_jinja_value value);
enum tri_status tri_jinja_push_scope(struct tri_jinja_run *run, struct tri_jinja_scope *parent);
/* access.c: a.name, a[index], a[start:stop:step] */
enum tri_status tri_jinja_attribute(struct tri_jinja_run *run, struct tri_jinja_value object,
                                    struct tri_jinja_value name, struct tri_jinja_value *out);
enum tri_status tri_jinja_item(struct tri_jinja_run *run, struct tri_jinja_value object,
                               struct tri_jinja_value index, struct tri_jinja_value *out);
enum tri_status tri_jinja_slice(struct tri_jinja_run *run, struct tri_jinja_value object,
                                const struct tri_jinja_value bounds[3],
                                struct tri_jinja_value *out);
/* "a.b.0": what filters take as an attribute. */
enum tri_status tri_jinja_path(struct tri_jinja_run *run, struct tri_jinja_value object,
                               struct tri_jinja_value path, struct tri_jinja_value *out);
/* Undefined under a name for errors, which may be NULL. */
struct tri_jinja_value tri_jinja_undefined_named(const struct tri_jinja_string *name);
/* Fail because `value` is undefined. */
enum tri_status tri_jinja_fail_undefined(const struct tri_jinja_run *run,
                                         struct tri_jinja_value value);
/* operators.c */
enum tri_status tri_jinja_operate(struct tri_jinja_run *run, enum tri_jinja_operator op,
                                  struct tri_jinja_value a, struct tri_jinja_value b,
                                  struct tri_jinja_value *out);
/* compare.c */
enum tri_status tri_jinja_compare(struct tri_jinja_run *run, enum tri_jinja_operator op,
                                  struct tri_jinja_value a, struct tri_jinja_value b, bool *out);
enum tri_status tri_jinja_equal(struct tri_jinja_run *run, struct tri_jinja_value a,
                                struct tri_jinja_value b, bool *out);
enum tri_status tri_jinja_less(struct tri_jinja_run *run, struct tri_jinja_value a,
                               struct tri_jinja_value b, bool *out);
enum tri_status tri_jinja_lookup(struct tri_jinja_run *run, const struct tri_jinja_dict *dict,
                                 struct tri_jinja_value key, struct tri_jinja_value **out);
/* Add or replace. */
enum tri_status tri_jinja_dict_set(struct tri_jinja_run *run, struct tri_jinja_dict *dict,
                                   struct tri_jinja_value key, struct tri_jinja_value value);
/* print.c */
enum tri_status tri_jinja_str(struct tri_jinja_run *run, struct tri_jinja_value value,
                              struct tri_jinja_buffer *out);
enum tri_status tri_jinja_repr(struct tri_jinja_run *run, struct tri_jinja_value value,
                               struct tri_jinja_buffer *out);
/* str(value) as a string value. */
enum tri_status tri_jinja_to_string(struct tri_jinja_run *run, struct tri_jinja_value value,
                                    struct tri_jinja_value *out);
char *tri_jinja_float_text(double value, char text[32]);
/* iterate.c: what a for loop would see. The items of an ITER are consumed. */
enum tri_status tri_jinja_iterate(struct tri_jinja_run *run, struct tri_jinja_value value,
                                  struct tri_jinja_list **out);
/* len() */
enum tri_status tri_jinja_length(struct tri_jinja_run *run, struct tri_jinja_value value,
                                 int64_t *out);
/* split.c */
tri_jinja_function tri_jinja_method_split, tri_jinja_method_splitlines, tri_jinja_method_partition,
    tri_jinja_method_is;
enum tri_jinja_character_class {
    TRI_JINJA_IS_DIGIT, /* decimal digits; isdigit and isnumeric would take a few more */
    TRI_JINJA_IS_ALPHA,
    TRI_JINJA_IS_ALNUM,
    TRI_JINJA_IS_SPACE,
};
/* string_methods.c, format.c, case.c */
enum tri_status tri_jinja_percent(struct tri_jinja_run *run, const struct tri_jinja_string *format,
                                  struct tri_jinja_value arguments, struct tri_jinja_value *out);
tri_jinja_function tri_jinja_method_format;
enum tri_status tri_jinja_replace(struct tri_jinja_run *run, const struct tri_jinja_string *text,
                                  const struct tri_jinja_string *from,
                                  const struct tri_jinja_string *to, int64_t count,
                                  struct tri_jinja_value *out);
enum tri_status tri_jinja_strip(struct tri_jinja_run *run, const struct tri_jinja_string *text,
                                struct tri_jinja_value characters, bool left, bool right,
                                struct tri_jinja_value *out);
/* The first place of `part` at or after byte `from`, or -1. */
int64_t tri_jinja_find_bytes(const struct tri_jinja_string *text,
                             const struct tri_jinja_string *part, size_t from);
enum tri_jinja_case {
    TRI_JINJA_UPPER,
    TRI_JINJA_LOWER,
    TRI_JINJA_CAPITALIZE,
    TRI_JINJA_TITLE,        /* the method of str */
    TRI_JINJA_TITLE_FILTER, /* the filter, which has other ends of words */
};
enum tri_status tri_jinja_case(struct tri_jinja_run *run, const struct tri_jinja_string *text,
                               enum tri_jinja_case how, struct tri_jinja_value *out);
/* text_filters.c: add a string, escaped for HTML if asked and not marked as safe. */
void tri_jinja_add_escaped(const struct tri_jinja_string *text, bool escape,
                           struct tri_jinja_buffer *out);
enum tri_status tri_jinja_mark_safe(struct tri_jinja_run *run, struct tri_jinja_value *string);
/* json.c */
tri_jinja_function tri_jinja_tojson;

/* An argument that must be an integer, a string, ...; `fallback` when it is absent. */
enum tri_status tri_jinja_int_argument(struct tri_jinja_run *run, struct tri_jinja_value value,
                                       const char *what, int64_t fallback, int64_t *out);
/* A string argument, or NULL when absent or None. */
enum tri_status tri_jinja_string_argument(struct tri_jinja_run *run, struct tri_jinja_value value,
                                          const char *what, const struct tri_jinja_string **out);

#endif
