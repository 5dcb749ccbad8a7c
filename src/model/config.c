/* config.json becomes struct tri_arch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "model/config_read.h"

enum { CONFIG_LIMIT_BYTES = 16 << 20 };

/* Bounds of sizes: far above any model, and so low that no product of them leaves 63 bits and the
 * description of a model stays small. */
static const int64_t max_layers = 4096, max_heads = 1 << 14, max_head_dim = 1 << 12,
                     max_hidden = 1 << 20, max_mlp_width = 1 << 24, max_vocab = 1 << 24,
                     max_positions = INT64_C(1) << 40, max_elements = INT64_C(1) << 46;

static enum tri_status find_family(const struct tri_config *c, const struct tri_family **out)
{
    char text[TRI_SHOWN_BYTES];
    const char *type = NULL;
    TRI_TRY(tri_config_string(c, "model_type", &type));
    if (type == NULL)
        return tri_fail(TRI_INVALID, "%s: model_type is missing: give one of %s", c->what,
                        tri_family_list());
    *out = tri_family_find(type);
    if (*out == NULL)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: model_type is %s, known are %s: choose one of these, or add an entry "
                        "to the table in src/model/family.c",
                        c->what, tri_config_shown(json_object_get(c->object, "model_type"), text),
                        tri_family_list());
    return TRI_OK;
}

/* A head other than that of a language model (classification, embedding) is another computation. */
static enum tri_status read_class(const struct tri_config *c, const struct tri_family *family,
                                  struct tri_arch *a)
{
    snprintf(a->family, sizeof a->family, "%s", family->model_type);
    snprintf(a->class_name, sizeof a->class_name, "%s", family->class_name);
    if (!tri_config_has(c, "architectures"))
        return TRI_OK;
    char text[TRI_SHOWN_BYTES];
    const json_t *list = json_object_get(c->object, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    if (json_is_array(list) && json_array_size(list) == 0)
        return TRI_OK;
    if (name == NULL || strcmp(name, family->class_name) != 0)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: architectures is %s, but model_type %s trains as %s: choose a causal "
                        "language model, or override architectures if it is one",
                        c->what, tri_config_shown(list, text), family->model_type,
                        family->class_name);
    return TRI_OK;
}

/* An integer whose null means `when_null`. */
static enum tri_status read_nullable(const struct tri_config *c, const char *key, int64_t max,
                                     int64_t when_null, int64_t *value)
{
    if (!json_is_null(json_object_get(c->object, key)))
        return tri_config_int(c, key, 1, max, value);
    *value = when_null;
    return TRI_OK;
}

static enum tri_status read_heads(const struct tri_config *c, const struct tri_family *family,
                                  struct tri_arch *a)
{
    a->num_heads = family->num_heads;
    TRI_TRY(tri_config_int(c, "num_attention_heads", 1, max_heads, &a->num_heads));

    a->num_kv_heads = family->num_kv_heads;
    TRI_TRY(read_nullable(c, "num_key_value_heads", max_heads, 0, &a->num_kv_heads));
    if (a->num_kv_heads <= 0)
        a->num_kv_heads = a->num_heads;
    if (family->num_kv_heads < 0 && a->num_kv_heads != a->num_heads)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: num_key_value_heads is %lld, but the family %s has a key and value "
                        "head for each of its %lld heads: remove the key or check model_type",
                        c->what, (long long)a->num_kv_heads, family->model_type,
                        (long long)a->num_heads);
    if (a->num_heads % a->num_kv_heads != 0)
        return tri_fail(TRI_INVALID,
                        "%s: num_attention_heads %lld is not a multiple of num_key_value_heads "
                        "%lld: correct one of them",
                        c->what, (long long)a->num_heads, (long long)a->num_kv_heads);

    a->head_dim = family->head_dim;
    TRI_TRY(read_nullable(c, "head_dim", max_head_dim, 0, &a->head_dim));
    bool derived = a->head_dim <= 0;
    if ((derived || family->head_dim < 0) && a->hidden % a->num_heads != 0)
        return tri_fail(TRI_INVALID,
                        "%s: hidden_size %lld is not a multiple of num_attention_heads %lld: "
                        "correct one of them%s",
                        c->what, (long long)a->hidden, (long long)a->num_heads,
                        family->head_dim < 0 ? "" : " or give head_dim");
    if (derived)
        a->head_dim = a->hidden / a->num_heads;
    if (family->head_dim < 0 && a->head_dim * a->num_heads != a->hidden)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: head_dim is %lld, but in the family %s it is hidden_size / "
                        "num_attention_heads = %lld: remove the key",
                        c->what, (long long)a->head_dim, family->model_type,
                        (long long)(a->hidden / a->num_heads));
    if (a->head_dim % 2 != 0 || a->head_dim > max_head_dim)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: head_dim is %lld: rotary embeddings need an even size of at most "
                        "%lld",
                        c->what, (long long)a->head_dim, (long long)max_head_dim);
    return TRI_OK;
}

static enum tri_status read_sizes(const struct tri_config *c, const struct tri_family *family,
                                  struct tri_arch *a)
{
    a->vocab = family->vocab;
    a->hidden = family->hidden;
    a->num_layers = family->num_layers;
    a->mlp_width = family->mlp_width;
    a->max_positions = family->max_positions;
    TRI_TRY(tri_config_int(c, "vocab_size", 1, max_vocab, &a->vocab));
    TRI_TRY(tri_config_int(c, "hidden_size", 1, max_hidden, &a->hidden));
    TRI_TRY(tri_config_int(c, "num_hidden_layers", 1, max_layers, &a->num_layers));
    TRI_TRY(tri_config_int(c, "intermediate_size", 1, max_mlp_width, &a->mlp_width));
    TRI_TRY(tri_config_int(c, "max_position_embeddings", 1, max_positions, &a->max_positions));
    TRI_TRY(read_heads(c, family, a));

    int64_t per_layer = a->hidden * (2 * a->head_dim * (a->num_heads + a->num_kv_heads) +
                                     (family->gated_mlp ? 3 : 2) * a->mlp_width);
    int64_t elements = a->num_layers * per_layer + 2 * a->vocab * a->hidden;
    if (elements > max_elements)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: the sizes give about %.3g parameters, more than %.3g: correct them",
                        c->what, (double)elements, (double)max_elements);
    return TRI_OK;
}

static enum tri_status read_activation(const struct tri_config *c, const char *fallback,
                                       enum tri_activation *out)
{
    static const struct {
        const char *name;
        enum tri_activation value;
    } known[] = {
        {"silu", TRI_ACT_SILU},
        {"swish", TRI_ACT_SILU},
        {"gelu", TRI_ACT_GELU},
        {"gelu_python", TRI_ACT_GELU},
        {"gelu_new", TRI_ACT_GELU_TANH},
        {"gelu_pytorch_tanh", TRI_ACT_GELU_TANH},
        {"gelu_python_tanh", TRI_ACT_GELU_TANH},
        {"gelu_fast", TRI_ACT_GELU_TANH},
        {"gelu_accurate", TRI_ACT_GELU_TANH},
        {"quick_gelu", TRI_ACT_QUICK_GELU},
        {"relu", TRI_ACT_RELU},
    };
    const char *name = fallback;
    TRI_TRY(tri_config_string(c, "hidden_act", &name));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            *out = known[i].value;
            return TRI_OK;
        }
    char text[TRI_SHOWN_BYTES];
    return tri_fail(TRI_UNSUPPORTED,
                    "%s: hidden_act is %s, supported are silu, gelu, gelu_new, gelu_pytorch_tanh, "
                    "gelu_fast, quick_gelu and relu: choose another model",
                    c->what, tri_config_shown(json_object_get(c->object, "hidden_act"), text));
}

static enum tri_status read_choice(const struct tri_config *c, const struct tri_choice *choice,
                                   bool *out)
{
    *out = choice->value;
    return choice->key == NULL ? TRI_OK : tri_config_bool(c, choice->key, out);
}

static enum tri_status read_block(const struct tri_config *c, const struct tri_family *family,
                                  struct tri_arch *a)
{
    a->norm.kind = family->norm;
    a->norm.eps = family->norm_eps;
    TRI_TRY(tri_config_number(c, family->norm_eps_key, 1e-30, 1.0, &a->norm.eps));
    TRI_TRY(read_activation(c, family->activation, &a->activation));
    a->gated_mlp = family->gated_mlp;
    a->qk_norm = family->qk_norm;
    a->norm_bias = family->norm == TRI_NORM_LAYER;
    TRI_TRY(read_choice(c, &family->parallel_residual, &a->parallel_residual));
    TRI_TRY(read_choice(c, &family->qkv_bias, &a->qkv_bias));
    TRI_TRY(read_choice(c, &family->out_bias, &a->out_bias));
    TRI_TRY(read_choice(c, &family->mlp_bias, &a->mlp_bias));
    TRI_TRY(tri_config_bool(c, "tie_word_embeddings", &a->tied_embeddings));
    a->init_range = 0.02;
    return tri_config_number(c, "initializer_range", 0.0, 1.0, &a->init_range);
}

static enum tri_status read_dtype(const struct tri_config *c, struct tri_arch *a)
{
    const char *modern = NULL, *old = NULL;
    if (tri_config_has(c, "dtype"))
        TRI_TRY(tri_config_string(c, "dtype", &modern));
    if (tri_config_has(c, "torch_dtype"))
        TRI_TRY(tri_config_string(c, "torch_dtype", &old));
    char shown[2][TRI_SHOWN_BYTES];
    if (modern != NULL && old != NULL && strcmp(modern, old) != 0)
        return tri_fail(TRI_INVALID, "%s: dtype is %s but torch_dtype is %s: keep one of the two",
                        c->what, tri_config_shown(json_object_get(c->object, "dtype"), shown[0]),
                        tri_config_shown(json_object_get(c->object, "torch_dtype"), shown[1]));

    const char *key = modern != NULL ? "dtype" : "torch_dtype";
    const char *name = modern != NULL ? modern : old;
    if (name == NULL || strcmp(name, "auto") == 0)
        return TRI_OK;
    static const enum tri_dtype known[] = {TRI_F32, TRI_BF16, TRI_F16, TRI_F64};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(tri_dtype_name(known[i]), name) == 0) {
            snprintf(a->dtype, sizeof a->dtype, "%s", name);
            return TRI_OK;
        }
    return tri_fail(TRI_UNSUPPORTED,
                    "%s: %s is %s: only float32, bfloat16, float16 and float64 are supported",
                    c->what, key, tri_config_shown(json_object_get(c->object, key), shown[0]));
}

/* A token id; of a list the first one. Ids outside the vocabulary occur on the hub (pad_token_id
 * -1, or one past an embedding that was never resized): such a token does not exist. */
static enum tri_status read_token(const struct tri_config *c, const char *key, int64_t fallback,
                                  int64_t vocab, int64_t *out)
{
    *out = fallback < vocab ? fallback : -1;
    const json_t *value = json_object_get(c->object, key);
    if (value == NULL)
        return TRI_OK;
    if (json_is_array(value))
        value = json_array_get(value, 0);
    *out = -1;
    if (value == NULL || json_is_null(value))
        return TRI_OK;
    char text[TRI_SHOWN_BYTES];
    if (!json_is_integer(value))
        return tri_fail(TRI_INVALID, "%s: %s is %s: give a token id, a list of them or null",
                        c->what, key, tri_config_shown(value, text));
    json_int_t id = json_integer_value(value);
    if (id >= vocab)
        tri_warn("%s: %s is %lld, outside the vocabulary of %lld: taken as absent", c->what, key,
                 (long long)id, (long long)vocab);
    else if (id >= 0)
        *out = id;
    return TRI_OK;
}

/* What the attention was written for, if the file pins it. A null pins nothing. */
static void read_attention(const struct tri_config *c, struct tri_arch *a)
{
    static const char *const keys[] = {"_attn_implementation", "attn_implementation"};
    for (int i = 0; i < 2; i++) {
        const char *name = json_string_value(json_object_get(c->object, keys[i]));
        if (name != NULL && a->attn_implementation[0] == '\0')
            snprintf(a->attn_implementation, sizeof a->attn_implementation, "%s", name);
    }
}

static enum tri_status read_arch(const struct tri_config *c, const struct tri_family *family,
                                 struct tri_arch *a)
{
    TRI_TRY(read_class(c, family, a));
    TRI_TRY(tri_config_refuse(c, family));
    TRI_TRY(read_sizes(c, family, a));
    TRI_TRY(read_block(c, family, a));
    TRI_TRY(read_dtype(c, a));
    read_attention(c, a);
    TRI_TRY(read_token(c, "bos_token_id", family->bos, a->vocab, &a->bos));
    TRI_TRY(read_token(c, "eos_token_id", family->eos, a->vocab, &a->eos));
    TRI_TRY(read_token(c, "pad_token_id", family->pad, a->vocab, &a->pad));
    a->padding_row = family->trains_padding ? -1 : a->pad;
    TRI_TRY(tri_config_rope(c, family, a->head_dim, a->max_positions, &a->rope));
    return tri_config_windows(c, family, a->num_layers, &a->window);
}

/* The object of a config.json becomes a model. */
static enum tri_status make_model(const struct tri_config *c, struct tri_model **out)
{
    struct tri_arch arch = {0};
    const struct tri_family *family = NULL;
    TRI_TRY(find_family(c, &family));
    TRI_TRY(read_arch(c, family, &arch));
    enum tri_status st = tri_model_build(&arch, family, out);
    if (st != TRI_OK)
        free(arch.window);
    return st;
}

enum tri_status tri_model_parse(const char *what, const char *text, size_t bytes,
                                const struct json_t *overrides, struct tri_model **out)
{
    json_t *file = NULL, *merged = NULL;
    TRI_TRY(tri_json_parse(what, text, bytes, &file));
    enum tri_status st = tri_config_merge(file, overrides, &merged);
    if (st != TRI_OK) {
        tri_error_prefix("%s", what);
    } else {
        struct tri_config config = {what, "", merged};
        st = make_model(&config, out);
    }
    json_decref(merged);
    json_decref(file);
    return st;
}

enum tri_status tri_model_open(const char *path, const struct json_t *overrides,
                               struct tri_model **out)
{
    char *text = NULL;
    size_t bytes = 0;
    TRI_TRY(tri_file_read(path, CONFIG_LIMIT_BYTES, &text, &bytes));
    enum tri_status st = tri_model_parse(path, text, bytes, overrides, out);
    free(text);
    return st;
}
