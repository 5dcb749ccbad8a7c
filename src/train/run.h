/* A run: everything that a recipe names, opened and ready. */
#ifndef TRI_TRAIN_RUN_H
#define TRI_TRAIN_RUN_H

#include "base/json.h"
#include "ckpt/hf_source.h"
#include "data/loader.h"
#include "optim/schedule.h"
#include "recipe/recipe.h"
#include "shard/mesh.h"
#include "train/trainer.h"
#include "train/work.h"

enum tri_run_purpose { TRI_RUN_TRAIN, TRI_RUN_EVAL };

/* What a run has done so far: all that a checkpoint must remember beside tensors. */
struct tri_run_state {
    int64_t step;                      /* optimizer steps done */
    int64_t tokens;                    /* over all steps */
    int64_t trained;                   /* of them trained on */
    double loss_average;               /* exponential moving average, for people */
    struct tri_data_position position; /* the next sequence */
};

struct tri_run {
    struct tri_recipe *recipe;    /* not owned */
    struct tri_mesh mesh;         /* which ranks share the work, and which of them this is */
    char *model_folder;           /* where config.json and weights are */
    struct tri_hf_source *source; /* the folder's small files, for saving; else NULL */
    json_t *overrides;            /* what the recipe lays over config.json; or NULL */
    struct tri_model *model;
    struct tri_backend *backend;
    enum tri_dtype act;
    struct tri_tokenizer *tokenizer;
    struct tri_dataset *data; /* NULL when only evaluating */
    struct tri_dataset *eval; /* NULL without data.eval_sources */
    struct tri_loader *loader;
    struct tri_trainer *trainer;
    struct tri_schedule_plan schedule;
    struct tri_run_state state;
    struct tri_heartbeat *heartbeat; /* of the first rank while it trains; else NULL */
    int zero_stage;                  /* what the ranks divide among them; 0 with one */
    size_t planned_bytes;            /* backend memory that the longest step takes */
    struct tri_work work;            /* what passes belong to now */
    double roof_flops;               /* measured rate of a large product */
    bool has_weights;                /* those that the recipe starts from */
};

/* Open everything in the order in which a mistake is cheapest to find: model, machine, data,
 * memory, weights unless a checkpoint has others. Nothing is written. */
enum tri_status tri_run_open(struct tri_recipe *recipe, enum tri_run_purpose purpose,
                             struct tri_comm *world, struct tri_run **out);
void tri_run_close(struct tri_run *run);

/* Only the model and the machine (for `rehearse`, which needs no data or weights). */
enum tri_status tri_run_open_model(struct tri_recipe *recipe, struct tri_run **out);

/* Only the data and what reads it: config, tokenizer, datasets, loader (for `data`, which needs no
 * weights and no machine). */
enum tri_status tri_run_open_data(struct tri_recipe *recipe, struct tri_run **out);

/* Mean loss over all sequences of data.eval_sources, forward only; of the whole job, equal on all
 * ranks (eval.c). */
struct tri_eval_result {
    double loss;
    int64_t tokens, trained, sequences;
    double seconds;
    int64_t stop; /* the signal that broke it off between two sequences, or 0; then nothing else is
                   * set. Only where tri_stop_watch was called */
};
enum tri_status tri_run_eval(struct tri_run *run, struct tri_eval_result *out);

/* Train to the end, or to the next step boundary after SIGTERM or SIGINT (loop.c). */
enum tri_status tri_run_train(struct tri_run *run);

#endif
