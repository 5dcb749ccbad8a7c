/* Typed reads of a config.json, with errors that name file, key and value. */
#ifndef TRI_MODEL_CONFIG_READ_H
#define TRI_MODEL_CONFIG_READ_H

#include <jansson.h>

#include "model/family.h"

/* An object being read. */
struct tri_config {
    const char *what;     /* the file, for messages */
    const char *inside;   /* "" or "rope_parameters." and the like: goes before the key */
    const json_t *object; /* borrowed */
};

/* Whether the key is there and not null. */
bool tri_config_has(const struct tri_config *c, const char *key);

/* The value as JSON text, shortened, for messages. `text` has TRI_SHOWN_BYTES; returns it. */
enum { TRI_SHOWN_BYTES = 72 };
const char *tri_config_shown(const json_t *value, char *text);

/* Read a member; an absent key leaves *value, its default, as it is. Wrong types (null included)
 * and values outside [min, max] are TRI_INVALID. */
enum tri_status tri_config_int(const struct tri_config *c, const char *key, int64_t min,
                               int64_t max, int64_t *value);
enum tri_status tri_config_number(const struct tri_config *c, const char *key, double min,
                                  double max, double *value);
enum tri_status tri_config_bool(const struct tri_config *c, const char *key, bool *value);
/* *value points into the JSON. */
enum tri_status tri_config_string(const struct tri_config *c, const char *key, const char **value);

/* Read the rotary embedding of a config.json: rope_config.c. */
enum tri_status tri_config_rope(const struct tri_config *c, const struct tri_family *family,
                                int64_t head_dim, int64_t max_positions, struct tri_rope *out);

/* Read the type and its members out of `o`, which is rope_parameters or rope_scaling of `c`, into a
 * rope that has theta and rotary_dim: rope_stretch.c. */
enum tri_status tri_config_rope_stretch(const struct tri_config *c, const struct tri_config *o,
                                        int64_t max_positions, struct tri_rope *rope);
const char *tri_rope_type_name(enum tri_rope_type type);

/* Read the sliding window of each layer: window_config.c. The caller frees *out (num_layers). */
enum tri_status tri_config_windows(const struct tri_config *c, const struct tri_family *family,
                                   int64_t num_layers, int64_t **out);

/* Refuse every key that would change the computation in a way that we do not have: refuse.c. */
enum tri_status tri_config_refuse(const struct tri_config *c, const struct tri_family *family);

#endif
