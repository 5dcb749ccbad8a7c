/* How a rotary embedding is stretched beyond the length of pretraining: the types, the members that
 * each of them has in rope_parameters or rope_scaling, and what their values must be. */
#include <string.h>

#include "model/config_read.h"

static const double max_factor = 1e9;
static const int64_t max_length = INT64_C(1) << 40;

enum key_bit {
    KEY_FACTOR = 1,
    KEY_ORIGINAL = 2,
    KEY_LOW = 4,
    KEY_HIGH = 8,
    KEY_ATTENTION = 16,
    KEY_FAST = 32,
    KEY_SLOW = 64,
    KEY_MSCALE = 128,
    KEY_MSCALE_ALL = 256,
    KEY_TRUNCATE = 512,
    KEY_COMMON = 1024, /* read elsewhere, for every type */
};

static const struct {
    const char *name;
    unsigned bit;
} keys[] = {
    {"factor", KEY_FACTOR},
    {"original_max_position_embeddings", KEY_ORIGINAL},
    {"low_freq_factor", KEY_LOW},
    {"high_freq_factor", KEY_HIGH},
    {"attention_factor", KEY_ATTENTION},
    {"beta_fast", KEY_FAST},
    {"beta_slow", KEY_SLOW},
    {"mscale", KEY_MSCALE},
    {"mscale_all_dim", KEY_MSCALE_ALL},
    {"truncate", KEY_TRUNCATE},
    {"rope_type", KEY_COMMON},
    {"type", KEY_COMMON},
    {"rope_theta", KEY_COMMON},
    {"partial_rotary_factor", KEY_COMMON},
    {"finetuned", KEY_COMMON}, /* a remark in some configs of 2023 */
};

/* By enum tri_rope_type: its name and the keys it may have. The original length tells nothing to
 * default and linear, where it is common and harmless. */
static const struct {
    const char *name;
    unsigned allowed;
} types[] = {
    [TRI_ROPE_DEFAULT] = {"default", KEY_ORIGINAL},
    [TRI_ROPE_LINEAR] = {"linear", KEY_FACTOR | KEY_ORIGINAL},
    [TRI_ROPE_DYNAMIC] = {"dynamic", KEY_FACTOR | KEY_ORIGINAL},
    [TRI_ROPE_YARN] = {"yarn", KEY_FACTOR | KEY_ORIGINAL | KEY_ATTENTION | KEY_FAST | KEY_SLOW |
                                   KEY_MSCALE | KEY_MSCALE_ALL | KEY_TRUNCATE},
    [TRI_ROPE_LLAMA3] = {"llama3", KEY_FACTOR | KEY_ORIGINAL | KEY_LOW | KEY_HIGH},
};
enum { NUM_TYPES = sizeof types / sizeof *types };

const char *tri_rope_type_name(enum tri_rope_type type)
{
    return types[type].name;
}

static enum tri_status read_type(const struct tri_config *o, enum tri_rope_type *type)
{
    const char *modern = NULL, *old = NULL;
    if (tri_config_has(o, "rope_type"))
        TRI_TRY(tri_config_string(o, "rope_type", &modern));
    if (tri_config_has(o, "type"))
        TRI_TRY(tri_config_string(o, "type", &old));
    char shown[2][TRI_SHOWN_BYTES];
    if (modern != NULL && old != NULL && strcmp(modern, old) != 0)
        return tri_fail(TRI_INVALID, "%s: %srope_type is %s but %stype is %s: keep one of the two",
                        o->what, o->inside,
                        tri_config_shown(json_object_get(o->object, "rope_type"), shown[0]),
                        o->inside, tri_config_shown(json_object_get(o->object, "type"), shown[1]));

    const char *name = modern != NULL ? modern : old != NULL ? old : "default";
    for (int i = 0; i < NUM_TYPES; i++)
        if (strcmp(types[i].name, name) == 0) {
            *type = (enum tri_rope_type)i;
            return TRI_OK;
        }
    const char *key = modern != NULL ? "rope_type" : "type";
    return tri_fail(TRI_UNSUPPORTED,
                    "%s: %s%s is %s: only default, linear, dynamic, yarn and llama3 are supported, "
                    "choose one of them (model.rope) or another model",
                    o->what, o->inside, key,
                    tri_config_shown(json_object_get(o->object, key), shown[0]));
}

/* Refuse members that this type does not have: they would be ignored. */
static enum tri_status check_keys(const struct tri_config *o, enum tri_rope_type type)
{
    const char *name;
    json_t *value;
    char shown[TRI_SHOWN_BYTES], shown_name[TRI_SHOWN_BYTES];
    json_object_foreach((json_t *)(uintptr_t)o->object, name, value)
    {
        unsigned bit = 0;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strcmp(keys[i].name, name) == 0)
                bit = keys[i].bit;
        if (json_is_null(value) || bit == KEY_COMMON || (bit & types[type].allowed) != 0)
            continue;
        /* A factor of 1 changes nothing in any type. */
        if (bit == KEY_FACTOR && json_is_number(value) && json_number_value(value) == 1.0)
            continue;
        json_t *name_text = json_string(name);
        tri_config_shown(name_text, shown_name);
        json_decref(name_text);
        if (json_is_object(value))
            return tri_fail(TRI_UNSUPPORTED,
                            "%s: %s holds %s: rotary embeddings that differ by layer are not "
                            "supported, choose another model",
                            o->what, o->inside, shown_name);
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: %s holds %s: %s, which rope_type %s does not have: remove it or "
                        "correct rope_type",
                        o->what, o->inside, shown_name, tri_config_shown(value, shown),
                        types[type].name);
    }
    return TRI_OK;
}

/* The length of pretraining, which may also stand at the top of the config. */
static enum tri_status read_original(const struct tri_config *c, const struct tri_config *o,
                                     int64_t max_positions, int64_t *out)
{
    static const char key[] = "original_max_position_embeddings";
    *out = max_positions;
    if (tri_config_has(c, key))
        TRI_TRY(tri_config_int(c, key, 1, max_length, out));
    if (!tri_config_has(o, key))
        return TRI_OK;
    int64_t inner = 0;
    TRI_TRY(tri_config_int(o, key, 1, max_length, &inner));
    if (tri_config_has(c, key) && inner != *out)
        return tri_fail(TRI_INVALID, "%s: %s is %lld but %s%s is %lld: keep one of the two",
                        c->what, key, (long long)*out, o->inside, key, (long long)inner);
    *out = inner;
    return TRI_OK;
}

static enum tri_status read_factor(const struct tri_config *o, const struct tri_rope *rope,
                                   int64_t max_positions, double *factor)
{
    const json_t *value = json_object_get(o->object, "factor");
    if (value == NULL)
        return tri_fail(TRI_INVALID, "%s: %sfactor is missing, rope_type %s needs it: give one",
                        o->what, o->inside, types[rope->type].name);
    if (json_is_null(value) && rope->type == TRI_ROPE_YARN) {
        *factor = (double)max_positions / (double)rope->original_max_positions;
        if (*factor < 1.0)
            return tri_fail(TRI_INVALID,
                            "%s: %sfactor is null and max_position_embeddings %lld is below "
                            "original_max_position_embeddings %lld: give a factor",
                            o->what, o->inside, (long long)max_positions,
                            (long long)rope->original_max_positions);
        return TRI_OK;
    }
    return tri_config_number(o, "factor", 1.0, max_factor, factor);
}

/* A number that may be null or absent: *value stays. */
static enum tri_status read_optional(const struct tri_config *o, const char *key, double min,
                                     double max, double *value)
{
    return tri_config_has(o, key) ? tri_config_number(o, key, min, max, value) : TRI_OK;
}

static enum tri_status read_yarn(const struct tri_config *o, struct tri_rope *rope)
{
    TRI_TRY(read_optional(o, "attention_factor", 1e-6, 1e6, &rope->attention_factor));
    TRI_TRY(read_optional(o, "mscale", 0.0, 1e6, &rope->mscale));
    TRI_TRY(read_optional(o, "mscale_all_dim", 0.0, 1e6, &rope->mscale_all_dim));
    TRI_TRY(read_optional(o, "beta_fast", 0.0, 1e9, &rope->beta_fast));
    TRI_TRY(read_optional(o, "beta_slow", 0.0, 1e9, &rope->beta_slow));
    rope->truncate = true;
    if (tri_config_has(o, "truncate"))
        TRI_TRY(tri_config_bool(o, "truncate", &rope->truncate));
    double fast = rope->beta_fast > 0.0 ? rope->beta_fast : 32.0;
    double slow = rope->beta_slow > 0.0 ? rope->beta_slow : 1.0;
    if (fast <= slow)
        return tri_fail(TRI_INVALID,
                        "%s: %sbeta_fast is %g and %sbeta_slow is %g: beta_fast must be greater",
                        o->what, o->inside, fast, o->inside, slow);
    return TRI_OK;
}

static enum tri_status read_llama3(const struct tri_config *o, struct tri_rope *rope)
{
    static const char *const need[] = {"low_freq_factor", "high_freq_factor"};
    for (int i = 0; i < 2; i++)
        if (!tri_config_has(o, need[i]))
            return tri_fail(TRI_INVALID, "%s: %s%s is missing, rope_type llama3 needs it: give one",
                            o->what, o->inside, need[i]);
    TRI_TRY(tri_config_number(o, need[0], 1e-6, max_factor, &rope->low_freq_factor));
    TRI_TRY(tri_config_number(o, need[1], 1e-6, max_factor, &rope->high_freq_factor));
    if (rope->high_freq_factor <= rope->low_freq_factor)
        return tri_fail(TRI_INVALID,
                        "%s: %shigh_freq_factor is %g and %slow_freq_factor is %g: "
                        "high_freq_factor must be greater",
                        o->what, o->inside, rope->high_freq_factor, o->inside,
                        rope->low_freq_factor);
    return TRI_OK;
}

enum tri_status tri_config_rope_stretch(const struct tri_config *c, const struct tri_config *o,
                                        int64_t max_positions, struct tri_rope *rope)
{
    TRI_TRY(read_type(o, &rope->type));
    TRI_TRY(check_keys(o, rope->type));
    if (rope->type == TRI_ROPE_DEFAULT)
        return TRI_OK;

    int64_t original = 0;
    if (rope->type == TRI_ROPE_YARN || rope->type == TRI_ROPE_LLAMA3)
        TRI_TRY(read_original(c, o, max_positions, &rope->original_max_positions));
    else if (rope->type == TRI_ROPE_DYNAMIC)
        TRI_TRY(read_original(c, o, max_positions, &original));
    if (rope->type == TRI_ROPE_DYNAMIC && original != max_positions)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: original_max_position_embeddings is %lld, but rope_type dynamic "
                        "stretches from max_position_embeddings (%lld): make them equal or choose "
                        "yarn",
                        c->what, (long long)original, (long long)max_positions);
    TRI_TRY(read_factor(o, rope, max_positions, &rope->factor));

    if (rope->type == TRI_ROPE_YARN)
        return read_yarn(o, rope);
    if (rope->type == TRI_ROPE_LLAMA3)
        return read_llama3(o, rope);
    if (rope->type == TRI_ROPE_DYNAMIC && rope->rotary_dim <= 2)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: rope_type dynamic with %lld rotated elements a head has no meaning: "
                        "choose linear",
                        c->what, (long long)rope->rotary_dim);
    return TRI_OK;
}
