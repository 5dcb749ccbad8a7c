/* `data.*` of a recipe. */
#ifndef TRI_DATA_OPTIONS_H
#define TRI_DATA_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

enum tri_overlength {
    TRI_OVERLENGTH_ERROR,
    TRI_OVERLENGTH_DROP,
    TRI_OVERLENGTH_TRUNCATE,
    TRI_OVERLENGTH_SPLIT
};

/* What to do about a cache of tokens (data/cache/cache.h). */
enum tri_cache_use {
    TRI_CACHE_AUTO,    /* use it when it is there */
    TRI_CACHE_BUILD,   /* make it when it is not */
    TRI_CACHE_REQUIRE, /* it must be there */
    TRI_CACHE_OFF
};

enum tri_packing_strategy { TRI_PACKING_BEST_FIT, TRI_PACKING_IN_ORDER };

/* What a line of JSONL holds. */
enum tri_data_format {
    TRI_DATA_AUTO, /* told by its keys */
    TRI_DATA_MESSAGES,
    TRI_DATA_SHAREGPT,
    TRI_DATA_PROMPT, /* prompt and completion */
    TRI_DATA_ALPACA,
    TRI_DATA_TEXT,
    TRI_DATA_TOKENIZED
};

enum tri_on_bad_sample { TRI_BAD_ERROR, TRI_BAD_SKIP };

struct tri_data_options {
    char **sources; /* files or folders (.txt, .jsonl); num_sources of them; at least one */
    int64_t num_sources;
    char **weights; /* one number for each of the sources; none: all 1 */
    int64_t num_weights;
    char **eval_sources;
    int64_t num_eval_sources;
    int format;              /* enum tri_data_format, of every .jsonl file */
    int64_t max_length;      /* tokens of one sequence; 0: the longest sample of the data */
    int64_t eval_max_length; /* the same for eval_sources; 0: max_length */
    int overlength;    /* enum tri_overlength; error by default: tokens are never lost silently */
    int on_bad_sample; /* enum tri_on_bad_sample */
    int cache;         /* enum tri_cache_use */
    bool pack_samples; /* several documents in one sequence, isolated from each other */
    int packing_strategy; /* enum tri_packing_strategy */
    bool group_by_length; /* sequences of a step have similar lengths */
    bool shuffle;         /* order depends only on seed and epoch */
    int64_t seed;         /* -1: the run's seed */
    char *tokenizer;      /* auto: tokenizer.json of the model, else bytes; bytes */
    bool mask_inputs;     /* prompts and questions are not trained */
    bool mask_history;    /* nor is what comes before the last question */
    bool ignore_empty_think;
    char **roles_to_train; /* num_roles_to_train of them; none: assistant */
    int64_t num_roles_to_train;
    char *chat_template;        /* auto: the model's own; chatml; alpaca; a path */
    char *chat_template_kwargs; /* JSON of an object, or NULL */
    char *chat_date;            /* YYYY-MM-DD */
    char *cache_dir;       /* for unpacked copies of compressed files; NULL: that of the user */
    bool add_bos, add_eos; /* around each text document, when the tokenizer has them */
};

extern const struct tri_option_table tri_data_option_table;

#endif
