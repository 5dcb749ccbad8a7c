/* From a YAML tree to values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/private.h"

enum { KEY_BYTES = 512, WHERE_BYTES = 512 };

/* "recipe.yml:12", or "command line". */
static const char *where_text(const struct place *place, char *out)
{
    if (place->line > 0)
        snprintf(out, WHERE_BYTES, "%.480s:%lld", place->what, (long long)place->line);
    else
        snprintf(out, WHERE_BYTES, "%.480s", place->what);
    return out;
}

static enum tri_status fail_at(enum tri_status status, const struct place *place, const char *key,
                               const char *what, const char *why)
{
    char where[WHERE_BYTES];
    return tri_fail(status, "%s: %.100s: %s%s", where_text(place, where), key, what, why);
}

static enum tri_status no_memory(void)
{
    return tri_fail(TRI_NOMEM, "out of memory while reading the recipe");
}

static enum tri_status append_text(char ***texts, size_t *count, const char *text)
{
    char **more = realloc(*texts, (*count + 1) * sizeof *more);
    if (more == NULL)
        return no_memory();
    *texts = more;
    more[*count] = strdup(text);
    if (more[*count] == NULL)
        return no_memory();
    (*count)++;
    return TRI_OK;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

/* One source of Arctic's form: {type: ..., name_or_path: a path, ...}. */
static enum tri_status read_source(struct tri_recipe *recipe, const char *key,
                                   const struct tri_yaml *source, const struct place *place,
                                   const char **path)
{
    *path = NULL;
    for (const struct tri_yaml *child = source->first; child != NULL; child = child->next) {
        struct place here = {place->what, place->line > 0 ? child->key_line : 0};
        if (strcmp(child->key, "name_or_path") == 0 && child->kind == TRI_YAML_SCALAR &&
            !tri_yaml_is_null(child)) {
            *path = child->text;
            continue;
        }
        char inner[KEY_BYTES];
        snprintf(inner, sizeof inner, "data.sources.%.256s", child->key);
        TRI_TRY(tri_recipe_read_key(recipe, inner, child, &here));
    }
    if (*path == NULL)
        return fail_at(TRI_INVALID, place, key, "a source needs name_or_path: a file or folder",
                       "");
    return TRI_OK;
}

/* The texts of a value: one of a scalar, several of a list. A pair may be "a,b". */
static enum tri_status collect_texts(struct tri_recipe *recipe, const struct tri_option *option,
                                     const char *key, const struct tri_yaml *value,
                                     const struct place *place, char ***texts, size_t *count)
{
    bool list = option->type == TRI_OPTION_STRINGS || option->type == TRI_OPTION_PAIR;
    if (value->kind == TRI_YAML_SCALAR) {
        const char *comma = strchr(value->text, ',');
        if (option->type != TRI_OPTION_PAIR || comma == NULL)
            return append_text(texts, count, value->text);
        TRI_TRY(append_text(texts, count, value->text));
        (*texts)[0][comma - value->text] = '\0';
        return append_text(texts, count, comma + 1 + strspn(comma + 1, " "));
    }
    if (value->kind == TRI_YAML_MAPPING && option->type == TRI_OPTION_STRINGS) {
        const char *path = NULL;
        TRI_TRY(read_source(recipe, key, value, place, &path));
        return append_text(texts, count, path);
    }
    if (!list || value->kind != TRI_YAML_SEQUENCE) {
        struct tri_text type = {0};
        tri_option_print_type(option, &type);
        enum tri_status st =
            fail_at(TRI_INVALID, place, key,
                    value->kind == TRI_YAML_SEQUENCE ? "it cannot be a list: expected "
                                                     : "it cannot be a mapping: expected ",
                    tri_text_data(&type));
        tri_text_free(&type);
        return st;
    }
    for (const struct tri_yaml *child = value->first; child != NULL; child = child->next) {
        struct place here = {place->what, place->line > 0 ? child->line : 0};
        const char *text = child->text;
        if (child->kind == TRI_YAML_MAPPING && option->type == TRI_OPTION_STRINGS)
            TRI_TRY(read_source(recipe, key, child, &here, &text));
        else if (child->kind != TRI_YAML_SCALAR || tri_yaml_is_null(child))
            return fail_at(TRI_INVALID, &here, key, "a list of single values is expected", "");
        TRI_TRY(append_text(texts, count, text));
    }
    return TRI_OK;
}

/* Levels of a tree; the YAML reader has bounded them. */
static int depth_of(const struct tri_yaml *node)
{
    int deepest = 0;
    for (const struct tri_yaml *child = node->first; child != NULL; child = child->next) {
        int depth = depth_of(child);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

enum { MAX_MAP_DEPTH = 16 };

/* A mapping as JSON. Its depth is kept well below the YAML reader's limit, so that the dump, which
 * nests it deeper, can be read again. */
static enum tri_status print_map(const char *key, const struct tri_yaml *value,
                                 const struct place *place, struct tri_text *out)
{
    if (value->kind != TRI_YAML_MAPPING)
        return fail_at(TRI_INVALID, place, key, "expected a mapping such as {key: value}", "");
    if (depth_of(value) > MAX_MAP_DEPTH)
        return fail_at(TRI_INVALID, place, key, "nested more than 16 levels deep", "");
    return tri_yaml_print_json(value, out);
}

/* Remember where a key was given; twice in a recipe is an error. */
static enum tri_status claim(const struct found *found, const char *key, const struct place *place)
{
    struct origin *origin = found->origin;
    bool command = place->line == 0;
    if (!command && origin->line > 0) {
        struct tri_text name = {0};
        char where[WHERE_BYTES];
        tri_option_print_name(found->section->table, found->option, &name);
        enum tri_status st = tri_fail(
            TRI_INVALID, "%s: '%.100s' sets %s again, first given as '%.100s' in line %lld",
            where_text(place, where), key, tri_text_data(&name), origin->given_as,
            (long long)origin->line);
        tri_text_free(&name);
        return st;
    }
    char *copy = strdup(key);
    if (copy == NULL)
        return no_memory();
    free(origin->given_as);
    origin->given_as = copy;
    if (!command)
        origin->line = place->line;
    return TRI_OK;
}

/* null, or auto where it is not one of the words: the default, as if the key were not there. */
static bool asks_for_default(const struct tri_option *option, const struct tri_yaml *value)
{
    if (tri_yaml_is_null(value))
        return true;
    return value->kind == TRI_YAML_SCALAR && strcasecmp(value->text, "auto") == 0 &&
           !(option->choices != NULL && strncmp(option->choices, "auto,", 5) == 0);
}

static enum tri_status set_option(struct tri_recipe *recipe, const struct found *found,
                                  const char *key, const struct tri_yaml *value,
                                  const struct place *place)
{
    const struct tri_option *option = found->option;
    TRI_TRY(claim(found, key, place));
    if (asks_for_default(option, value)) {
        found->origin->kind = FROM_DEFAULT;
        return tri_option_reset(option, found->values);
    }
    if (value->kind == TRI_YAML_SCALAR) {
        struct tri_text name = {0};
        tri_option_print_name(found->section->table, option, &name);
        const char *why = tri_foreign_refused(tri_text_data(&name), value->text);
        tri_text_free(&name);
        char what[96];
        snprintf(what, sizeof what, "'%.60s' is not supported: ", value->text);
        if (why != NULL)
            return fail_at(TRI_UNSUPPORTED, place, key, what, why);
    }

    enum tri_status st = TRI_OK;
    struct tri_text json = {0};
    char **texts = NULL;
    size_t count = 0;
    if (option->type == TRI_OPTION_MAP) {
        TRI_TRY_GOTO(st, print_map(key, value, place, &json), free_all);
        TRI_TRY_GOTO(st, append_text(&texts, &count, tri_text_data(&json)), free_all);
    } else {
        TRI_TRY_GOTO(st, collect_texts(recipe, option, key, value, place, &texts, &count),
                     free_all);
    }
    st = tri_option_set(option, (const char *const *)texts, count, found->values);
    if (st != TRI_OK) {
        char where[WHERE_BYTES];
        tri_error_prefix("%s: %.100s", where_text(place, where), key);
    } else {
        found->origin->kind = place->line > 0 ? FROM_RECIPE : FROM_COMMAND;
    }
free_all:
    free_texts(texts, count);
    tri_text_free(&json);
    return st;
}

/* A key of another tool: refuse it, or list it as one without effect. */
static enum tri_status read_foreign(struct tri_recipe *recipe, const struct foreign *foreign,
                                    const char *key, const struct tri_yaml *value,
                                    const struct place *place)
{
    if (!tri_foreign_is_off(foreign, value))
        return fail_at(TRI_UNSUPPORTED, place, key, "not supported: ", foreign->why);
    char where[WHERE_BYTES];
    struct origins *origins = recipe->origins;
    tri_text_printf(&origins->ignored, "%s: %.100s: no effect%s%s\n", where_text(place, where), key,
                    strcmp(foreign->off, "*") == 0 ? ": " : "",
                    strcmp(foreign->off, "*") == 0 ? foreign->why : "");
    return origins->ignored.failed ? no_memory() : TRI_OK;
}

static enum tri_status read_mapping(struct tri_recipe *recipe, const char *prefix,
                                    const struct tri_yaml *mapping, const struct place *place)
{
    for (const struct tri_yaml *child = mapping->first; child != NULL; child = child->next) {
        struct place here = {place->what, place->line > 0 ? child->key_line : 0};
        char key[KEY_BYTES];
        int bytes =
            snprintf(key, sizeof key, "%s%s%s", prefix, *prefix == '\0' ? "" : ".", child->key);
        if (bytes >= KEY_BYTES)
            return fail_at(TRI_INVALID, &here, key, "the key is too long", "");
        TRI_TRY(tri_recipe_read_key(recipe, key, child, &here));
    }
    return TRI_OK;
}

enum tri_status tri_recipe_read_key(struct tri_recipe *recipe, const char *full_key,
                                    const struct tri_yaml *value, const struct place *place)
{
    /* DeepSpeed's keys mean the same under "deepspeed" as on their own. */
    const char *key = full_key;
    bool mapping = value->kind == TRI_YAML_MAPPING;
    if (strncmp(key, "deepspeed.", 10) == 0)
        key += 10;
    else if (strcmp(key, "deepspeed") == 0 && mapping)
        return read_mapping(recipe, key, value, place);

    struct found found;
    if (tri_recipe_find(recipe, key, &found) &&
        (!mapping || found.option->type == TRI_OPTION_MAP ||
         found.option->type == TRI_OPTION_STRINGS || !tri_recipe_is_prefix(key)))
        return set_option(recipe, &found, key, value, place);

    const struct foreign *foreign = tri_foreign_find(key);
    bool wildcard = foreign != NULL && foreign->key[strlen(foreign->key) - 1] == '*';
    if (foreign != NULL && !(wildcard && mapping))
        return read_foreign(recipe, foreign, full_key, value, place);

    char where[WHERE_BYTES];
    if (!tri_recipe_is_prefix(key) && !wildcard)
        return tri_recipe_unknown_key(where_text(place, where), full_key);
    if (mapping)
        return read_mapping(recipe, key, value, place);
    /* Arctic writes a list of checkpoint engines; ours is one engine. */
    if (value->kind == TRI_YAML_SEQUENCE && strcmp(key, "checkpoint") == 0 && value->count <= 1) {
        if (value->count == 0)
            return TRI_OK;
        if (value->first->kind == TRI_YAML_MAPPING)
            return read_mapping(recipe, key, value->first, place);
    }
    if (tri_yaml_is_null(value))
        return TRI_OK;
    return fail_at(TRI_INVALID, place, key,
                   strcmp(key, "checkpoint") == 0
                       ? "expected one mapping (one folder holds the model and what resuming needs)"
                       : "expected a mapping of keys",
                   "");
}

enum tri_status tri_recipe_read_tree(struct tri_recipe *recipe, const struct tri_yaml *root,
                                     const char *what)
{
    struct place place = {what, 1};
    return read_mapping(recipe, "", root, &place);
}
