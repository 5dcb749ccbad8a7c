/* Keys of a config.json that change what a model computes and that nothing here can honour.
 *
 * Hugging Face configs carry many keys that do nothing in a causal language model (use_cache,
 * classifier_dropout, ...), so unknown keys pass. These do not, unless their value is the one that
 * changes nothing. */
#include <string.h>

#include "model/config_read.h"

/* A value that leaves the computation alone, besides null and an absent key. */
enum neutral {
    NEUTRAL_NONE,
    NEUTRAL_ZERO, /* 0, 0.0 or false */
    NEUTRAL_ONE,  /* 1 or 1.0 */
    NEUTRAL_AT_MOST_ONE,
    NEUTRAL_TRUE,
    NEUTRAL_QK_NORM,  /* what the family has */
    NEUTRAL_QKV_BIAS, /* likewise */
};

struct refusal {
    const char *key;
    enum neutral neutral;
    const char *why; /* what it is, and what to do */
};

#define DROPOUT "dropout is not supported: set it to 0 (model.hf_config_kwargs)"
#define EXPERTS "mixtures of experts are not supported: choose a dense model"
#define LATENT  "multi-head latent attention is not supported: choose another model"
#define SOFTCAP "soft-capped logits are not supported: choose another model"
#define SINKS   "attention sinks are not supported: choose another model"
#define SCALES  "this multiplier is not part of the family's computation: choose another model"
#define BIASES  "the biases of the family are others: check model_type"
#define QK_NORM "it contradicts the norms of queries and keys of the family: check model_type"
#define WHOLE   "only decoders that read tokens alone are supported: choose another model"
#define NO_ROPE "only rotary position embeddings on every layer are supported: choose another model"

static const struct refusal refusals[] = {
    {"attention_dropout", NEUTRAL_ZERO, DROPOUT},
    {"hidden_dropout", NEUTRAL_ZERO, DROPOUT},
    {"resid_pdrop", NEUTRAL_ZERO, DROPOUT},
    {"embd_pdrop", NEUTRAL_ZERO, DROPOUT},
    {"attn_pdrop", NEUTRAL_ZERO, DROPOUT},
    {"attention_probs_dropout_prob", NEUTRAL_ZERO, DROPOUT},
    {"hidden_dropout_prob", NEUTRAL_ZERO, DROPOUT},
    {"residual_dropout", NEUTRAL_ZERO, DROPOUT},
    {"embedding_dropout", NEUTRAL_ZERO, DROPOUT},
    {"activation_dropout", NEUTRAL_ZERO, DROPOUT},
    {"layerdrop", NEUTRAL_ZERO, DROPOUT},
    {"dropout", NEUTRAL_ZERO, DROPOUT},

    {"num_experts", NEUTRAL_AT_MOST_ONE, EXPERTS},
    {"num_local_experts", NEUTRAL_AT_MOST_ONE, EXPERTS},
    {"n_routed_experts", NEUTRAL_ZERO, EXPERTS},
    {"n_shared_experts", NEUTRAL_ZERO, EXPERTS},
    {"moe_num_experts", NEUTRAL_AT_MOST_ONE, EXPERTS},
    {"num_experts_per_tok", NEUTRAL_AT_MOST_ONE, EXPERTS},

    {"kv_lora_rank", NEUTRAL_ZERO, LATENT},
    {"q_lora_rank", NEUTRAL_ZERO, LATENT},
    {"qk_rope_head_dim", NEUTRAL_ZERO, LATENT},
    {"qk_nope_head_dim", NEUTRAL_ZERO, LATENT},
    {"v_head_dim", NEUTRAL_ZERO, LATENT},

    {"attn_logit_softcapping", NEUTRAL_ZERO, SOFTCAP},
    {"final_logit_softcapping", NEUTRAL_ZERO, SOFTCAP},
    {"logits_soft_cap", NEUTRAL_ZERO, SOFTCAP},
    {"attention_sinks", NEUTRAL_ZERO, SINKS},
    {"attention_sink", NEUTRAL_ZERO, SINKS},
    {"attn_sinks", NEUTRAL_ZERO, SINKS},
    {"use_attention_sinks", NEUTRAL_ZERO, SINKS},
    {"num_sink_tokens", NEUTRAL_ZERO, SINKS},

    {"embedding_multiplier", NEUTRAL_ONE, SCALES},
    {"residual_multiplier", NEUTRAL_ONE, SCALES},
    {"attention_multiplier", NEUTRAL_NONE, SCALES},
    {"query_pre_attn_scalar", NEUTRAL_NONE, SCALES},
    {"logits_scaling", NEUTRAL_ONE, SCALES},
    {"logit_scale", NEUTRAL_ONE, SCALES},
    {"scale_emb", NEUTRAL_ONE, SCALES},
    {"scale_depth", NEUTRAL_NONE, SCALES},
    {"clip_qkv", NEUTRAL_NONE,
     "clipped queries, keys and values are not supported: choose another model"},

    {"use_bias", NEUTRAL_ZERO, BIASES},
    {"use_qkv_bias", NEUTRAL_QKV_BIAS, BIASES},
    {"qkv_bias", NEUTRAL_QKV_BIAS, BIASES},
    {"lm_head_bias", NEUTRAL_ZERO, BIASES},
    {"use_qk_norm", NEUTRAL_QK_NORM, QK_NORM},
    {"qk_layernorm", NEUTRAL_QK_NORM, QK_NORM},
    {"use_parallel_residual", NEUTRAL_ZERO,
     "the family has no parallel residual: check model_type"},
    {"parallel_attn", NEUTRAL_ZERO, "the family has no parallel residual: check model_type"},

    {"alibi", NEUTRAL_ZERO, NO_ROPE},
    {"use_alibi", NEUTRAL_ZERO, NO_ROPE},
    {"no_rope_layers", NEUTRAL_NONE, NO_ROPE},
    {"no_rope_layer_interval", NEUTRAL_NONE, NO_ROPE},
    {"mrope_section", NEUTRAL_NONE, NO_ROPE},
    {"rope_interleave", NEUTRAL_ZERO, "interleaved pairs are not supported: choose another model"},
    {"rope_interleaved", NEUTRAL_ZERO, "interleaved pairs are not supported: choose another model"},
    {"attention_chunk_size", NEUTRAL_NONE,
     "chunked local attention is not supported: choose another model"},

    {"is_causal", NEUTRAL_TRUE, WHOLE},
    {"use_bidirectional_attention", NEUTRAL_ZERO, WHOLE},
    {"is_encoder_decoder", NEUTRAL_ZERO, WHOLE},
    {"add_cross_attention", NEUTRAL_ZERO, WHOLE},
    {"cross_attention_layers", NEUTRAL_NONE, WHOLE},
    {"vision_config", NEUTRAL_NONE, WHOLE},
    {"num_nextn_predict_layers", NEUTRAL_ZERO,
     "layers that predict more than one token are not supported: set it to 0"},
    {"per_layer_config", NEUTRAL_NONE,
     "layers that differ in size are not supported: choose another model"},

    {"pretraining_tp", NEUTRAL_AT_MOST_ONE,
     "sliced products only change rounding: set it to 1 (model.hf_config_kwargs)"},
    {"quantization_config", NEUTRAL_NONE,
     "quantized weights cannot be trained: choose the model in float32, bfloat16 or float16"},
    {"compression_config", NEUTRAL_NONE,
     "compressed weights cannot be trained: choose the model in float32, bfloat16 or float16"},
};

static bool is_neutral(const json_t *value, enum neutral neutral, const struct tri_family *family)
{
    if (json_is_null(value))
        return true;
    bool number = json_is_number(value);
    double n = json_number_value(value);
    switch (neutral) {
    case NEUTRAL_NONE:
        return false;
    case NEUTRAL_ZERO:
        return json_is_false(value) || (number && n == 0.0);
    case NEUTRAL_ONE:
        return number && n == 1.0;
    case NEUTRAL_AT_MOST_ONE:
        return number && n >= 0.0 && n <= 1.0;
    case NEUTRAL_TRUE:
        return json_is_true(value);
    case NEUTRAL_QK_NORM:
        return json_is_boolean(value) && json_is_true(value) == family->qk_norm;
    case NEUTRAL_QKV_BIAS: /* with a key of its own the family does not read this one */
        return json_is_boolean(value) &&
               json_is_true(value) == (family->qkv_bias.key == NULL && family->qkv_bias.value);
    }
    return false;
}

/* attention_bias and mlp_bias in a family that has made that choice itself. */
static enum tri_status refuse_bias(const struct tri_config *c, const struct tri_family *family,
                                   const char *key, const struct tri_choice *choice)
{
    if (choice->key != NULL || !tri_config_has(c, key))
        return TRI_OK;
    bool value = choice->value;
    TRI_TRY(tri_config_bool(c, key, &value));
    if (value != choice->value)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: %s is %s, but in the family %s it is always %s: remove the key or "
                        "check model_type",
                        c->what, key, value ? "true" : "false", family->model_type,
                        choice->value ? "true" : "false");
    return TRI_OK;
}

enum tri_status tri_config_refuse(const struct tri_config *c, const struct tri_family *family)
{
    const char *parallel = family->parallel_residual.key;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        const json_t *value = json_object_get(c->object, r->key);
        if (value == NULL || is_neutral(value, r->neutral, family) ||
            (parallel != NULL && strcmp(parallel, r->key) == 0))
            continue;
        char text[TRI_SHOWN_BYTES];
        return tri_fail(TRI_UNSUPPORTED, "%s: %s is %s: %s", c->what, r->key,
                        tri_config_shown(value, text), r->why);
    }
    TRI_TRY(refuse_bias(c, family, "attention_bias", &family->qkv_bias));
    return refuse_bias(c, family, "mlp_bias", &family->mlp_bias);
}
