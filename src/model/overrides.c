#include "model/overrides.h"

#include <string.h>

static enum tri_status set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        return tri_fail(TRI_NOMEM, "no memory for model.%s", key);
    return TRI_OK;
}

/* rope_parameters from model.rope; what is not given comes from the checkpoint's config.json. */
static enum tri_status add_rope(const struct tri_model_options *o, json_t *overrides)
{
    if (o->rope_type == NULL) {
        if (o->rope_factor > 0 || o->rope_original_max_position_embeddings > 0)
            return tri_fail(TRI_INVALID, "model.rope: factor and original_max_position_embeddings "
                                         "need model.rope.type, such as yarn");
        return o->rope_theta > 0 ? set(overrides, "rope_theta", json_real(o->rope_theta)) : TRI_OK;
    }
    json_t *rope = json_object();
    if (rope == NULL)
        return tri_fail(TRI_NOMEM, "no memory for model.rope");
    enum tri_status st = set(rope, "rope_type", json_string(o->rope_type));
    if (st == TRI_OK && o->rope_factor > 0)
        st = set(rope, "factor", json_real(o->rope_factor));
    if (st == TRI_OK && o->rope_theta > 0)
        st = set(rope, "rope_theta", json_real(o->rope_theta));
    if (st == TRI_OK && o->rope_original_max_position_embeddings > 0)
        st = set(rope, "original_max_position_embeddings",
                 json_integer(o->rope_original_max_position_embeddings));
    if (st == TRI_OK && json_object_set(overrides, "rope_parameters", rope) != 0)
        st = tri_fail(TRI_NOMEM, "no memory for model.rope");
    json_decref(rope);
    return st;
}

enum tri_status tri_model_overrides(const struct tri_model_options *options, json_t **out)
{
    json_t *overrides = NULL;
    enum tri_status st = TRI_OK;
    if (options->hf_config_kwargs != NULL) {
        TRI_TRY(tri_json_parse("model.hf_config_kwargs", options->hf_config_kwargs,
                               strlen(options->hf_config_kwargs), &overrides));
        if (!json_is_object(overrides)) {
            json_decref(overrides);
            return tri_fail(TRI_INVALID, "model.hf_config_kwargs must be a mapping");
        }
    } else if ((overrides = json_object()) == NULL) {
        return tri_fail(TRI_NOMEM, "no memory for the model's overrides");
    }
    bool both =
        options->rope_type != NULL && (json_object_get(overrides, "rope_parameters") != NULL ||
                                       json_object_get(overrides, "rope_scaling") != NULL);
    if (both)
        st = tri_fail(TRI_INVALID, "model.rope and model.hf_config_kwargs both give a rotary "
                                   "embedding: keep one of the two");
    else
        st = add_rope(options, overrides);
    if (st != TRI_OK || json_object_size(overrides) == 0) {
        json_decref(overrides);
        overrides = NULL;
    }
    *out = overrides;
    return st;
}
