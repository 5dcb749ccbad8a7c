/* Values and types of options as text. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/option.h"

static const void *member(const void *values, size_t offset)
{
    return (const char *)values + offset;
}

static void print_choice(const struct tri_option *option, int index, struct tri_text *out)
{
    const char *p = option->choices;
    for (int i = 0; i < index && *p != '\0'; i++) {
        p += strcspn(p, ",");
        p += *p == ',';
    }
    tri_text_printf(out, "%.*s", (int)strcspn(p, "=,"), p);
}

void tri_option_print(const struct tri_option *option, const void *values, struct tri_text *out)
{
    char number[32];
    const void *at = member(values, option->offset);
    switch (option->type) {
    case TRI_OPTION_BOOL:
        tri_text_printf(out, "%s", *(const bool *)at ? "true" : "false");
        break;
    case TRI_OPTION_INT:
        tri_text_printf(out, "%" PRId64, *(const int64_t *)at);
        break;
    case TRI_OPTION_NUMBER:
        tri_text_printf(out, "%s", tri_number_text(*(const double *)at, number));
        break;
    case TRI_OPTION_CHOICE:
        print_choice(option, *(const int *)at, out);
        break;
    case TRI_OPTION_PAIR:
        tri_text_printf(out, "[%s, ", tri_number_text(*(const double *)at, number));
        at = member(values, option->second);
        tri_text_printf(out, "%s]", tri_number_text(*(const double *)at, number));
        break;
    case TRI_OPTION_MAP:
        tri_text_printf(out, "%s", *(char *const *)at == NULL ? "null" : *(char *const *)at);
        break;
    case TRI_OPTION_STRING:
        if (*(char *const *)at == NULL)
            tri_text_printf(out, "null");
        else
            tri_text_add_yaml(out, *(char *const *)at);
        break;
    case TRI_OPTION_STRINGS: {
        char *const *strings = *(char **const *)at;
        int64_t count = *(const int64_t *)member(values, option->second);
        tri_text_printf(out, "[");
        for (int64_t i = 0; i < count; i++) {
            tri_text_printf(out, "%s", i > 0 ? ", " : "");
            tri_text_add_yaml(out, strings[i]);
        }
        tri_text_printf(out, "]");
        break;
    }
    }
}

static void print_range(const struct tri_option *option, struct tri_text *out)
{
    char low[32], high[32];
    if (option->min >= option->max)
        return;
    if (isinf(option->max))
        tri_text_printf(out, " >= %s", tri_number_text(option->min, low));
    else
        tri_text_printf(out, " from %s to %s", tri_number_text(option->min, low),
                        tri_number_text(option->max, high));
}

void tri_option_print_type(const struct tri_option *option, struct tri_text *out)
{
    static const char *const names[] = {
        [TRI_OPTION_BOOL] = "true or false",    [TRI_OPTION_INT] = "an integer",
        [TRI_OPTION_NUMBER] = "a number",       [TRI_OPTION_STRING] = "a text",
        [TRI_OPTION_CHOICE] = "one of ",        [TRI_OPTION_STRINGS] = "a list of texts",
        [TRI_OPTION_PAIR] = "two numbers each", [TRI_OPTION_MAP] = "a mapping",
    };
    bool words = option->choices != NULL;
    const bool list = option->type == TRI_OPTION_STRINGS;
    if (list && option->min < option->max) { /* read by the component, which checks them */
        tri_text_printf(out, "a list of numbers");
        print_range(option, out);
        return;
    }
    tri_text_printf(out, "%s", words ? list ? "a list of " : "one of " : names[option->type]);
    print_range(option, out);
    bool first = true;
    for (const char *p = words ? option->choices : ""; *p != '\0';) {
        size_t bytes = strcspn(p, "=,");
        if (*p == '*')
            tri_text_printf(out, ", or a name with a slash");
        else
            tri_text_printf(out, "%s%.*s", first ? "" : ", ", (int)bytes, p);
        first = false;
        p += strcspn(p, ",");
        p += *p == ',';
    }
}

void tri_option_print_name(const struct tri_option_table *table, const struct tri_option *option,
                           struct tri_text *out)
{
    tri_text_printf(out, "%s%s%s", table->section, *table->section == '\0' ? "" : ".",
                    option->name);
}
