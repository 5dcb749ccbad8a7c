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

bool tri_recipe_help_key(const char *key, FILE *to)
{
    bool any = false;
    for (int i = 0; i < NUM_SECTIONS; i++) {
        const struct tri_option_table *table = tri_recipe_sections[i].table;
        bool whole = *key != '\0' && strcmp(table->section, key) == 0;
        for (size_t k = 0; k < table->count; k++)
            if (whole || tri_recipe_is_name(table, &table->options[k], key)) {
                print_option(to, table, &table->options[k]);
                any = true;
            }
    }
    return any;
}
