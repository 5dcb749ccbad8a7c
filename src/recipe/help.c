/* The reference of all keys, from the tables. */
#include <string.h>

#include "recipe/private.h"

enum { WIDTH = 92 };

/* Print words, indented, broken at WIDTH. */
static void wrap(FILE *to, int indent, const char *text)
{
    int column = 0;
    for (const char *p = text; *p != '\0';) {
        int bytes = (int)strcspn(p, " ");
        if (column == 0 || column + 1 + bytes > WIDTH) {
            fprintf(to, "%s%*s", column == 0 ? "" : "\n", indent, "");
            column = indent;
        } else {
            fputc(' ', to);
            column++;
        }
        fprintf(to, "%.*s", bytes, p);
        column += bytes;
        p += bytes;
        p += strspn(p, " ");
    }
    fputc('\n', to);
}

static void print_option(FILE *to, const struct tri_option_table *table,
                         const struct tri_option *option)
{
    struct tri_text name = {0}, type = {0}, also = {0};
    tri_option_print_name(table, option, &name);
    tri_option_print_type(option, &type);
    if (option->flags & TRI_OPTION_REQUIRED)
        tri_text_printf(&type, "; required");
    else if (option->fallback != NULL)
        tri_text_printf(&type, "; default %s", option->fallback);
    else
        tri_text_printf(&type, "; default: unset");
    fprintf(to, "  %s\n", tri_text_data(&name));
    wrap(to, 6, option->doc);
    wrap(to, 6, tri_text_data(&type));
    if (option->aliases != NULL) {
        tri_text_printf(&also, "also:");
        for (const char *p = option->aliases; *p != '\0';) {
            size_t bytes = strcspn(p, ",");
            tri_text_printf(&also, " %.*s", (int)bytes, p);
            p += bytes + (p[bytes] == ',');
        }
        wrap(to, 6, tri_text_data(&also));
    }
    tri_text_free(&name);
    tri_text_free(&type);
    tri_text_free(&also);
}

void tri_recipe_help(FILE *to)
{
    const char *section = NULL;
    for (int i = 0; i < NUM_SECTIONS; i++) {
        const struct tri_option_table *table = tri_recipe_sections[i].table;
        if (section == NULL || strcmp(section, table->section) != 0)
            fprintf(to, "%s%s\n", i == 0 ? "" : "\n",
                    *table->section == '\0' ? "Top level" : table->section);
        section = table->section;
        for (size_t k = 0; k < table->count; k++)
            print_option(to, table, &table->options[k]);
    }
}

/* Print the options that `wanted` chooses. */
typedef bool chooser(const char *key, const struct tri_option_table *table,
                     const struct tri_option *option);
static bool print_chosen(const char *key, chooser *wanted, FILE *to)
{
    bool any = false;
    for (int i = 0; i < NUM_SECTIONS; i++) {
        const struct tri_option_table *table = tri_recipe_sections[i].table;
        for (size_t k = 0; k < table->count; k++)
            if (wanted(key, table, &table->options[k])) {
                print_option(to, table, &table->options[k]);
                any = true;
            }
    }
    return any;
}

/* By any of its names, or below `key`: the section optimizer, the group model.rope. */
static bool is_called(const char *key, const struct tri_option_table *table,
                      const struct tri_option *option)
{
    if (tri_recipe_is_name(table, option, key))
        return true;
    struct tri_text name = {0};
    size_t bytes = strlen(key);
    tri_option_print_name(table, option, &name);
    bool below = bytes > 0 && strncmp(tri_text_data(&name), key, bytes) == 0 &&
                 tri_text_data(&name)[bytes] == '.';
    tri_text_free(&name);
    return below;
}

static bool has_in_name(const char *word, const struct tri_option_table *table,
                        const struct tri_option *option)
{
    (void)table; /* a section is a word of its own */
    return *word != '\0' && (strstr(option->name, word) != NULL ||
                             (option->aliases != NULL && strstr(option->aliases, word) != NULL));
}

bool tri_recipe_help_key(const char *key, FILE *to)
{
    if (print_chosen(key, is_called, to))
        return true;
    const struct foreign *foreign = tri_foreign_find(key);
    if (foreign == NULL)
        return false;
    struct tri_text text = {0};
    tri_text_printf(&text, "A key of other tools, not honoured here: %s.", foreign->why);
    fprintf(to, "  %s\n", key);
    wrap(to, 6, tri_text_data(&text));
    tri_text_free(&text);
    return true;
}

bool tri_recipe_help_word(const char *word, FILE *to)
{
    return print_chosen(word, has_in_name, to);
}
