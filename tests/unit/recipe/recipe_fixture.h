/* Recipes from text: what parses, and the words of what does not. */
#ifndef TESTS_UNIT_RECIPE_RECIPE_FIXTURE_H
#define TESTS_UNIT_RECIPE_RECIPE_FIXTURE_H

#include "unit/scratch.h"

#include "recipe/recipe.h"

#define MINIMAL                                                                                    \
    "model: {name_or_path: m}\n"                                                                   \
    "data: {sources: [a.txt]}\n"                                                                   \
    "optimizer: {learning_rate: 1e-5}\n"

static inline struct tri_recipe *parse_with(const char *text, int count, char *const *overrides)
{
    struct tri_recipe *recipe = NULL;
    if (tri_recipe_parse("r.yml", text, strlen(text), count, overrides, &recipe) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return recipe;
}

static inline struct tri_recipe *parse(const char *text)
{
    return parse_with(text, 0, NULL);
}

static inline void fails_with(const char *text, int count, char *const *overrides, const char *part)
{
    struct tri_recipe *recipe = NULL;
    if (tri_recipe_parse("r.yml", text, strlen(text), count, overrides, &recipe) == TRI_OK)
        fail_msg("accepted, but should say: %s", part);
    assert_null(recipe);
    assert_error_has(part);
}

/* The minimal recipe with more lines behind it (its own are lines 1 to 3). */
static inline void line_fails(const char *line, const char *part)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s\n", MINIMAL, line);
    fails_with(text, 0, NULL, part);
}

static inline struct tri_recipe *line_parses(const char *line)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s\n", MINIMAL, line);
    return parse(text);
}

static inline char *dump(const struct tri_recipe *recipe)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    assert_int_equal(tri_recipe_dump(recipe, to), TRI_OK);
    fclose(to);
    return text;
}

static inline void dump_has(const struct tri_recipe *recipe, const char *part)
{
    char *text = dump(recipe);
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in the dump:\n%s", part, text);
    free(text);
}

/* The same of the dump with runs of spaces made one, so that tests do not depend on columns. */
static inline void dump_has_line(const struct tri_recipe *recipe, const char *part)
{
    char *text = dump(recipe), *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (!(*from == ' ' && from[1] == ' '))
            *to++ = *from;
    *to = '\0';
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in the dump:\n%s", part, text);
    free(text);
}

#endif
