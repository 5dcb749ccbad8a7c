/* The joined tables: finding a key by any of its names. */
#include <stdlib.h>
#include <string.h>

#include "recipe/private.h"

const struct section tri_recipe_sections[NUM_SECTIONS] = {
    {&tri_train_option_table, offsetof(struct tri_recipe, train)},
    {&tri_pass_option_table, offsetof(struct tri_recipe, pass)},
    {&tri_model_option_table, offsetof(struct tri_recipe, model)},
    {&tri_data_option_table, offsetof(struct tri_recipe, data)},
    {&tri_optim_option_table, offsetof(struct tri_recipe, optimizer)},
    {&tri_schedule_option_table, offsetof(struct tri_recipe, scheduler)},
    {&tri_ckpt_option_table, offsetof(struct tri_recipe, checkpoint)},
};

bool tri_recipe_at(const struct tri_recipe *recipe, size_t index, struct found *out)
{
    struct origins *origins = recipe->origins;
    size_t left = index;
    for (int i = 0; i < NUM_SECTIONS; i++) {
        const struct section *section = &tri_recipe_sections[i];
        if (left < section->table->count) {
            out->section = section;
            out->option = &section->table->options[left];
            out->values = (char *)recipe + section->offset;
            out->origin = &origins->of[index];
            return true;
        }
        left -= section->table->count;
    }
    return false;
}

/* Visit the names of an option: the full one, then the aliases. *at starts as NULL. */
static bool next_name(const struct tri_option_table *table, const struct tri_option *option,
                      const char **at, char *name, size_t capacity)
{
    size_t bytes = 0;
    const char *from = NULL;
    if (*at == NULL) {
        size_t prefix = strlen(table->section);
        bytes = prefix + (prefix > 0) + strlen(option->name);
        if (bytes >= capacity)
            return false;
        memcpy(name, table->section, prefix);
        if (prefix > 0)
            name[prefix++] = '.';
        memcpy(name + prefix, option->name, strlen(option->name) + 1);
        *at = option->aliases == NULL ? "" : option->aliases;
        return true;
    }
    from = *at;
    bytes = strcspn(from, ",");
    if (bytes == 0 || bytes >= capacity)
        return false;
    memcpy(name, from, bytes);
    name[bytes] = '\0';
    *at = from + bytes + (from[bytes] == ',');
    return true;
}

enum { NAME_BYTES = 128 };

bool tri_recipe_is_name(const struct tri_option_table *table, const struct tri_option *option,
                        const char *name)
{
    size_t prefix = strlen(table->section);
    if (prefix == 0 ? strcmp(name, option->name) == 0
                    : strncmp(name, table->section, prefix) == 0 && name[prefix] == '.' &&
                          strcmp(name + prefix + 1, option->name) == 0)
        return true;
    size_t length = strlen(name);
    for (const char *p = option->aliases; p != NULL && *p != '\0';) {
        size_t bytes = strcspn(p, ",");
        if (bytes == length && memcmp(p, name, bytes) == 0)
            return true;
        p += bytes + (p[bytes] == ',');
    }
    return false;
}

bool tri_recipe_find(const struct tri_recipe *recipe, const char *key, struct found *out)
{
    struct found found;
    for (size_t i = 0; tri_recipe_at(recipe, i, &found); i++)
        if (tri_recipe_is_name(found.section->table, found.option, key)) {
            *out = found;
            return true;
        }
    return false;
}

/* Call `visit` with every name that may stand in a recipe, until it returns true. */
static bool visit_names(bool (*visit)(void *ctx, const char *name), void *ctx)
{
    char name[NAME_BYTES];
    for (int i = 0; i < NUM_SECTIONS; i++) {
        const struct tri_option_table *table = tri_recipe_sections[i].table;
        if (*table->section != '\0' && visit(ctx, table->section))
            return true;
        for (size_t k = 0; k < table->count; k++) {
            const char *at = NULL;
            while (next_name(table, &table->options[k], &at, name, sizeof name))
                if (visit(ctx, name))
                    return true;
        }
    }
    const struct foreign *foreign = NULL;
    for (size_t i = 0; (foreign = tri_foreign_at(i)) != NULL; i++)
        if (visit(ctx, foreign->key))
            return true;
    return false;
}

static bool begins_with(void *ctx, const char *name)
{
    const char *key = ctx;
    size_t bytes = strlen(key);
    return strncmp(name, key, bytes) == 0 && name[bytes] == '.';
}

bool tri_recipe_is_prefix(const char *key)
{
    return visit_names(begins_with, (void *)key);
}

struct nearest {
    const char *key;
    char name[NAME_BYTES];
    int distance;
};

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot == NULL ? name : dot + 1;
}

/* The nearest name as a whole; a right last word in a wrong section counts as one error. */
static bool compare(void *ctx, const char *name)
{
    struct nearest *nearest = ctx;
    if (strchr(name, '*') != NULL)
        return false;
    int distance = tri_text_distance(nearest->key, name);
    if (distance > 1 && strcmp(last_part(nearest->key), last_part(name)) == 0)
        distance = 1;
    if (distance < nearest->distance) {
        nearest->distance = distance;
        strncpy(nearest->name, name, sizeof nearest->name - 1);
    }
    return false;
}

enum tri_status tri_recipe_unknown_key(const char *where, const char *key)
{
    struct nearest nearest = {.key = key, .distance = 1000};
    visit_names(compare, &nearest);
    const char *name = nearest.name;
    if (nearest.distance > 1 && tri_text_nearest(key, &name, 1) < 0)
        return tri_fail(TRI_INVALID,
                        "%s: unknown key '%.100s' (`trireme help recipe` lists all keys)", where,
                        key);
    return tri_fail(TRI_INVALID, "%s: unknown key '%.100s'; did you mean '%s'?", where, key, name);
}
