/* Families of models as a table: the part of a family that config.json does not say. */
#ifndef TRI_MODEL_FAMILY_H
#define TRI_MODEL_FAMILY_H

#include "model/arch.h"

/* How the rows of a tensor of a checkpoint become rows of our parameter. */
enum tri_hf_map {
    TRI_HF_WHOLE,
    TRI_HF_Q, /* its part of TRI_QKV_W or TRI_QKV_B: Hq*D rows, then Hk*D, then Hk*D */
    TRI_HF_K,
    TRI_HF_V,
    TRI_HF_GATE, /* its half of TRI_MLP_IN_W or TRI_MLP_IN_B: F rows, then F */
    TRI_HF_UP,
    TRI_HF_QKV_BY_HEAD, /* rows [head][q, k, v][D]: every head brings its own three */
};

/* One tensor of a checkpoint. '#' in the name is the layer. A tensor whose parameter a model does
 * not have (a bias, a norm of q and k, the head of a tied model) is not expected in it. */
struct tri_hf_name {
    enum tri_role role;
    enum tri_hf_map map;
    const char *name; /* NULL ends the list */
};

/* A choice that config.json makes under `key`, or that the family made (key == NULL). */
struct tri_choice {
    const char *key;
    bool value; /* fixed, or when the key is absent */
};

/* Which layers use `sliding_window`. */
enum tri_window_rule {
    TRI_WINDOW_NONE,      /* the family has no window */
    TRI_WINDOW_ALL,       /* every layer; null: none */
    TRI_WINDOW_PER_LAYER, /* layer_types; else layers from max_window_layers, if
                             use_sliding_window is true */
};

/* Values are the defaults of the family's class in Transformers 5, used where a key is absent. */
struct tri_family {
    const char *model_type;
    const char *class_name;          /* architectures[0] */
    const struct tri_hf_name *names; /* in the order of the model */

    enum tri_norm_kind norm;
    const char *norm_eps_key;
    double norm_eps;
    const char *activation; /* hidden_act */
    bool gated_mlp;
    bool qk_norm;
    struct tri_choice qkv_bias, out_bias, mlp_bias, parallel_residual;

    enum tri_window_rule window_rule;
    int64_t window; /* 0: none */

    unsigned rope_types;          /* bit 1 << enum tri_rope_type: what the family may use */
    const char *rope_theta_key;   /* the spelling of Transformers 4 */
    const char *rope_partial_key; /* likewise */
    double rope_partial;

    int64_t vocab, hidden, num_layers, num_heads;
    int64_t num_kv_heads; /* 0: num_attention_heads; -1: the family has none of its own */
    int64_t head_dim;     /* 0: hidden_size / num_attention_heads; -1: always that */
    int64_t mlp_width, max_positions;
    bool trains_padding;   /* the embedding has no padding_idx, whatever pad_token_id says */
    int64_t bos, eos, pad; /* -1: none */
};

/* NULL for an unknown model_type. */
const struct tri_family *tri_family_find(const char *model_type);

/* "llama, mistral, ...": every known model_type, for messages. */
const char *tri_family_list(void);

/* Make the model of an architecture: its parameters, and where the tensors of a checkpoint of
 * `family` lie in them. Sizes in `arch` are within the bounds of config.c. The model takes over
 * arch->window on success. */
enum tri_status tri_model_build(const struct tri_arch *arch, const struct tri_family *family,
                                struct tri_model **out);

#endif
