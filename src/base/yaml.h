/* YAML by libyaml, as a small tree in which every node knows its place in the file.
 *
 * Input is hostile: at most 1 MiB, 32 levels, 65,536 nodes, 4,096 keys in one mapping. Anchors,
 * aliases, tags and a second document are refused, and so are duplicate keys. JSON is read too. */
#ifndef TRI_BASE_YAML_H
#define TRI_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum tri_yaml_kind { TRI_YAML_SCALAR, TRI_YAML_SEQUENCE, TRI_YAML_MAPPING };

struct tri_yaml {
    enum tri_yaml_kind kind;
    int64_t line, column; /* of the value, from 1 */
    char *key;            /* in a mapping; else NULL */
    int64_t key_line;
    char *text;             /* of a scalar, valid UTF-8 without NUL */
    bool quoted;            /* the scalar stood in quotes, or is a block */
    size_t count;           /* children */
    struct tri_yaml *first; /* child */
    struct tri_yaml *next;  /* sibling */
};

/* Parse a file or a buffer; `what` names it in errors. The root is always a mapping (an empty text
 * gives an empty one). Free it with tri_yaml_free. */
enum tri_status tri_yaml_load(const char *path, struct tri_yaml **out);
enum tri_status tri_yaml_parse(const char *what, const char *text, size_t bytes,
                               struct tri_yaml **out);

/* The same for one value of any kind, such as "[a, b]" from a command line. */
enum tri_status tri_yaml_parse_value(const char *what, const char *text, size_t bytes,
                                     struct tri_yaml **out);

void tri_yaml_free(struct tri_yaml *root); /* NULL is allowed */

/* Is it an unquoted null, ~ or nothing at all? */
bool tri_yaml_is_null(const struct tri_yaml *node);

/* Append the node as JSON on one line. Unquoted null, true, false and numbers keep their type. */
enum tri_status tri_yaml_print_json(const struct tri_yaml *node, struct tri_text *out);

#endif
