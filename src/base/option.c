#include "base/option.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void *member(const void *values, size_t offset)
{
    return (char *)values + offset;
}

static bool *as_bool(const struct tri_option *option, const void *values)
{
    return member(values, option->offset);
}

static int *as_choice(const struct tri_option *option, const void *values)
{
    return member(values, option->offset);
}

static int64_t *as_int(const struct tri_option *option, const void *values)
{
    return member(values, option->offset);
}

static double *as_number(const struct tri_option *option, const void *values)
{
    return member(values, option->offset);
}

static char **as_string(const struct tri_option *option, const void *values)
{
    return member(values, option->offset);
}

static char ***as_strings(const struct tri_option *option, const void *values)
{
    return member(values, option->offset);
}

static enum tri_status no_memory(void)
{
    return tri_fail(TRI_NOMEM, "out of memory while reading options");
}

/* The words of `choices` in turn: *at moves past the word, its synonyms and the comma.
 * False at the end. `matches` says whether `text` is the word or one of its synonyms. */
static bool next_choice(const char **at, const char *text, size_t *bytes, bool *matches)
{
    const char *p = *at;
    if (*p == '\0')
        return false;
    *bytes = strcspn(p, "=,");
    *matches = false;
    for (;;) {
        size_t length = strcspn(p, "=,");
        *matches = *matches || (length == strlen(text) && strncasecmp(p, text, length) == 0);
        p += length;
        if (*p != '=')
            break;
        p++;
    }
    *at = *p == ',' ? p + 1 : p;
    return true;
}

/* A last word star, slash, star stands for any name with a slash. */
static bool allows_any(const char *choices, const char *text)
{
    size_t length = strlen(choices);
    return length >= 4 && strcmp(choices + length - 4, ",*/*") == 0 && strchr(text, '/') != NULL;
}

/* Fail with "expected <type and range>, got '<text>'". */
static enum tri_status unexpected(const struct tri_option *option, const char *text)
{
    struct tri_text type = {0};
    tri_option_print_type(option, &type);
    enum tri_status st =
        tri_fail(TRI_INVALID, "expected %s, got '%.60s'", tri_text_data(&type), text);
    tri_text_free(&type);
    return st;
}

/* Find `text` among the choices: its index and the word that is stored for it. */
static bool find_choice(const char *choices, const char *text, int *index, const char **word,
                        size_t *bytes)
{
    bool matches = false;
    const char *at = choices;
    *index = 0;
    for (*word = at; next_choice(&at, text, bytes, &matches); *word = at, (*index)++)
        if (matches)
            return true;
    return false;
}

static enum tri_status set_bool(const struct tri_option *option, const char *text, void *values)
{
    static const char *const words[] = {"true", "yes", "on", "1", "false", "no", "off", "0"};
    for (int i = 0; i < 8; i++)
        if (strcasecmp(text, words[i]) == 0) {
            *as_bool(option, values) = i < 4;
            return TRI_OK;
        }
    return unexpected(option, text);
}

static enum tri_status check_range(const struct tri_option *option, double value, const char *text)
{
    if (option->min >= option->max || (value >= option->min && value <= option->max))
        return TRI_OK;
    return unexpected(option, text);
}

static enum tri_status read_number(const struct tri_option *option, const char *text, double *out)
{
    double value = 0;
    TRI_TRY(tri_text_number(text, &value));
    TRI_TRY(check_range(option, value, text));
    *out = value;
    return TRI_OK;
}

static enum tri_status set_copy(char **to, const char *text, size_t bytes)
{
    char *copy = strndup(text, bytes);
    if (copy == NULL)
        return no_memory();
    free(*to);
    *to = copy;
    return TRI_OK;
}

/* A copy of a text, or of the word among the choices that it means, in place of *to. */
static enum tri_status copy_text(const struct tri_option *option, const char *text, char **to)
{
    const char *word = text;
    size_t bytes = strlen(text);
    int index = 0;
    if (option->choices != NULL && !find_choice(option->choices, text, &index, &word, &bytes)) {
        if (!allows_any(option->choices, text))
            return unexpected(option, text);
        word = text;
        bytes = strlen(text);
    }
    return set_copy(to, word, bytes);
}

static enum tri_status set_string(const struct tri_option *option, const char *text, void *values)
{
    if (*text == '\0')
        return tri_fail(TRI_INVALID, "expected a text, got an empty one");
    return copy_text(option, text, as_string(option, values));
}

static void free_strings(char **strings, int64_t count)
{
    for (int64_t i = 0; strings != NULL && i < count; i++)
        free(strings[i]);
    free(strings);
}

static enum tri_status set_strings(const struct tri_option *option, const char *const *texts,
                                   size_t count, void *values)
{
    char **strings = NULL;
    if (count > 0) {
        strings = calloc(count, sizeof *strings);
        if (strings == NULL)
            return no_memory();
    }
    for (size_t i = 0; i < count; i++) {
        const enum tri_status st = copy_text(option, texts[i], &strings[i]);
        if (st != TRI_OK) {
            free_strings(strings, (int64_t)count);
            return st;
        }
    }
    int64_t *old_count = member(values, option->second);
    free_strings(*as_strings(option, values), *old_count);
    *as_strings(option, values) = strings;
    *old_count = (int64_t)count;
    return TRI_OK;
}

static enum tri_status set_map(const struct tri_option *option, const char *text, void *values)
{
    json_error_t error = {0};
    json_t *map = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (map == NULL && *text == '{')
        return tri_fail(TRI_INVALID, "not a mapping: %s", error.text);
    if (!json_is_object(map)) {
        json_decref(map);
        return tri_fail(TRI_INVALID, "expected a mapping such as {key: value}, got '%.60s'", text);
    }
    json_decref(map);
    return set_copy(as_string(option, values), text, strlen(text));
}

enum tri_status tri_option_set(const struct tri_option *option, const char *const *texts,
                               size_t count, void *values)
{
    if (option->type == TRI_OPTION_STRINGS)
        return set_strings(option, texts, count, values);
    if (option->type == TRI_OPTION_PAIR) {
        double pair[2] = {0, 0};
        if (count != 2)
            return tri_fail(TRI_INVALID, "expected two numbers such as [0.9, 0.999], got %zu",
                            count);
        TRI_TRY(read_number(option, texts[0], &pair[0]));
        TRI_TRY(read_number(option, texts[1], &pair[1]));
        *as_number(option, values) = pair[0];
        *(double *)member(values, option->second) = pair[1];
        return TRI_OK;
    }
    if (count != 1)
        return tri_fail(TRI_INVALID, "expected one value, got a list of %zu", count);

    const char *text = texts[0];
    int64_t whole = 0;
    const char *word = NULL;
    size_t bytes = 0;
    int index = 0;
    switch (option->type) {
    case TRI_OPTION_BOOL:
        return set_bool(option, text, values);
    case TRI_OPTION_INT:
        TRI_TRY(tri_text_int(text, &whole));
        TRI_TRY(check_range(option, (double)whole, text));
        *as_int(option, values) = whole;
        return TRI_OK;
    case TRI_OPTION_NUMBER:
        return read_number(option, text, as_number(option, values));
    case TRI_OPTION_CHOICE:
        if (!find_choice(option->choices, text, &index, &word, &bytes))
            return unexpected(option, text);
        *as_choice(option, values) = index;
        return TRI_OK;
    case TRI_OPTION_MAP:
        return set_map(option, text, values);
    case TRI_OPTION_STRING:
    case TRI_OPTION_STRINGS:
    case TRI_OPTION_PAIR:
        break;
    }
    return set_string(option, text, values);
}

enum tri_status tri_option_defaults(const struct tri_option_table *table, void *values)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct tri_option *option = &table->options[i];
        if (option->type == TRI_OPTION_STRING || option->type == TRI_OPTION_MAP)
            *as_string(option, values) = NULL;
        if (option->type == TRI_OPTION_STRINGS) {
            *as_strings(option, values) = NULL;
            *(int64_t *)member(values, option->second) = 0;
        }
    }
    for (size_t i = 0; i < table->count; i++)
        TRI_TRY(tri_option_reset(&table->options[i], values));
    return TRI_OK;
}

static void clear_one(const struct tri_option *option, void *values)
{
    if (option->type == TRI_OPTION_STRING || option->type == TRI_OPTION_MAP) {
        free(*as_string(option, values));
        *as_string(option, values) = NULL;
    } else if (option->type == TRI_OPTION_STRINGS) {
        int64_t *count = member(values, option->second);
        free_strings(*as_strings(option, values), *count);
        *as_strings(option, values) = NULL;
        *count = 0;
    }
}

enum tri_status tri_option_reset(const struct tri_option *option, void *values)
{
    const char *text = option->fallback;
    if (text == NULL) {
        clear_one(option, values);
        if (option->type == TRI_OPTION_BOOL)
            *as_bool(option, values) = false;
        else if (option->type == TRI_OPTION_INT)
            *as_int(option, values) = 0;
        else if (option->type == TRI_OPTION_NUMBER)
            *as_number(option, values) = 0;
        else if (option->type == TRI_OPTION_CHOICE)
            *as_choice(option, values) = 0;
        return TRI_OK;
    }
    if (option->type != TRI_OPTION_PAIR)
        return tri_option_set(option, &text, 1, values);
    char first[32] = {0};
    size_t comma = strcspn(text, ",");
    memcpy(first, text, comma < sizeof first ? comma : sizeof first - 1);
    const char *pair[2] = {first, text + comma + (text[comma] == ',')};
    return tri_option_set(option, pair, 2, values);
}

void tri_option_clear(const struct tri_option_table *table, void *values)
{
    for (size_t i = 0; i < table->count; i++)
        clear_one(&table->options[i], values);
}

const struct tri_option *tri_option_find(const struct tri_option_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->options[i].name, name) == 0)
            return &table->options[i];
    return NULL;
}
