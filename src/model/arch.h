/* What a model is, as data: one block description serves every family.
 *
 * config.json becomes this struct (family.c). A new family is one entry in the table there: the
 * names of its tensors, and where its choices differ from the usual. */
#ifndef TRI_MODEL_ARCH_H
#define TRI_MODEL_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "base/status.h"

enum tri_rope_type {
    TRI_ROPE_DEFAULT,
    TRI_ROPE_LINEAR,
    TRI_ROPE_DYNAMIC,
    TRI_ROPE_YARN,
    TRI_ROPE_LLAMA3
};

/* Rotary position embedding. Fields that a type does not use are 0. */
struct tri_rope {
    enum tri_rope_type type;
    double theta;
    int64_t rotary_dim;             /* R: elements of each head that turn (partial rotary); even */
    double factor;                  /* linear, dynamic, yarn, llama3 */
    int64_t original_max_positions; /* yarn, llama3 */
    double low_freq_factor, high_freq_factor;                              /* llama3 */
    double beta_fast, beta_slow, attention_factor, mscale, mscale_all_dim; /* yarn; 0: not given */
    bool truncate;                                                         /* yarn */
};

struct tri_arch {
    char family[32];      /* model_type: "llama", "qwen3", ... */
    char class_name[64];  /* architectures[0], for the exported config.json */
    int64_t vocab;        /* V */
    int64_t hidden;       /* E */
    int64_t num_layers;   /* L */
    int64_t num_heads;    /* Hq */
    int64_t num_kv_heads; /* Hk, divides Hq */
    int64_t head_dim;     /* D */
    int64_t mlp_width;    /* F */
    int64_t max_positions;
    struct tri_norm norm;
    struct tri_rope rope;
    enum tri_activation activation;
    bool gated_mlp;
    bool parallel_residual; /* y = x + attn(norm1 x) + mlp(norm2 x) */
    bool qk_norm;           /* RMSNorm over D on each query and key head, before RoPE */
    bool qkv_bias, out_bias, mlp_bias, norm_bias;
    bool tied_embeddings;
    double init_range; /* standard deviation of random weights */
    int64_t *window;   /* (L) sliding window of each layer, 0: full attention */
    char dtype[16];    /* "float32", "bfloat16", ...: as in config.json; empty if absent */
    char attn_implementation[48]; /* that config.json pins; empty if it pins none */
    int64_t padding_row;          /* embedding row that gets no gradient from the tokens (PyTorch's
                                     padding_idx); -1: none */
    int64_t bos, eos, pad;        /* -1: absent */
};

/* What a parameter is within its layer. Layer parameters come first. */
enum tri_role {
    TRI_NORM1_W,
    TRI_NORM1_B,
    TRI_QKV_W, /* ((Hq + 2 Hk) * D, E): rows of q, then k, then v */
    TRI_QKV_B,
    TRI_Q_NORM, /* (D) */
    TRI_K_NORM,
    TRI_ATTN_OUT_W, /* (E, Hq * D) */
    TRI_ATTN_OUT_B,
    TRI_NORM2_W,
    TRI_NORM2_B,
    TRI_MLP_IN_W, /* (2F, E): rows of gate, then up; (F, E) without a gate */
    TRI_MLP_IN_B,
    TRI_MLP_OUT_W, /* (E, F) */
    TRI_MLP_OUT_B,
    TRI_NUM_LAYER_ROLES,
    TRI_EMBED = TRI_NUM_LAYER_ROLES, /* (V, E) */
    TRI_FINAL_NORM_W,
    TRI_FINAL_NORM_B,
    TRI_HEAD_W, /* (V, E); the embedding itself when tied */
    TRI_NUM_ROLES,
};

struct tri_param {
    enum tri_role role;
    int64_t layer; /* -1 for parameters outside the layers */
    int num_dims;  /* 1 or 2 */
    int64_t dim[2];
    int64_t offset; /* first element in the flat parameter buffer; a multiple of 64 */
    bool decay;     /* weight decay applies: two or more dimensions */
};

/* Elements of a row: a 1-D parameter has as many rows as elements. */
static inline int64_t tri_param_width(const struct tri_param *param)
{
    return param->num_dims == 2 ? param->dim[1] : 1;
}

/* Where the rows of a Hugging Face tensor lie in ours: for each b in [0, blocks),
 * its rows [src_row + b*src_step, + rows) are our rows [dst_row + b*dst_step, + rows) of `param`.
 * A 1-D tensor counts its elements as rows. */
struct tri_hf_part {
    int param;
    int64_t src_row, src_step, dst_row, dst_step, rows, blocks;
};

struct tri_hf_tensor {
    char name[112];
    int num_dims;
    int64_t dim[2];
    int num_parts;
    struct tri_hf_part part[3];
};

struct tri_model {
    struct tri_arch arch;
    struct tri_param *params; /* ordered by place: embedding, layers, final norm, head */
    int num_params;
    /* What is used together: the embedding, each layer, the final norm with the head. */
    int num_units;                           /* L + 2 */
    int64_t *unit_begin;                     /* (num_units + 1) first elements in the flat buffer */
    int64_t num_elements;                    /* of the flat buffer, padding included */
    int64_t num_weights;                     /* real parameters, for people */
    int (*layer_param)[TRI_NUM_LAYER_ROLES]; /* (L) index into params, or -1 */
    int outer_param[TRI_NUM_ROLES];          /* by role >= TRI_EMBED; -1 if absent or tied */
    struct tri_hf_tensor *hf;                /* every tensor of a Hugging Face checkpoint */
    int num_hf;
};

/* Read a model's config.json (`path` is the file). Both spellings of today's hub are understood.
 * What cannot be honoured is TRI_UNSUPPORTED and named. `overrides` is NULL or a JSON object that
 * tri_config_merge lays over the file first (recipe: model.hf_config_kwargs, model.rope). */
struct json_t;
enum tri_status tri_model_open(const char *path, const struct json_t *overrides,
                               struct tri_model **out);

/* The same from the text of a config.json; `what` names it in errors. The text need not end in a
 * zero byte and may be hostile: little memory is used whatever it says. */
enum tri_status tri_model_parse(const char *what, const char *text, size_t bytes,
                                const struct json_t *overrides, struct tri_model **out);

/* A config.json (as an object) with members replaced by those of `overrides`, whole ones: members
 * of an object are not mixed. One setting never ends up in two spellings: an override of rope_* or
 * dtype replaces the file's other spelling too and is written in the file's. A new rotary embedding
 * that says nothing of rope_theta or partial_rotary_factor keeps those of the file, for they belong
 * to the weights. The caller json_decref()s *out. */
enum tri_status tri_config_merge(const struct json_t *config, const struct json_t *overrides,
                                 struct json_t **out);

void tri_model_close(struct tri_model *model);

/* R/2 rotation frequencies for documents of `length` tokens (only `dynamic` looks at it and at
 * `max_positions`) and the factor that yarn puts on cos and sin (1 for the others). `inv_freq` has
 * room for rotary_dim/2 doubles. */
void tri_rope_frequencies(const struct tri_rope *rope, int64_t max_positions, int64_t length,
                          double *inv_freq, double *scale);

/* Index of a layer's parameter, or of one outside the layers (`layer` is not looked at); -1 if the
 * model has none. TRI_HEAD_W of a tied model is the embedding. */
int tri_model_param(const struct tri_model *model, int64_t layer, enum tri_role role);

/* The unit that a parameter belongs to: 0 is the embedding, 1 + l layer l. */
int tri_model_unit(const struct tri_model *model, int param);

/* View of a parameter whose unit begins at `unit`, in a buffer of `dtype` laid out like the
 * parameters. */
struct tri_view tri_param_view(const struct tri_model *model, int param, void *unit,
                               enum tri_dtype dtype);

/* Multiply-adds times two of the linear layers for one token, forward (lm head included). */
double tri_model_linear_flops(const struct tri_model *model);

#endif
