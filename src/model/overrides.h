/* What a recipe lays over a model's config.json. */
#ifndef TRI_MODEL_OVERRIDES_H
#define TRI_MODEL_OVERRIDES_H

#include "base/json.h"
#include "model/options.h"

/* The members of model.hf_config_kwargs and model.rope as one JSON object; NULL when there are
 * none. The caller json_decref()s it. A rotary setting given in both places is TRI_INVALID. */
enum tri_status tri_model_overrides(const struct tri_model_options *options, json_t **out);

#endif
