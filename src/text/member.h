/* Members of the JSON objects that describe a tokenizer's parts: typed, and none of them unknown.
 */
#ifndef TRI_TEXT_MEMBER_H
#define TRI_TEXT_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Refuse anything but an object whose members are all among `names` (separated by spaces). */
enum tri_status tri_members_check(const json_t *object, const char *names);

/* The string "type" of an object; "" when there is none. */
const char *tri_member_type(const json_t *object);

/* A boolean; absent or null: `fallback`. */
enum tri_status tri_member_bool(const json_t *object, const char *name, bool fallback, bool *out);

/* A string, which must be there. It may hold any UTF-8 and lives as long as the object. */
enum tri_status tri_member_string(const json_t *object, const char *name, const char **out,
                                  size_t *bytes);

/* The same; absent or null: NULL, 0. */
enum tri_status tri_member_text(const json_t *object, const char *name, const char **out,
                                size_t *bytes);

/* An array, which must be there. */
enum tri_status tri_member_array(const json_t *object, const char *name, const json_t **out);

/* Call visit(part, depth + 1, ctx) for each part of a Sequence, which are in its array `name`.
 * Sequences may hold others; the outermost has depth 0. */
enum tri_status
tri_member_sequence(const json_t *object, const char *name, int depth,
                    enum tri_status (*visit)(const json_t *part, int depth, void *ctx), void *ctx);

/* An integer from 0 to `max`, which must be there. */
enum tri_status tri_member_count(const json_t *object, const char *name, int64_t max, int64_t *out);

#endif
