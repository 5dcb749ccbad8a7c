/* What the files of this folder share. */
#ifndef TRI_RECIPE_PRIVATE_H
#define TRI_RECIPE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/option.h"
#include "base/text.h"
#include "base/yaml.h"
#include "recipe/recipe.h"

/* The component tables and where their structs lie in struct tri_recipe. */
struct section {
    const struct tri_option_table *table;
    size_t offset;
};
enum { NUM_SECTIONS = 7 };
extern const struct section tri_recipe_sections[NUM_SECTIONS];

enum origin_kind {
    FROM_DEFAULT,
    FROM_RECIPE,  /* file and line */
    FROM_COMMAND, /* the command line */
    FROM_NOTE,    /* the model, the machine, or another key: `note` says which */
};

struct origin {
    enum origin_kind kind;
    int64_t line;       /* of the recipe; 0: the recipe does not name the key */
    char *given_as;     /* the name that was used there or on the command line */
    char *note;         /* FROM_NOTE: where from */
    char *effective;    /* value that the model or machine put in place of ours; NULL: ours */
    const char *remark; /* said about the value in the dump; NULL: nothing */
};

/* Behind struct tri_recipe.origins. */
struct origins {
    struct origin *of; /* one for each option, all tables in a row */
    size_t count;
    struct tri_text ignored; /* "# ..." lines: keys that were read but do nothing */
    struct tri_text facts;   /* "# ..." lines: notes that are not about a key */
};

/* One option, found. */
struct found {
    const struct section *section;
    const struct tri_option *option;
    void *values; /* the component's struct in this recipe */
    struct origin *origin;
};

/* Find an option by its full name or one of its aliases. */
bool tri_recipe_find(const struct tri_recipe *recipe, const char *key, struct found *out);

/* Visit all options in order: `index` from 0. False behind the last. */
bool tri_recipe_at(const struct tri_recipe *recipe, size_t index, struct found *out);

/* Does an option, an alias or a foreign key begin with "key."? */
bool tri_recipe_is_prefix(const char *key);

/* Append the value in force: that of the model or the machine where it could stand in a recipe
 * (then true), else ours. */
bool tri_recipe_print_value(const struct found *found, struct tri_text *out);

/* Is `name` the full name of the option, or one of its aliases? */
bool tri_recipe_is_name(const struct tri_option_table *table, const struct tri_option *option,
                        const char *name);

/* Keys of other tools that we know and do not honour. */
struct foreign {
    const char *key; /* with ".*" behind it: everything below */
    const char *off; /* values that ask for nothing, by commas; "*": no value has an effect */
    const char *why; /* it is not there and what to do, or why it needs no setting */
};
const struct foreign *tri_foreign_find(const char *key);
const struct foreign *tri_foreign_at(size_t index); /* NULL behind the last */
bool tri_foreign_is_off(const struct foreign *foreign, const struct tri_yaml *value);
/* Refuse values of our own keys that other tools allow. NULL: not refused; else why. */
const char *tri_foreign_refused(const char *key, const char *value);

/* Where a value stands, for messages and the dump. */
struct place {
    const char *what; /* recipe file, or "command line" */
    int64_t line;     /* 0 on the command line */
};

/* Take over a whole tree, or the value of one key. `key` is the full name as written. */
enum tri_status tri_recipe_read_tree(struct tri_recipe *recipe, const struct tri_yaml *root,
                                     const char *what);
enum tri_status tri_recipe_read_key(struct tri_recipe *recipe, const char *key,
                                    const struct tri_yaml *value, const struct place *place);

/* Take over "--key value" pairs. */
enum tri_status tri_recipe_read_overrides(struct tri_recipe *recipe, int count,
                                          char *const *overrides);

/* Checks and consequences across keys. */
enum tri_status tri_recipe_validate(struct tri_recipe *recipe);

#endif
