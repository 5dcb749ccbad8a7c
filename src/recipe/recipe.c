#include "recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "recipe/private.h"

static enum tri_status no_memory(void)
{
    return tri_fail(TRI_NOMEM, "out of memory while reading the recipe");
}

void tri_recipe_close(struct tri_recipe *recipe)
{
    if (recipe == NULL)
        return;
    struct origins *origins = recipe->origins;
    for (int i = 0; i < NUM_SECTIONS; i++)
        tri_option_clear(tri_recipe_sections[i].table,
                         (char *)recipe + tri_recipe_sections[i].offset);
    for (size_t i = 0; origins != NULL && i < origins->count; i++) {
        free(origins->of[i].given_as);
        free(origins->of[i].note);
        free(origins->of[i].effective);
    }
    if (origins != NULL) {
        tri_text_free(&origins->ignored);
        tri_text_free(&origins->facts);
        free(origins->of);
    }
    free(origins);
    free(recipe->path);
    free(recipe);
}

/* A recipe of defaults. */
static enum tri_status create(const char *path, struct tri_recipe **out)
{
    size_t count = 0;
    for (int i = 0; i < NUM_SECTIONS; i++)
        count += tri_recipe_sections[i].table->count;
    struct tri_recipe *recipe = calloc(1, sizeof *recipe);
    struct origins *origins = calloc(1, sizeof *origins);
    struct origin *of = calloc(count, sizeof *of);
    char *copy = strdup(path);
    if (recipe == NULL || origins == NULL || of == NULL || copy == NULL) {
        free(recipe);
        free(origins);
        free(of);
        free(copy);
        return no_memory();
    }
    *origins = (struct origins){.of = of, .count = count};
    recipe->origins = origins;
    recipe->path = copy;
    for (int i = 0; i < NUM_SECTIONS; i++) {
        enum tri_status st = tri_option_defaults(tri_recipe_sections[i].table,
                                                 (char *)recipe + tri_recipe_sections[i].offset);
        if (st != TRI_OK) {
            tri_recipe_close(recipe);
            return st;
        }
    }
    *out = recipe;
    return TRI_OK;
}

static enum tri_status from_tree(const char *what, const struct tri_yaml *root, int num_overrides,
                                 char *const *overrides, struct tri_recipe **out)
{
    struct tri_recipe *recipe = NULL;
    TRI_TRY(create(what, &recipe));
    enum tri_status st = tri_recipe_read_tree(recipe, root, what);
    if (st == TRI_OK)
        st = tri_recipe_read_overrides(recipe, num_overrides, overrides);
    if (st == TRI_OK)
        st = tri_recipe_validate(recipe);
    if (st != TRI_OK) {
        tri_recipe_close(recipe);
        return st;
    }
    *out = recipe;
    return TRI_OK;
}

enum tri_status tri_recipe_open(const char *path, int num_overrides, char *const *overrides,
                                struct tri_recipe **out)
{
    struct tri_yaml *root = NULL;
    TRI_TRY(tri_yaml_load(path, &root));
    enum tri_status st = from_tree(path, root, num_overrides, overrides, out);
    tri_yaml_free(root);
    return st;
}

enum tri_status tri_recipe_parse(const char *what, const char *text, size_t bytes,
                                 int num_overrides, char *const *overrides, struct tri_recipe **out)
{
    struct tri_yaml *root = NULL;
    TRI_TRY(tri_yaml_parse(what, text, bytes, &root));
    enum tri_status st = from_tree(what, root, num_overrides, overrides, out);
    tri_yaml_free(root);
    return st;
}

enum tri_status tri_recipe_note(struct tri_recipe *recipe, const char *key, const char *value,
                                const char *origin)
{
    struct found found;
    struct origins *origins = recipe->origins;
    if (!tri_recipe_find(recipe, key, &found)) {
        tri_text_printf(&origins->facts, "%s: %s (%s)\n", key, value, origin);
        return origins->facts.failed ? no_memory() : TRI_OK;
    }
    char *effective = strdup(value);
    char *note = strdup(origin);
    if (effective == NULL || note == NULL) {
        free(effective);
        free(note);
        return no_memory();
    }
    free(found.origin->effective);
    free(found.origin->note);
    found.origin->effective = effective;
    found.origin->note = note;
    found.origin->kind = FROM_NOTE;
    return TRI_OK;
}

static bool in_hash(const struct tri_option *option)
{
    return (option->flags & TRI_OPTION_NUMBERS) != 0;
}

uint64_t tri_recipe_hash(const struct tri_recipe *recipe)
{
    uint64_t hash = TRI_HASH_START;
    struct found found;
    for (size_t i = 0; tri_recipe_at(recipe, i, &found); i++) {
        if (!in_hash(found.option))
            continue;
        struct tri_text text = {0};
        tri_option_print_name(found.section->table, found.option, &text);
        tri_text_add(&text, "=", 1);
        tri_recipe_print_value(&found, &text);
        hash = tri_hash_bytes(hash, tri_text_data(&text), text.bytes);
        tri_text_free(&text);
    }
    return hash;
}

enum tri_status tri_recipe_facts(const struct tri_recipe *recipe, struct tri_text *out)
{
    struct found found;
    for (size_t i = 0; tri_recipe_at(recipe, i, &found); i++) {
        if (found.option->flags & TRI_OPTION_LOCAL)
            continue;
        tri_option_print_name(found.section->table, found.option, out);
        tri_text_add(out, "", 1);
        tri_recipe_print_value(&found, out);
        tri_text_add(out, "", 1);
    }
    return out->failed ? no_memory() : TRI_OK;
}

enum tri_status tri_recipe_check_same(const struct tri_recipe *before, const struct tri_recipe *now)
{
    struct found old, new;
    enum tri_status st = TRI_OK;
    for (size_t i = 0; st == TRI_OK && tri_recipe_at(before, i, &old); i++) {
        tri_recipe_at(now, i, &new);
        if (!in_hash(old.option) || (old.option->flags & TRI_OPTION_MUTABLE))
            continue;
        struct tri_text name = {0}, was = {0}, is = {0};
        tri_option_print_name(old.section->table, old.option, &name);
        tri_recipe_print_value(&old, &was);
        tri_recipe_print_value(&new, &is);
        if (name.failed || was.failed || is.failed)
            st = no_memory();
        else if (strcmp(tri_text_data(&was), tri_text_data(&is)) != 0)
            st =
                tri_fail(TRI_INVALID,
                         "%s: %s was %.100s when the run was saved and is %.100s now; set it back, "
                         "or start anew in another checkpoint.output_dir",
                         now->path, tri_text_data(&name), tri_text_data(&was), tri_text_data(&is));
        tri_text_free(&name);
        tri_text_free(&was);
        tri_text_free(&is);
    }
    return st;
}
