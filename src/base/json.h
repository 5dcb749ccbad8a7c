/* JSON by jansson, with errors in one line. Duplicate names in an object are refused. */
#ifndef TRI_BASE_JSON_H
#define TRI_BASE_JSON_H

#include <jansson.h>

#include "base/status.h"

/* Parse a file of at most 64 MiB / a buffer. `what` names the source in errors. The caller
 * json_decref()s the result. */
enum tri_status tri_json_load(const char *path, json_t **out);
enum tri_status tri_json_parse(const char *what, const char *text, size_t bytes, json_t **out);

/* tri_json_load, with every integer as a real: for files that hold some beyond 64 bits, such as the
 * model_max_length of tokenizer_config.json. */
enum tri_status tri_json_load_reals(const char *path, json_t **out);

/* Indented JSON with a final newline. Numbers read back to the same bits and are short where that
 * is enough (1e-5). The caller frees *text, which is not NUL-terminated. */
enum tri_status tri_json_text(const json_t *value, char **text, size_t *bytes);

/* Write that text to a file, atomically. */
enum tri_status tri_json_save(const char *path, const json_t *value);

#endif
