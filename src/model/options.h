/* `model.*` of a recipe. */
#ifndef TRI_MODEL_OPTIONS_H
#define TRI_MODEL_OPTIONS_H

#include <stdbool.h>

#include "base/option.h"

struct tri_model_options {
    char *name_or_path; /* folder, or hub id found in the local cache; required */
    char *dtype;        /* auto, float32, bfloat16, float64; auto: what the backend does best */
    char *attn_implementation;          /* accepted and mapped to our kernel; eager is refused */
    char *init;                         /* checkpoint (default), random: from config.json alone */
    bool disable_activation_checkpoint; /* Arctic's name for activation_checkpointing: none */
    char *hf_config_kwargs; /* JSON text of members that replace those of config.json; or NULL */
    char *rope_type;        /* model.rope.*: NULL leaves the checkpoint's rotary embedding */
    double rope_factor;
    double rope_theta;
    int64_t rope_original_max_position_embeddings;
};

extern const struct tri_option_table tri_model_option_table;

#endif
