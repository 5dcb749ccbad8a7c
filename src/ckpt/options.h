/* `checkpoint.*` of a recipe. Arctic's list form (one entry) is accepted as well. */
#ifndef TRI_CKPT_OPTIONS_H
#define TRI_CKPT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

struct tri_ckpt_options {
    char *output_dir;            /* required by train */
    int64_t save_every_n_steps;  /* 0: never by steps */
    double save_every_n_minutes; /* 0: never by time */
    bool save_end_of_training;   /* true */
    bool save_first_step;        /* false; save once early, before hours are spent */
    int64_t save_total_limit;    /* 2: checkpoint-N folders kept; 0: all */
    bool auto_resume;            /* true: go on from the newest complete checkpoint */
    double max_shard_gb;         /* 5: size of one safetensors file */
};

extern const struct tri_option_table tri_ckpt_option_table;

#endif
