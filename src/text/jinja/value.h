/* Values of the template language: Python's, as far as templates can see them.
 *
 * Values are immutable once a template can see them (namespaces excepted), so they are passed by
 * value and shared without copies. Whatever they point to lives in a pool. */
#ifndef TRI_TEXT_JINJA_VALUE_H
#define TRI_TEXT_JINJA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/jinja/pool.h"

enum tri_jinja_kind {
    TRI_JINJA_MISSING, /* an argument that was not given; never seen by a template */
    TRI_JINJA_UNDEFINED,
    TRI_JINJA_NONE,
    TRI_JINJA_BOOL,
    TRI_JINJA_INT,
    TRI_JINJA_FLOAT,
    TRI_JINJA_STRING,
    TRI_JINJA_LIST,
    TRI_JINJA_TUPLE,
    TRI_JINJA_VIEW,  /* keys(), values(), items(): can be counted and iterated, not indexed */
    TRI_JINJA_ITER,  /* what map, select, reverse give: can be iterated once */
    TRI_JINJA_RANGE, /* a list of integers that prints as range(a, b) */
    TRI_JINJA_DICT,
    TRI_JINJA_NAMESPACE,
    TRI_JINJA_LOOP,
    TRI_JINJA_MACRO,
    TRI_JINJA_BUILTIN, /* a global function, or a method bound to its object */
    TRI_JINJA_CYCLER,
    TRI_JINJA_JOINER,
};

/* UTF-8, not NUL-terminated. */
struct tri_jinja_string {
    const char *data;
    size_t bytes;
    int64_t length; /* characters */
    bool markup;    /* marked by the filter safe or escape: + escapes what is joined to it */
};

struct tri_jinja_value {
    enum tri_jinja_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const struct tri_jinja_string *string; /* UNDEFINED: its name, for errors; may be NULL */
        struct tri_jinja_list *list;           /* LIST, TUPLE, VIEW, ITER, RANGE */
        struct tri_jinja_dict *dict;           /* DICT, NAMESPACE */
        struct tri_jinja_loop *loop;
        struct tri_jinja_macro *macro;
        struct tri_jinja_bound *bound; /* BUILTIN */
        struct tri_jinja_cycler *cycler;
    } as;
};

struct tri_jinja_list {
    struct tri_jinja_value *items;
    int64_t count, capacity;
    int64_t next;              /* ITER: items before it are consumed */
    int64_t start, stop, step; /* RANGE: for printing */
    const char *name;          /* VIEW, ITER: Python's name of it, for printing */
};

struct tri_jinja_pair {
    struct tri_jinja_value key, value;
};

struct tri_jinja_dict {
    struct tri_jinja_pair *pairs; /* in order of insertion */
    int64_t count, capacity;
    /* The message of a chat that this object is, or -1: whatever a loop over messages writes is
     * ascribed to the message at hand. */
    int64_t message;
};

struct tri_jinja_cycler {
    struct tri_jinja_list *items; /* NULL for a joiner */
    struct tri_jinja_value separator;
    int64_t at;
};

/* Constructors. Those that take memory return TRI_NOMEM. */
struct tri_jinja_value tri_jinja_none(void);
struct tri_jinja_value tri_jinja_bool(bool value);
struct tri_jinja_value tri_jinja_int(int64_t value);
struct tri_jinja_value tri_jinja_float(double value);
struct tri_jinja_value tri_jinja_undefined(void);

/* Copies the text; it must be valid UTF-8. */
enum tri_status tri_jinja_string(struct tri_jinja_pool *pool, const char *data, size_t bytes,
                                 struct tri_jinja_value *out);
/* Refers to the text, which must live as long as the pool. */
enum tri_status tri_jinja_string_ref(struct tri_jinja_pool *pool, const char *data, size_t bytes,
                                     struct tri_jinja_value *out);
/* A string of one literal without characters over 0x7F. */
enum tri_status tri_jinja_literal(struct tri_jinja_pool *pool, const char *text,
                                  struct tri_jinja_value *out);

/* `kind` is one of LIST, TUPLE, VIEW, ITER, RANGE. */
enum tri_status tri_jinja_list(struct tri_jinja_pool *pool, enum tri_jinja_kind kind,
                               int64_t capacity, struct tri_jinja_value *out);
enum tri_status tri_jinja_list_add(struct tri_jinja_pool *pool, struct tri_jinja_list *list,
                                   struct tri_jinja_value item);
enum tri_status tri_jinja_pair(struct tri_jinja_pool *pool, struct tri_jinja_value first,
                               struct tri_jinja_value second, struct tri_jinja_value *out);

/* `kind` is DICT or NAMESPACE. */
enum tri_status tri_jinja_dict(struct tri_jinja_pool *pool, enum tri_jinja_kind kind,
                               int64_t capacity, struct tri_jinja_value *out);
/* Add a pair whose key is known to be new. */
enum tri_status tri_jinja_dict_add(struct tri_jinja_pool *pool, struct tri_jinja_dict *dict,
                                   struct tri_jinja_value key, struct tri_jinja_value value);

/* The value of a string key, or NULL. */
struct tri_jinja_value *tri_jinja_dict_find(const struct tri_jinja_dict *dict, const char *key,
                                            size_t bytes);

bool tri_jinja_string_is(const struct tri_jinja_string *string, const char *text);
bool tri_jinja_same_string(const struct tri_jinja_string *a, const struct tri_jinja_string *b);

/* Is it LIST, TUPLE, VIEW, ITER or RANGE? */
bool tri_jinja_is_listlike(struct tri_jinja_value value);
/* bool, int or float, as Python's numbers.Number. */
bool tri_jinja_is_number(struct tri_jinja_value value);
bool tri_jinja_is_integer(struct tri_jinja_value value); /* bool or int */
int64_t tri_jinja_as_int(struct tri_jinja_value value);  /* of bool or int */
double tri_jinja_as_float(struct tri_jinja_value value); /* of a number */

/* Python's truth: empty, zero, None and undefined are false. */
bool tri_jinja_truth(struct tri_jinja_value value);

/* Python's name of the type, for errors. */
const char *tri_jinja_type_name(struct tri_jinja_value value);

#endif
