/* The top level of a recipe: how long to train and what to say on the way. */
#ifndef TRI_TRAIN_OPTIONS_H
#define TRI_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

/* A stage of zero/zero.h is 1 less. */
enum tri_zero_choice { TRI_ZERO_AUTO, TRI_ZERO_FIRST };

struct tri_train_options {
    char *type;               /* causal, sft: accepted; dpo is refused */
    double epochs;            /* 1 */
    int64_t train_iters;      /* optimizer steps; 0: by epochs */
    int64_t exit_iteration;   /* stop (and save) after this step without changing the schedule; 0 */
    int64_t micro_batch_size; /* sequences of one micro-batch; 1 */
    int64_t gradient_accumulation_steps; /* 1 */
    double gradient_clipping;            /* 1.0; 0: off */
    int64_t seed;                        /* 42 */
    int64_t eval_interval;               /* steps; 0: never */
    bool disable_in_eval;                /* evaluate whole sequences on each rank; false */
    bool overfit_first_batch;            /* train on the first step's data again and again */
    int64_t log_interval;                /* steps between printed lines; 1. metrics.jsonl has all */
    char **report_to;                    /* files of metrics beside metrics.jsonl */
    int64_t num_report_to;
    int64_t ranks;                  /* ranks to start on this machine; 0: all cards, 1 on the CPU */
    int64_t sequence_parallel_size; /* ranks that share a sequence; 0: what heads allow */
    int zero_stage;                 /* enum tri_zero_choice; auto */
    double comm_timeout;            /* seconds that a rank waits for the others; 600 */
    char *log_level;                /* error, warn, info, debug */
};

extern const struct tri_option_table tri_train_option_table;

#endif
