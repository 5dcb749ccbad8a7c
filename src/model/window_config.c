/* Sliding windows: sliding_window, use_sliding_window, max_window_layers, layer_types. */
#include <stdlib.h>
#include <string.h>

#include "model/config_read.h"

enum { SLIDING = 1, FULL = 0 };

static const int64_t max_window = INT64_C(1) << 40;

/* Read layer_types into kind[num_layers]; *given tells whether the key is there. */
static enum tri_status read_layer_types(const struct tri_config *c, int64_t num_layers,
                                        int64_t *kind, bool *given)
{
    *given = tri_config_has(c, "layer_types");
    if (!*given)
        return TRI_OK;
    char shown[TRI_SHOWN_BYTES];
    const json_t *types = json_object_get(c->object, "layer_types");
    if (!json_is_array(types))
        return tri_fail(TRI_INVALID, "%s: layer_types is %s: give a list with one word a layer",
                        c->what, tri_config_shown(types, shown));
    if (json_array_size(types) != (size_t)num_layers)
        return tri_fail(TRI_INVALID,
                        "%s: layer_types has %zu entries but num_hidden_layers is %lld: make them "
                        "equal",
                        c->what, json_array_size(types), (long long)num_layers);
    for (int64_t i = 0; i < num_layers; i++) {
        const json_t *type = json_array_get(types, (size_t)i);
        const char *word = json_is_string(type) ? json_string_value(type) : "";
        if (strcmp(word, "sliding_attention") == 0)
            kind[i] = SLIDING;
        else if (strcmp(word, "full_attention") == 0)
            kind[i] = FULL;
        else
            return tri_fail(TRI_UNSUPPORTED,
                            "%s: layer_types[%lld] is %s: only full_attention and "
                            "sliding_attention are supported, choose another model",
                            c->what, (long long)i, tri_config_shown(type, shown));
    }
    return TRI_OK;
}

/* sliding_window; 0 when it is null. */
static enum tri_status read_size(const struct tri_config *c, int64_t fallback, int64_t *window)
{
    *window = fallback;
    if (json_is_null(json_object_get(c->object, "sliding_window"))) {
        *window = 0;
        return TRI_OK;
    }
    return tri_config_int(c, "sliding_window", 1, max_window, window);
}

/* The kind of each layer when layer_types is absent, and the size of the window. */
static enum tri_status read_rule(const struct tri_config *c, const struct tri_family *family,
                                 int64_t num_layers, int64_t *kind, int64_t *window)
{
    TRI_TRY(read_size(c, family->window, window));
    bool use = family->window_rule == TRI_WINDOW_ALL;
    bool use_given = tri_config_has(c, "use_sliding_window");
    if (use_given)
        TRI_TRY(tri_config_bool(c, "use_sliding_window", &use));
    int64_t first = 0; /* layer with a window */

    switch (family->window_rule) {
    case TRI_WINDOW_NONE:
        if (*window > 0 && (!use_given || use))
            return tri_fail(TRI_UNSUPPORTED,
                            "%s: sliding_window is %lld, but the family %s has no sliding window: "
                            "set it to null (model.hf_config_kwargs) or check model_type",
                            c->what, (long long)*window, family->model_type);
        *window = 0;
        break;
    case TRI_WINDOW_ALL:
        if (*window > 0 && !use)
            return tri_fail(TRI_UNSUPPORTED,
                            "%s: use_sliding_window is false, but the family %s does not read it "
                            "and sliding_window is %lld: set sliding_window to null instead",
                            c->what, family->model_type, (long long)*window);
        break;
    case TRI_WINDOW_PER_LAYER:
        first = 28;
        TRI_TRY(tri_config_int(c, "max_window_layers", 0, INT64_MAX, &first));
        if (!use)
            *window = 0;
        break;
    }
    for (int64_t i = 0; i < num_layers; i++)
        kind[i] = *window > 0 && i >= first ? SLIDING : FULL;
    return TRI_OK;
}

enum tri_status tri_config_windows(const struct tri_config *c, const struct tri_family *family,
                                   int64_t num_layers, int64_t **out)
{
    int64_t window = 0;
    bool given = false;
    int64_t *of_rule = calloc((size_t)num_layers * 2, sizeof *of_rule);
    if (of_rule == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the windows of %lld layers",
                        (long long)num_layers);
    int64_t *of_types = of_rule + num_layers;
    enum tri_status st;
    TRI_TRY_GOTO(st, read_rule(c, family, num_layers, of_rule, &window), free_kinds);
    TRI_TRY_GOTO(st, read_layer_types(c, num_layers, of_types, &given), free_kinds);

    const int64_t *kind = given ? of_types : of_rule;
    for (int64_t i = 0; i < num_layers; i++) {
        if (kind[i] == SLIDING && window == 0) {
            st = tri_fail(TRI_INVALID,
                          "%s: layer_types[%lld] is sliding_attention, but no window is set: give "
                          "sliding_window (and use_sliding_window: true where the family reads it)",
                          c->what, (long long)i);
            goto free_kinds;
        }
        if (kind[i] != of_rule[i] && family->window_rule != TRI_WINDOW_PER_LAYER) {
            st = tri_fail(TRI_UNSUPPORTED,
                          "%s: layer_types[%lld] is full_attention, but in the family %s "
                          "sliding_window %lld holds for every layer: remove layer_types or check "
                          "model_type",
                          c->what, (long long)i, family->model_type, (long long)window);
            goto free_kinds;
        }
    }
    /* Kinds become windows in place. */
    for (int64_t i = 0; i < num_layers; i++)
        of_rule[i] = kind[i] == SLIDING ? window : 0;
    *out = of_rule;
    return TRI_OK;

free_kinds:
    free(of_rule);
    return st;
}
