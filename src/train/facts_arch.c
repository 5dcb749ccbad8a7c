/* An architecture as facts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "train/facts.h"

static void add_int(struct tri_text *facts, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    tri_facts_add(facts, key, text);
}

static void add_bool(struct tri_text *facts, const char *key, bool value)
{
    tri_facts_add(facts, key, value ? "true" : "false");
}

static void add_number(struct tri_text *facts, const char *key, double value)
{
    char text[32];
    tri_facts_add(facts, key, tri_number_text(value, text));
}

static const char *activation_name(enum tri_activation activation)
{
    switch (activation) {
    case TRI_ACT_SILU:
        return "silu";
    case TRI_ACT_GELU:
        return "gelu";
    case TRI_ACT_GELU_TANH:
        return "gelu_pytorch_tanh";
    case TRI_ACT_QUICK_GELU:
        return "quick_gelu";
    case TRI_ACT_RELU:
        return "relu";
    }
    return "unknown";
}

static void add_rope(struct tri_text *facts, const struct tri_arch *a)
{
    static const char *const types[] = {"default", "linear", "dynamic", "yarn", "llama3"};
    const struct tri_rope *r = &a->rope;
    tri_facts_add(facts, "rope_type", types[r->type]);
    add_number(facts, "rope_theta", r->theta);
    add_int(facts, "rotated elements of a head (partial_rotary_factor)", r->rotary_dim);
    add_number(facts, "rope factor", r->factor);
    add_int(facts, "original_max_position_embeddings", r->original_max_positions);
    /* Elsewhere it only bounds what people are told. */
    add_int(facts, "max_position_embeddings (of rope_type dynamic)",
            r->type == TRI_ROPE_DYNAMIC ? a->max_positions : 0);
    add_number(facts, "low_freq_factor", r->low_freq_factor);
    add_number(facts, "high_freq_factor", r->high_freq_factor);
    add_number(facts, "beta_fast", r->beta_fast);
    add_number(facts, "beta_slow", r->beta_slow);
    add_number(facts, "attention_factor", r->attention_factor);
    add_number(facts, "mscale", r->mscale);
    add_number(facts, "mscale_all_dim", r->mscale_all_dim);
    add_bool(facts, "truncate", r->truncate);
}

enum tri_status tri_facts_of_arch(const struct tri_arch *a, struct tri_text *out)
{
    tri_facts_add(out, "model_type", a->family);
    add_int(out, "vocab_size", a->vocab);
    add_int(out, "hidden_size", a->hidden);
    add_int(out, "num_hidden_layers", a->num_layers);
    add_int(out, "num_attention_heads", a->num_heads);
    add_int(out, "num_key_value_heads", a->num_kv_heads);
    add_int(out, "head_dim", a->head_dim);
    add_int(out, "intermediate_size", a->mlp_width);
    add_number(out, a->norm.kind == TRI_NORM_LAYER ? "layer_norm_eps" : "rms_norm_eps",
               a->norm.eps);
    add_rope(out, a);
    tri_facts_add(out, "hidden_act", activation_name(a->activation));
    add_bool(out, "a gated MLP", a->gated_mlp);
    add_bool(out, "use_parallel_residual", a->parallel_residual);
    add_bool(out, "a norm of queries and keys", a->qk_norm);
    add_bool(out, "attention_bias (queries, keys and values)", a->qkv_bias);
    add_bool(out, "attention_bias (output)", a->out_bias);
    add_bool(out, "mlp_bias", a->mlp_bias);
    add_bool(out, "norm bias", a->norm_bias);
    add_bool(out, "tie_word_embeddings", a->tied_embeddings);
    add_number(out, "initializer_range", a->init_range);
    add_int(out, "pad_token_id (embedding row without a gradient)", a->padding_row);
    for (int64_t l = 0; l < a->num_layers; l++) {
        char key[64];
        snprintf(key, sizeof key, "sliding_window of layer %" PRId64, l);
        add_int(out, key, a->window != NULL ? a->window[l] : 0);
    }
    return out->failed ? tri_fail(TRI_NOMEM, "no memory to compare models") : TRI_OK;
}
