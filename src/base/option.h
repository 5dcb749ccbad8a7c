/* Tables of options: the one source of names, ranges, defaults and explanations.
 *
 * A component describes the members of its options struct in one table. Parsing, range checks, the
 * command line, --help, the effective dump and the reference page all come from these tables. */
#ifndef TRI_BASE_OPTION_H
#define TRI_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum tri_option_type {
    TRI_OPTION_BOOL,    /* bool: true, false (also yes, no, on, off) */
    TRI_OPTION_INT,     /* int64_t: a human number without a fraction */
    TRI_OPTION_NUMBER,  /* double: a human number, finite */
    TRI_OPTION_STRING,  /* char *, NULL when unset */
    TRI_OPTION_CHOICE,  /* int: the index of a word of `choices` */
    TRI_OPTION_STRINGS, /* char ** with its int64_t count at `second`; NULL when empty */
    TRI_OPTION_PAIR,    /* double at `offset` and another one at `second` */
    TRI_OPTION_MAP,     /* char *: JSON text of an object, NULL when unset */
};

enum tri_option_flag {
    TRI_OPTION_REQUIRED = 1, /* there is no default: a recipe must give it */
    TRI_OPTION_MUTABLE = 2,  /* may differ when a run is resumed */
    TRI_OPTION_NUMBERS = 4,  /* the trained numbers depend on it: it enters the recipe's hash */
    TRI_OPTION_LOCAL = 8,    /* may differ between the ranks of a run */
};

struct tri_option {
    const char *name;    /* inside the section; dots allowed ("rope.factor") */
    const char *aliases; /* full names other tools use, separated by commas; NULL: none */
    enum tri_option_type type;
    size_t offset; /* of the member in the struct */
    size_t second; /* STRINGS, PAIR: of the other member */
    const char
        *fallback; /* default as text; a pair's two numbers by a comma; NULL: unset or zero */
    /* Allowed range, both ends included; equal: any value. STRINGS: texts are numbers in it, which
     * the component checks. */
    double min, max;
    /* Allowed words of a CHOICE (in the order of its enum), a STRING or each of STRINGS, separated
     * by commas.
     * A word may have synonyms: "adamw=adam=fusedadam" reads all three and stores "adamw".
     * A last word of star, slash, star lets a STRING be any other name with a slash (a hub name).
     */
    const char *choices;
    const char *doc; /* what it does, in one or two sentences */
    unsigned flags;  /* of enum tri_option_flag */
};

struct tri_option_table {
    const char *section; /* "" for the top level, else "model", "data", ... */
    const struct tri_option *options;
    size_t count;
};

/* The option of the table that has this name inside its section; NULL: none has. */
const struct tri_option *tri_option_find(const struct tri_option_table *table, const char *name);

/* Set one member to its default. */
enum tri_status tri_option_reset(const struct tri_option *option, void *values);

/* Set every member of `values` to its default. `values` holds nothing to free before. */
enum tri_status tri_option_defaults(const struct tri_option_table *table, void *values);

/* Free every string and list of `values`. */
void tri_option_clear(const struct tri_option_table *table, void *values);

/* Set one member from its text, or from `count` texts (STRINGS any number, PAIR two, else one).
 * The error names the type, range or words that were expected, but not the key: callers prefix
 * file, line and key. On failure the old value stays. */
enum tri_status tri_option_set(const struct tri_option *option, const char *const *texts,
                               size_t count, void *values);

/* Append the value as YAML that tri_option_set reads back exactly ("null" when unset). */
void tri_option_print(const struct tri_option *option, const void *values, struct tri_text *out);

/* Append the type and range for people: "integer >= 0", "one of full, selective, none". */
void tri_option_print_type(const struct tri_option *option, struct tri_text *out);

/* Append the full name: "section.name". */
void tri_option_print_name(const struct tri_option_table *table, const struct tri_option *option,
                           struct tri_text *out);

#endif
