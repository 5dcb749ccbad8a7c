/* Keys on the command line: "--optimizer.learning_rate 1e-5", "--a.b=c", "--tiled_mlp_compute". */
#include <stdlib.h>
#include <string.h>

#include "recipe/private.h"

static const char *const command_line = "command line";

static enum tri_status read_value(struct tri_recipe *recipe, const char *key, const char *text)
{
    struct place place = {command_line, 0};
    size_t bytes = strlen(text);
    if (!tri_text_is_utf8(text, bytes, NULL))
        return tri_fail(TRI_INVALID, "command line: %.100s: the value is not valid UTF-8", key);
    if (*text == '[' || *text == '{') {
        struct tri_yaml *value = NULL;
        TRI_TRY(tri_yaml_parse_value(command_line, text, bytes, &value));
        enum tri_status st = tri_recipe_read_key(recipe, key, value, &place);
        tri_yaml_free(value);
        return st;
    }
    struct tri_yaml value = {.kind = TRI_YAML_SCALAR, .line = 1, .column = 1};
    value.text = strdup(text);
    if (value.text == NULL)
        return tri_fail(TRI_NOMEM, "out of memory while reading the command line");
    enum tri_status st = tri_recipe_read_key(recipe, key, &value, &place);
    free(value.text);
    return st;
}

/* A switch may stand alone: --tiled_mlp_compute means true. */
static bool is_switch(const struct tri_recipe *recipe, const char *key)
{
    struct found found;
    if (!tri_recipe_find(recipe, key, &found))
        return tri_foreign_find(key) != NULL;
    return (found.option->type == TRI_OPTION_BOOL ||
            (found.option->choices != NULL && strstr(found.option->choices, "=true") != NULL));
}

enum tri_status tri_recipe_read_overrides(struct tri_recipe *recipe, int count,
                                          char *const *overrides)
{
    for (int i = 0; i < count; i++) {
        const char *word = overrides[i];
        if (strncmp(word, "--", 2) != 0 || word[2] == '\0' || word[2] == '=')
            return tri_fail(TRI_INVALID,
                            "command line: expected --key value, got '%.100s' (a list is written "
                            "'[a, b]')",
                            word);
        char key[256];
        size_t bytes = strcspn(word + 2, "=");
        if (bytes >= sizeof key || !tri_text_is_utf8(word, strlen(word), NULL))
            return tri_fail(TRI_INVALID, "command line: '%.60s...' is not a key", word);
        memcpy(key, word + 2, bytes);
        key[bytes] = '\0';
        for (char *p = key; *p != '\0'; p++)
            if (*p == '-')
                *p = '_';

        const char *value = word[2 + bytes] == '=' ? word + 2 + bytes + 1 : NULL;
        bool next = i + 1 < count && strncmp(overrides[i + 1], "--", 2) != 0;
        if (value == NULL && next)
            value = overrides[++i];
        else if (value == NULL && is_switch(recipe, key))
            value = "true";
        else if (value == NULL)
            return tri_fail(TRI_INVALID, "command line: --%.100s needs a value", key);
        TRI_TRY(read_value(recipe, key, value));
    }
    return TRI_OK;
}
