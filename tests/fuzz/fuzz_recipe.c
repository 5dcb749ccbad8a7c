/* A recipe from a stranger, and words of a command line behind a zero byte, one a line. What is
 * accepted must survive its own dump: the same values, the same hash. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/check.h"
#include "recipe/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char *dump(const struct tri_recipe *recipe)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (to == NULL || tri_recipe_dump(recipe, to) != TRI_OK || fclose(to) != 0)
        abort();
    return text;
}

/* Are two dumps equal line by line up to the comments? */
static int same_values(const char *a, const char *b)
{
    /* The keys without effect stand behind an empty line. */
    while (*a != '\0' && *a != '\n' && *b != '\0') {
        size_t x = strcspn(a, "#\n"), y = strcspn(b, "#\n");
        if (x != y || memcmp(a, b, x) != 0)
            return 0;
        a += strcspn(a, "\n");
        b += strcspn(b, "\n");
        a += *a == '\n';
        b += *b == '\n';
    }
    return 1;
}

static void check_dump(const struct tri_recipe *recipe)
{
    char *text = dump(recipe);
    struct tri_recipe *again = NULL;
    if (tri_recipe_parse("dump", text, strlen(text), 0, NULL, &again) != TRI_OK) {
        fprintf(stderr, "%s\n%s", tri_error_text(), text);
        abort();
    }
    char *second = dump(again);
    if (!same_values(text, second) || tri_recipe_hash(again) != tri_recipe_hash(recipe) ||
        tri_recipe_check_same(recipe, again) != TRI_OK) {
        fprintf(stderr, "%s\n%s", text, second);
        abort();
    }
    free(second);
    free(text);
    tri_recipe_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum { MAX_WORDS = 16 };
    char *words[MAX_WORDS];
    int count = 0;
    const uint8_t *zero = memchr(data, 0, bytes);
    size_t yaml = zero == NULL ? bytes : (size_t)(zero - data);
    char *line =
        strndup(zero == NULL ? "" : (const char *)zero + 1, zero == NULL ? 0 : bytes - yaml - 1);
    if (line == NULL)
        abort();
    char *save = NULL;
    for (char *word = strtok_r(line, "\n", &save); word != NULL && count < MAX_WORDS;
         word = strtok_r(NULL, "\n", &save))
        words[count++] = word;

    struct tri_recipe *recipe = NULL;
    if (tri_recipe_parse("fuzz", (const char *)data, yaml, count, words, &recipe) == TRI_OK) {
        check_dump(recipe);
        tri_recipe_close(recipe);
    } else {
        check_error();
    }
    tri_error_clear();
    free(line);
    return 0;
}
