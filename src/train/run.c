#include "train/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "ckpt/hf.h"
#include "model/overrides.h"
#include "train/checkpoint_list.h"
#include "train/changes.h"
#include "train/facts.h"
#include "train/length.h"
#include "train/machine.h"
#include "train/run_private.h"
#include "train/warnings.h"

/* The recipe may name the attention that the checkpoint pins, or none. Whatever the name, our own
 * kernel computes it. */
static enum tri_status check_attention(const struct tri_run *run)
{
    const char *asked = run->recipe->model.attn_implementation;
    const char *pinned = run->model->arch.attn_implementation;
    if (asked == NULL || strcmp(asked, "auto") == 0 || pinned[0] == '\0' ||
        strcmp(asked, pinned) == 0)
        return TRI_OK;
    return tri_fail(TRI_INVALID,
                    "%s: model.attn_implementation %s does not match the %s that %s/config.json "
                    "pins: leave it out, or give the same",
                    run->recipe->path, asked, pinned, run->model_folder);
}

static enum tri_status open_model(struct tri_run *run)
{
    const struct tri_recipe *r = run->recipe;
    TRI_TRY(tri_hf_find(r->model.name_or_path, &run->model_folder));
    TRI_TRY(tri_model_overrides(&r->model, &run->overrides));
    char *config = tri_path_join(run->model_folder, "config.json");
    if (config == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    enum tri_status st = tri_model_open(config, run->overrides, &run->model);
    free(config);
    return st != TRI_OK ? st : check_attention(run);
}

/* The model that is trained from must survive the run: its folder is not written to. */
static enum tri_status check_output(const struct tri_run *run)
{
    const char *output = run->recipe->checkpoint.output_dir;
    struct stat a, b;
    if (output == NULL || output[0] == '\0')
        return tri_fail(TRI_INVALID,
                        "%s: checkpoint.output_dir is missing: name the folder that the run writes "
                        "into",
                        run->recipe->path);
    if (stat(output, &a) == 0 && stat(run->model_folder, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return tri_fail(TRI_INVALID,
                        "%s: checkpoint.output_dir %s is the folder of the model to start from, "
                        "which would be overwritten: choose another folder",
                        run->recipe->path, output);
    return TRI_OK;
}

/* Ranks that are threads share the cores. */
static enum tri_status share_cores(struct tri_run *run)
{
    char text[32];
    struct tri_pass_options *pass = &run->recipe->pass;
    if (run->mesh.world == NULL || pass->threads > 0)
        return TRI_OK;
    int64_t cores = sysconf(_SC_NPROCESSORS_ONLN) / run->mesh.world->size;
    pass->threads = cores > 0 ? cores : 1;
    snprintf(text, sizeof text, "%" PRId64, pass->threads);
    return tri_recipe_note(run->recipe, "threads", text, "cores over ranks");
}

static enum tri_status open_machine(struct tri_run *run)
{
    const struct tri_recipe *r = run->recipe;
    TRI_TRY(share_cores(run));
    TRI_TRY(tri_machine_open(&r->pass, &run->backend));
    TRI_TRY(tri_machine_dtype(run->backend, r->model.dtype, &run->act));
    TRI_TRY(tri_recipe_note(run->recipe, "backend", run->backend->name, "this machine"));
    return tri_recipe_note(run->recipe, "model.dtype", tri_dtype_name(run->act), "this machine");
}

static enum tri_status open_sources(struct tri_run *run, bool eval, struct tri_dataset **out)
{
    const struct tri_recipe *r = run->recipe;
    struct tri_data_options options = r->data; /* strings are borrowed */
    if (eval)
        options.num_weights = 0; /* they are for the sources of training */
    if (eval && options.eval_max_length > 0)
        options.max_length = options.eval_max_length;
    const struct tri_data_target target = {
        .tokenizer = run->tokenizer,
        .vocab = run->model->arch.vocab,
        .model_folder = run->model_folder,
        .seed = (uint64_t)r->train.seed,
        .shared = run->mesh.world != NULL,
    };
    TRI_TRY(tri_dataset_open(&options, eval ? options.eval_sources : options.sources,
                             eval ? options.num_eval_sources : options.num_sources, &target, out));
    tri_dataset_report(*out, eval ? "evaluation data" : "training data");
    return TRI_OK;
}

static enum tri_status open_data(struct tri_run *run, enum tri_run_purpose purpose)
{
    const struct tri_recipe *r = run->recipe;
    const struct tri_arch *arch = &run->model->arch;
    struct tri_token_ids ids = {
        .vocab = arch->vocab, .bos = arch->bos, .eos = arch->eos, .pad = arch->pad};
    TRI_TRY(tri_tokenizer_open(r->data.tokenizer, run->model_folder, &ids, &run->tokenizer));
    if (r->data.num_eval_sources > 0)
        TRI_TRY(open_sources(run, true, &run->eval));
    if (purpose == TRI_RUN_EVAL) {
        if (run->eval == NULL)
            return tri_fail(TRI_INVALID,
                            "%s: data.eval_sources is empty: name the files to evaluate", r->path);
        return TRI_OK;
    }
    TRI_TRY(open_sources(run, false, &run->data));
    return tri_loader_open(
        run->data, r->train.micro_batch_size, r->train.gradient_accumulation_steps,
        (struct tri_replica){run->mesh.replica, run->mesh.num_replicas}, &run->loader);
}

static enum tri_status plan_steps(struct tri_run *run)
{
    const struct tri_recipe *r = run->recipe;
    int64_t total = r->train.train_iters;
    if (total == 0)
        TRI_TRY(tri_loader_steps(run->loader, r->train.epochs, &total));
    TRI_TRY(tri_schedule_resolve(&r->scheduler, r->optimizer.learning_rate, total, &run->schedule));
    const int64_t sequences = tri_dataset_sequences(run->data, 0);
    const int64_t warmup = run->schedule.warmup_steps;
    tri_info("%" PRId64 " step%s: %" PRId64 " sequence%s in the first epoch, %" PRId64 " x %" PRId64
             " x %d sequences a step (micro-batch, accumulation, replicas); %" PRId64
             " step%s of warm-up",
             total, tri_plural(total), sequences, tri_plural(sequences), r->train.micro_batch_size,
             r->train.gradient_accumulation_steps, run->mesh.num_replicas, warmup,
             tri_plural(warmup));
    tri_length_warn_steps(run);
    return TRI_OK;
}

static enum tri_status open_trainer(struct tri_run *run, enum tri_run_purpose purpose)
{
    struct tri_trainer_config config = tri_run_trainer_config(run, purpose);
    TRI_TRY(tri_trainer_open(&config, &run->trainer));
    return tri_arena_reserve(run->trainer->exec.arena, run->planned_bytes);
}

static enum tri_status draw_weights(struct tri_run *run)
{
    struct tri_job job = {.show = NULL};
    tri_info("weights: random, seed %" PRId64, run->recipe->train.seed);
    return tri_trainer_init(run->trainer, (uint64_t)run->recipe->train.seed, &job);
}

static enum tri_status load_weights(struct tri_run *run)
{
    struct tri_flat weights = tri_flat_weights(run->trainer);
    tri_info("weights: %s", run->model_folder);
    if (tri_mesh_is_first(&run->mesh))
        TRI_TRY(tri_warn_of_changed_model(run->model_folder));
    TRI_TRY(
        tri_facts_load(run->mesh.world, run->model, run->model_folder, tri_flat_sink, &weights));
    return tri_trainer_weights_loaded(run->trainer);
}

enum tri_status tri_run_first_weights(struct tri_run *run)
{
    if (run->has_weights)
        return TRI_OK;
    TRI_TRY(strcmp(run->recipe->model.init, "random") == 0 ? draw_weights(run) : load_weights(run));
    run->has_weights = true;
    return TRI_OK;
}

/* Is there no checkpoint of which this run will get its weights? A folder that cannot be read is
 * trouble for later. Collective. */
static enum tri_status starts_anew(const struct tri_run *run, bool *out)
{
    int64_t *steps = NULL;
    int64_t count = 0;
    if (tri_checkpoint_list(run->recipe->checkpoint.output_dir, false, &steps, &count) != TRI_OK)
        tri_error_clear();
    free(steps);
    int64_t none = count == 0;
    if (run->mesh.world != NULL)
        TRI_TRY(tri_comm_max_int(run->mesh.world, &none, 1));
    *out = none != 0;
    return TRI_OK;
}

/* Faulty weights are found before anything is written; those that a checkpoint replaces are not
 * drawn or read. */
static enum tri_status open_weights(struct tri_run *run, enum tri_run_purpose purpose)
{
    bool anew = true;
    if (purpose == TRI_RUN_TRAIN)
        TRI_TRY(starts_anew(run, &anew));
    else if (strcmp(run->recipe->model.init, "random") == 0)
        tri_warn("model.init is random, so an untrained model is evaluated: for the one in "
                 "model.name_or_path add --model.init checkpoint");
    return anew ? tri_run_first_weights(run) : TRI_OK;
}

/* Ranks that the heads of the model leave over become replicas. */
static enum tri_status open_mesh(struct tri_run *run, struct tri_comm *world)
{
    char text[32], why[64];
    int64_t asked = run->recipe->train.sequence_parallel_size;
    int64_t heads = run->model->arch.num_heads;
    int64_t ranks = world != NULL ? world->size : 1;
    int64_t size = tri_mesh_choose(ranks, asked, heads);
    TRI_TRY(tri_mesh_open(world, size, &run->mesh));
    if (asked > 0 || world == NULL)
        return TRI_OK;
    snprintf(text, sizeof text, "%" PRId64, size);
    snprintf(why, sizeof why, "%" PRId64 " ranks, %" PRId64 " query heads", ranks, heads);
    return tri_recipe_note(run->recipe, "sequence_parallel_size", text, why);
}

static enum tri_status open_all(struct tri_run *run, enum tri_run_purpose purpose)
{
    if (purpose == TRI_RUN_TRAIN) {
        TRI_TRY(check_output(run));
        if (tri_mesh_is_first(&run->mesh))
            TRI_TRY(tri_hf_source_open(run->model_folder, &run->source));
    }
    TRI_TRY(open_machine(run));
    if (purpose == TRI_RUN_TRAIN && run->act == TRI_F64)
        return tri_fail(TRI_UNSUPPORTED, "model.dtype: float64 is for `trireme check`; train in "
                                         "float32 or bfloat16");
    tri_warn_model(run->model, run->overrides);
    TRI_TRY(open_data(run, purpose));
    TRI_TRY(tri_run_agree(run));
    tri_warn_length(run->model, run->data, run->eval);
    if (purpose == TRI_RUN_TRAIN)
        TRI_TRY(plan_steps(run));
    TRI_TRY(tri_run_plan_memory(run, purpose));
    TRI_TRY(open_trainer(run, purpose));
    TRI_TRY(open_weights(run, purpose));
    TRI_TRY(tri_machine_measure_roof(run->backend, run->act, 0.2, &run->roof_flops));
    if (purpose == TRI_RUN_TRAIN)
        tri_info("product rate: %.4g GFLOP/s a rank, measured now; MFU and HFU are against it",
                 run->roof_flops / 1e9);
    return TRI_OK;
}

static enum tri_status new_run(struct tri_recipe *recipe, struct tri_run **out)
{
    struct tri_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a run");
    run->recipe = recipe;
    *out = run;
    return TRI_OK;
}

enum tri_status tri_run_open(struct tri_recipe *recipe, enum tri_run_purpose purpose,
                             struct tri_comm *world, struct tri_run **out)
{
    struct tri_run *run = NULL;
    TRI_TRY(new_run(recipe, &run));
    enum tri_status st = open_model(run);
    if (st == TRI_OK)
        st = tri_run_agree_on_mesh(run, world);
    if (st == TRI_OK)
        st = open_mesh(run, world);
    if (st == TRI_OK)
        st = open_all(run, purpose);
    if (st != TRI_OK) {
        tri_run_close(run);
        return st;
    }
    *out = run;
    return TRI_OK;
}

enum tri_status tri_run_open_model(struct tri_recipe *recipe, struct tri_run **out)
{
    struct tri_run *run = NULL;
    TRI_TRY(new_run(recipe, &run));
    enum tri_status st = open_model(run);
    if (st == TRI_OK)
        st = open_machine(run);
    if (st != TRI_OK) {
        tri_run_close(run);
        return st;
    }
    *out = run;
    return TRI_OK;
}

enum tri_status tri_run_open_data(struct tri_recipe *recipe, struct tri_run **out)
{
    struct tri_run *run = NULL;
    TRI_TRY(new_run(recipe, &run));
    run->mesh.num_replicas = 1;
    enum tri_status st = open_model(run);
    if (st == TRI_OK)
        st = open_data(run, TRI_RUN_TRAIN);
    if (st != TRI_OK) {
        tri_run_close(run);
        return st;
    }
    *out = run;
    return TRI_OK;
}

void tri_run_close(struct tri_run *run)
{
    if (run == NULL)
        return;
    tri_trainer_close(run->trainer);
    tri_loader_close(run->loader);
    tri_dataset_close(run->eval);
    tri_dataset_close(run->data);
    tri_tokenizer_close(run->tokenizer);
    tri_machine_close(run->backend);
    tri_model_close(run->model);
    json_decref(run->overrides);
    tri_hf_source_close(run->source);
    free(run->model_folder);
    tri_mesh_close(&run->mesh);
    free(run);
}
