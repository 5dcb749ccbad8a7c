/* The effective recipe, with the origin of every value behind it. */
#include <string.h>

#include "recipe/private.h"
#include "trireme/trireme.h"

enum { COMMENT_COLUMN = 48 };

/* A value of the model or the machine stands for ours when it could stand in a recipe. */
static bool is_readable(const struct tri_option *option, const char *value)
{
    union {
        double align;
        char bytes[32];
    } scratch = {0};
    struct tri_option copy = *option;
    copy.offset = 0;
    copy.second = 16;
    struct tri_option_table table = {"", &copy, 1};
    bool good = copy.type != TRI_OPTION_STRINGS && copy.type != TRI_OPTION_PAIR &&
                tri_option_set(&copy, &value, 1, &scratch) == TRI_OK;
    tri_option_clear(&table, &scratch);
    if (!good)
        tri_error_clear();
    return good;
}

bool tri_recipe_print_value(const struct found *found, struct tri_text *out)
{
    const char *effective = found->origin->effective;
    bool replaced = effective != NULL && is_readable(found->option, effective);
    if (replaced && found->option->type == TRI_OPTION_STRING)
        tri_text_add_yaml(out, effective);
    else if (replaced)
        tri_text_printf(out, "%s", effective);
    else
        tri_option_print(found->option, found->values, out);
    return replaced;
}

/* Text for a comment: one line, whatever a path may hold. */
static void add_comment(struct tri_text *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        tri_text_add(out, c < 0x20 || c == 0x7F ? "?" : p, 1);
    }
}

static void add_origin(const struct tri_recipe *recipe, const struct found *found, bool replaced,
                       struct tri_text *out)
{
    const struct origin *origin = found->origin;
    struct tri_text name = {0};
    tri_option_print_name(found->section->table, found->option, &name);
    bool renamed = origin->given_as != NULL && strcmp(origin->given_as, tri_text_data(&name)) != 0;
    tri_text_free(&name);
    if (origin->kind == FROM_DEFAULT) {
        tri_text_printf(out, "default");
    } else if (origin->kind == FROM_NOTE) {
        if (origin->effective != NULL && !replaced) {
            add_comment(out, origin->effective);
            tri_text_printf(out, ", by ");
        }
        add_comment(out, origin->note);
    } else {
        if (origin->kind == FROM_RECIPE) {
            add_comment(out, recipe->path);
            tri_text_printf(out, ":%lld", (long long)origin->line);
        } else {
            tri_text_printf(out, "command line");
        }
        if (renamed) {
            tri_text_printf(out, " as ");
            add_comment(out, origin->given_as);
        }
    }
    if (origin->remark != NULL)
        tri_text_printf(out, "; %s", origin->remark);
}

static void add_option(const struct tri_recipe *recipe, const struct found *found, int indent,
                       const char *name, struct tri_text *out)
{
    size_t start = out->bytes;
    tri_text_printf(out, "%*s%s: ", indent, "", name);
    bool replaced = tri_recipe_print_value(found, out);
    size_t width = out->bytes - start;
    tri_text_printf(out, "%*s # ", width < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - width) : 0, "");
    add_origin(recipe, found, replaced, out);
    tri_text_add(out, "\n", 1);
}

static void add_lines(const char *title, const struct tri_text *lines, struct tri_text *out)
{
    if (lines->bytes == 0)
        return;
    tri_text_printf(out, "\n# %s\n", title);
    for (const char *p = tri_text_data(lines); *p != '\0';) {
        size_t bytes = strcspn(p, "\n");
        tri_text_printf(out, "#   ");
        for (size_t i = 0; i < bytes; i++) {
            unsigned char c = (unsigned char)p[i];
            tri_text_add(out, c < 0x20 || c == 0x7F ? "?" : p + i, 1);
        }
        tri_text_add(out, "\n", 1);
        p += bytes + (p[bytes] == '\n');
    }
}

static void print(const struct tri_recipe *recipe, struct tri_text *out)
{
    const struct origins *origins = recipe->origins;
    tri_text_printf(out, "# Effective recipe (Trireme %s). Behind each value: where it is from.\n",
                    tri_version());
    const char *section = "", *group = "";
    size_t group_bytes = 0;
    struct found found;
    for (size_t i = 0; tri_recipe_at(recipe, i, &found); i++) {
        const char *name = found.option->name;
        int indent = *found.section->table->section == '\0' ? 0 : 2;
        if (strcmp(section, found.section->table->section) != 0) {
            section = found.section->table->section;
            group_bytes = 0;
            tri_text_printf(out, "%s:\n", section);
        }
        const char *dot = strchr(name, '.');
        if (dot == NULL) {
            group_bytes = 0;
            add_option(recipe, &found, indent, name, out);
            continue;
        }
        size_t bytes = (size_t)(dot - name);
        if (bytes != group_bytes || strncmp(group, name, bytes) != 0) {
            group = name;
            group_bytes = bytes;
            tri_text_printf(out, "%*s%.*s:\n", indent, "", (int)bytes, name);
        }
        add_option(recipe, &found, indent + 2, dot + 1, out);
    }
    add_lines("Decided by the model and the machine:", &origins->facts, out);
    add_lines("Read, but without effect:", &origins->ignored, out);
}

enum tri_status tri_recipe_dump(const struct tri_recipe *recipe, FILE *to)
{
    struct tri_text text = {0};
    print(recipe, &text);
    bool good = !text.failed && fputs(tri_text_data(&text), to) >= 0 && fflush(to) == 0;
    bool failed = text.failed;
    tri_text_free(&text);
    if (failed)
        return tri_fail(TRI_NOMEM, "out of memory while printing the recipe");
    return good ? TRI_OK : tri_fail(TRI_IO, "cannot write the effective recipe: disk full?");
}
