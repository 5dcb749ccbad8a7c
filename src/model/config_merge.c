/* Lay the overrides of a recipe over a config.json without leaving one setting in two spellings. */
#include <string.h>

#include "model/config_read.h"

/* Every spelling of theta, of the rotated part, and of the rest of a rotary embedding. */
static const char *const rope_keys[] = {"rope_parameters", "rope_scaling", "rope_theta",
                                        "rotary_emb_base", "rotary_pct",   "partial_rotary_factor"};
enum { NUM_ROPE_KEYS = sizeof rope_keys / sizeof *rope_keys };

static const char *const dtype_keys[] = {"dtype", "torch_dtype"};

/* Other keys that mean something where config.json leaves them out. */
static const char *const optional_keys[] = {
    "architectures",
    "attention_bias",
    "attention_dropout",
    "attn_implementation",
    "_attn_implementation",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "head_dim",
    "hidden_act",
    "hidden_dropout",
    "initializer_range",
    "layer_norm_eps",
    "layer_types",
    "max_position_embeddings",
    "max_window_layers",
    "mlp_bias",
    "num_key_value_heads",
    "pretraining_tp",
    "qkv_bias",
    "rms_norm_eps",
    "sliding_window",
    "tie_word_embeddings",
    "use_bias",
    "use_cache",
    "use_parallel_residual",
    "use_sliding_window",
    "original_max_position_embeddings",
};

/* A rotary embedding, whatever its spelling. Members are borrowed; NULL: not said. */
struct rope_source {
    const json_t *object; /* rope_parameters or rope_scaling; JSON null: explicitly none */
    const json_t *theta, *partial;
};

static bool holds_any(const json_t *object, const char *const *keys, int count)
{
    for (int i = 0; i < count; i++)
        if (json_object_get(object, keys[i]) != NULL)
            return true;
    return false;
}

/* The first of these that says something. */
static const json_t *first_of(const json_t *a, const json_t *b, const json_t *c)
{
    const json_t *all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        if (all[i] != NULL && !json_is_null(all[i]))
            return all[i];
    return NULL;
}

static struct rope_source find_rope(const json_t *config)
{
    struct rope_source s;
    const json_t *modern = json_object_get(config, "rope_parameters");
    const json_t *old = json_object_get(config, "rope_scaling");
    s.object = first_of(modern, old, NULL);
    if (s.object == NULL)
        s.object = modern != NULL ? modern : old;
    s.theta =
        first_of(json_object_get(s.object, "rope_theta"), json_object_get(config, "rope_theta"),
                 json_object_get(config, "rotary_emb_base"));
    s.partial = first_of(json_object_get(s.object, "partial_rotary_factor"),
                         json_object_get(config, "partial_rotary_factor"),
                         json_object_get(config, "rotary_pct"));
    return s;
}

/* Overrides that give one setting twice are only taken when they agree. */
static enum tri_status check_twice(const json_t *overrides)
{
    static const char *const groups[][4] = {
        {"rope_parameters", "rope_scaling"},
        {"rope_theta", "rotary_emb_base"},
        {"partial_rotary_factor", "rotary_pct"},
        {"dtype", "torch_dtype"},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const json_t *a = json_object_get(overrides, groups[i][0]);
        const json_t *b = json_object_get(overrides, groups[i][1]);
        if (a != NULL && b != NULL && !json_equal(a, b))
            return tri_fail(TRI_INVALID,
                            "overrides of config.json: %s and %s contradict each other: give one",
                            groups[i][0], groups[i][1]);
    }
    const char *const inner[][2] = {{"rope_theta", "rotary_emb_base"},
                                    {"partial_rotary_factor", "rotary_pct"}};
    const json_t *object = find_rope(overrides).object;
    for (int i = 0; i < 2; i++) {
        const json_t *inside = json_object_get(object, inner[i][0]);
        const json_t *top = first_of(json_object_get(overrides, inner[i][0]),
                                     json_object_get(overrides, inner[i][1]), NULL);
        if (inside != NULL && top != NULL && json_number_value(inside) != json_number_value(top))
            return tri_fail(TRI_INVALID,
                            "overrides of config.json: %s is given twice with different values: "
                            "give one",
                            inner[i][0]);
    }
    return TRI_OK;
}

static bool is_one_of(const char *key, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* A key that is misspelt would change nothing, silently. */
static enum tri_status check_known(const json_t *config, const json_t *overrides)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)overrides, key, value)
    {
        if (json_object_get(config, key) == NULL && !is_one_of(key, rope_keys, NUM_ROPE_KEYS) &&
            !is_one_of(key, dtype_keys, 2) &&
            !is_one_of(key, optional_keys, sizeof optional_keys / sizeof *optional_keys))
            return tri_fail(TRI_INVALID,
                            "overrides of config.json: '%.100s' is not in the file and nothing "
                            "that Trireme reads: check its spelling",
                            key);
    }
    return TRI_OK;
}

static int set(json_t *object, const char *key, const json_t *value)
{
    /* Borrowed values become shared members; nothing changes them afterwards. */
    return json_object_set(object, key, (json_t *)(uintptr_t)value);
}

/* Write the rotary embedding into `merged`, in the spelling of Transformers 5 or 4. */
static int write_rope(json_t *merged, const struct rope_source *s, bool modern,
                      const struct tri_family *family)
{
    json_t *object =
        json_is_object(s->object) ? json_copy((json_t *)(uintptr_t)s->object) : json_object();
    if (object == NULL)
        return -1;
    int bad = 0;
    json_object_del(object, "rope_theta");
    json_object_del(object, "partial_rotary_factor");
    if (modern) {
        if (json_object_get(object, "rope_type") == NULL) {
            const json_t *type = json_object_get(object, "type");
            bad |= type != NULL ? set(object, "rope_type", type)
                                : json_object_set_new(object, "rope_type", json_string("default"));
        }
        if (s->theta != NULL)
            bad |= set(object, "rope_theta", s->theta);
        if (s->partial != NULL)
            bad |= set(object, "partial_rotary_factor", s->partial);
        bad |= json_object_set(merged, "rope_parameters", object);
    } else {
        if (s->theta != NULL)
            bad |= set(merged, family != NULL ? family->rope_theta_key : "rope_theta", s->theta);
        if (s->partial != NULL)
            bad |= set(merged, family != NULL ? family->rope_partial_key : "partial_rotary_factor",
                       s->partial);
        if (json_object_size(object) > 0)
            bad |= json_object_set(merged, "rope_scaling", object);
    }
    json_decref(object);
    return bad;
}

static int merge_rope(json_t *merged, const json_t *config, const json_t *overrides)
{
    struct rope_source file = find_rope(config);
    struct rope_source over = find_rope(overrides);
    struct rope_source s = {
        .object = over.object != NULL ? over.object : file.object,
        .theta = over.theta != NULL ? over.theta : file.theta,
        .partial = over.partial != NULL ? over.partial : file.partial,
    };
    bool file_modern = json_object_get(config, "rope_parameters") != NULL;
    bool modern = holds_any(config, rope_keys, NUM_ROPE_KEYS)
                      ? file_modern
                      : json_object_get(overrides, "rope_parameters") != NULL;

    /* The length of pretraining may stand beside the object, where it would now contradict it. */
    const char *original = "original_max_position_embeddings";
    if (json_object_get(over.object, original) != NULL &&
        json_object_get(overrides, original) == NULL)
        json_object_del(merged, original);

    const char *type = json_string_value(json_object_get(merged, "model_type"));
    for (int i = 0; i < NUM_ROPE_KEYS; i++)
        json_object_del(merged, rope_keys[i]);
    return write_rope(merged, &s, modern, type == NULL ? NULL : tri_family_find(type));
}

static int merge_dtype(json_t *merged, const json_t *config, const json_t *overrides)
{
    const json_t *value = json_object_get(overrides, dtype_keys[0]);
    if (value == NULL)
        value = json_object_get(overrides, dtype_keys[1]);
    bool old = json_object_get(config, "dtype") == NULL &&
               (json_object_get(config, "torch_dtype") != NULL ||
                json_object_get(overrides, "dtype") == NULL);
    for (int i = 0; i < 2; i++)
        json_object_del(merged, dtype_keys[i]);
    return set(merged, old ? "torch_dtype" : "dtype", value);
}

static enum tri_status apply(json_t *merged, const json_t *config, const json_t *overrides)
{
    TRI_TRY(check_known(config, overrides));
    TRI_TRY(check_twice(overrides));
    int bad = json_object_update(merged, (json_t *)(uintptr_t)overrides);
    if (bad == 0 && holds_any(overrides, dtype_keys, 2))
        bad = merge_dtype(merged, config, overrides);
    if (bad == 0 && holds_any(overrides, rope_keys, NUM_ROPE_KEYS))
        bad = merge_rope(merged, config, overrides);
    if (bad != 0)
        return tri_fail(TRI_NOMEM, "no memory to merge overrides into config.json");
    return TRI_OK;
}

enum tri_status tri_config_merge(const struct json_t *config, const struct json_t *overrides,
                                 struct json_t **out)
{
    if (!json_is_object(config))
        return tri_fail(TRI_FORMAT, "a config.json must hold an object: {\"model_type\": ...}");
    if (overrides != NULL && !json_is_object(overrides))
        return tri_fail(TRI_INVALID, "overrides of config.json must be an object: {\"key\": ...}");

    json_t *merged = json_copy((json_t *)(uintptr_t)config);
    if (merged == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a copy of config.json");
    enum tri_status st = overrides == NULL ? TRI_OK : apply(merged, config, overrides);
    if (st != TRI_OK) {
        json_decref(merged);
        return st;
    }
    *out = merged;
    return TRI_OK;
}
