/* YAML values as JSON. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/yaml.h"

/* Does the text follow JSON's grammar of numbers? */
static bool is_json_number(const char *p)
{
    p += *p == '-';
    if (*p == '0')
        p++;
    else if (isdigit((unsigned char)*p))
        while (isdigit((unsigned char)*p))
            p++;
    else
        return false;
    if (*p == '.') {
        if (!isdigit((unsigned char)*++p))
            return false;
        while (isdigit((unsigned char)*p))
            p++;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        if (!isdigit((unsigned char)*p))
            return false;
        while (isdigit((unsigned char)*p))
            p++;
    }
    return *p == '\0';
}

static void print_scalar(const struct tri_yaml *node, struct tri_text *out)
{
    if (tri_yaml_is_null(node))
        tri_text_printf(out, "null");
    else if (!node->quoted && strcasecmp(node->text, "true") == 0)
        tri_text_printf(out, "true");
    else if (!node->quoted && strcasecmp(node->text, "false") == 0)
        tri_text_printf(out, "false");
    else if (!node->quoted && is_json_number(node->text))
        tri_text_add(out, node->text, strlen(node->text));
    else
        tri_text_add_quoted(out, node->text);
}

static void print_node(const struct tri_yaml *node, struct tri_text *out)
{
    if (node->kind == TRI_YAML_SCALAR) {
        print_scalar(node, out);
        return;
    }
    bool mapping = node->kind == TRI_YAML_MAPPING;
    tri_text_add(out, mapping ? "{" : "[", 1);
    for (const struct tri_yaml *child = node->first; child != NULL; child = child->next) {
        if (child != node->first)
            tri_text_add(out, ", ", 2);
        if (mapping) {
            tri_text_add_quoted(out, child->key);
            tri_text_add(out, ": ", 2);
        }
        print_node(child, out);
    }
    tri_text_add(out, mapping ? "}" : "]", 1);
}

enum tri_status tri_yaml_print_json(const struct tri_yaml *node, struct tri_text *out)
{
    print_node(node, out);
    if (out->failed)
        return tri_fail(TRI_NOMEM, "out of memory while reading options");
    return TRI_OK;
}
