/* Filters, tests, global functions and methods: one table entry and one C function each. */
#ifndef TRI_TEXT_JINJA_BUILTIN_H
#define TRI_TEXT_JINJA_BUILTIN_H

#include "text/jinja/value.h"

struct tri_jinja_run;

/* The arguments of a call. As a caller gave them: first those by position, then those by name. As
 * a function with a parameter list sees them: one value for each parameter, MISSING if absent. */
struct tri_jinja_arguments {
    struct tri_jinja_value *values;
    const struct tri_jinja_string **names; /* NULL for one by position; unused once bound */
    int count;
    int positional;
    int which; /* of the builtin, for functions that serve several */
};

/* `self` is what a filter or test is applied to, or the object of a method. */
typedef enum tri_status tri_jinja_function(struct tri_jinja_run *run, struct tri_jinja_value self,
                                           const struct tri_jinja_arguments *arguments,
                                           struct tri_jinja_value *out);

struct tri_jinja_builtin {
    const char *name;
    tri_jinja_function *call; /* NULL: it exists in Python, but is not supported */
    const char *parameters;   /* "chars,count"; NULL: any, not bound */
    int required;             /* how many of them must be given */
    int which;
};

struct tri_jinja_builtins {
    const struct tri_jinja_builtin *items;
    size_t count;
};

/* The tables; filters are spread over several files. */
extern const struct tri_jinja_builtins tri_jinja_text_filters;
extern const struct tri_jinja_builtins tri_jinja_number_filters;
extern const struct tri_jinja_builtins tri_jinja_list_filters;
extern const struct tri_jinja_builtins tri_jinja_select_filters;
extern const struct tri_jinja_builtins tri_jinja_tests;
extern const struct tri_jinja_builtins tri_jinja_globals;
extern const struct tri_jinja_builtins tri_jinja_string_methods;
extern const struct tri_jinja_builtins tri_jinja_list_methods;
extern const struct tri_jinja_builtins tri_jinja_dict_methods;

const struct tri_jinja_builtin *tri_jinja_find(struct tri_jinja_builtins table, const char *name,
                                               size_t bytes);
const struct tri_jinja_builtin *tri_jinja_find_filter(const char *name, size_t bytes);
const struct tri_jinja_builtin *tri_jinja_find_test(const char *name, size_t bytes);
/* A method of this value's type, or NULL. */
const struct tri_jinja_builtin *tri_jinja_find_method(struct tri_jinja_value self, const char *name,
                                                      size_t bytes);

/* Call with arguments as the caller gave them: bind them to the parameters first. */
enum tri_status tri_jinja_call_builtin(struct tri_jinja_run *run,
                                       const struct tri_jinja_builtin *builtin,
                                       struct tri_jinja_value self,
                                       const struct tri_jinja_arguments *arguments,
                                       struct tri_jinja_value *out);

#endif
