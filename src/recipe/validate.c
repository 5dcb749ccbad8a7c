/* What keys mean for each other. Ranges of single keys are in the tables. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/private.h"

static struct origin *origin_of(const struct tri_recipe *recipe, const char *key)
{
    struct found found;
    return tri_recipe_find(recipe, key, &found) ? found.origin : NULL;
}

static bool is_given(const struct tri_recipe *recipe, const char *key)
{
    return origin_of(recipe, key)->kind != FROM_DEFAULT;
}

static void remark(const struct tri_recipe *recipe, const char *key, const char *text)
{
    origin_of(recipe, key)->remark = text;
}

/* Another key decides this one. */
static enum tri_status follow(const struct tri_recipe *recipe, const char *key, const char *from)
{
    struct origin *origin = origin_of(recipe, key);
    char *copy = strdup(from);
    if (copy == NULL)
        return tri_fail(TRI_NOMEM, "out of memory while reading the recipe");
    free(origin->note);
    origin->note = copy;
    origin->kind = FROM_NOTE;
    return TRI_OK;
}

static enum tri_status check_required(const struct tri_recipe *recipe)
{
    struct found found;
    for (size_t i = 0; tri_recipe_at(recipe, i, &found); i++) {
        if (!(found.option->flags & TRI_OPTION_REQUIRED) || found.origin->kind != FROM_DEFAULT)
            continue;
        struct tri_text name = {0};
        tri_option_print_name(found.section->table, found.option, &name);
        enum tri_status st =
            tri_fail(TRI_INVALID,
                     "%s: %s is missing: it has no default, give it in the recipe or "
                     "as --%s on the command line",
                     recipe->path, tri_text_data(&name), tri_text_data(&name));
        tri_text_free(&name);
        return st;
    }
    return TRI_OK;
}

static enum tri_status check_duration(struct tri_recipe *recipe)
{
    struct tri_train_options *train = &recipe->train;
    if (train->train_iters < 0)
        train->train_iters = 0;
    if (train->train_iters > 0)
        remark(recipe, "epochs", "no effect: train_iters decides");
    else if (train->epochs <= 0)
        return tri_fail(TRI_INVALID, "%s: nothing to train: give epochs or train_iters above 0",
                        recipe->path);
    if (train->train_iters > 0 && train->exit_iteration > train->train_iters)
        return tri_fail(TRI_INVALID,
                        "%s: exit_iteration %lld is never reached: the run ends after train_iters "
                        "%lld",
                        recipe->path, (long long)train->exit_iteration,
                        (long long)train->train_iters);
    return TRI_OK;
}

static enum tri_status check_schedule(struct tri_recipe *recipe)
{
    const struct tri_schedule_options *schedule = &recipe->scheduler;
    if (schedule->warmup_steps >= 0)
        remark(recipe, "scheduler.warmup_ratio", "no effect: warmup_steps decides");
    if (schedule->name != TRI_SCHEDULE_WSD)
        remark(recipe, "scheduler.decay_ratio", "no effect: for wsd only");
    else if (schedule->warmup_steps < 0 && schedule->warmup_ratio + schedule->decay_ratio > 1)
        return tri_fail(TRI_INVALID,
                        "%s: scheduler.warmup_ratio %g and decay_ratio %g are more than all steps",
                        recipe->path, schedule->warmup_ratio, schedule->decay_ratio);
    if (schedule->name == TRI_SCHEDULE_CONSTANT)
        remark(recipe, "scheduler.min_lr_ratio", "no effect: the rate is constant");
    if (recipe->train.train_iters > 0 && schedule->warmup_steps > recipe->train.train_iters)
        return tri_fail(TRI_INVALID,
                        "%s: scheduler.warmup_steps %lld are more than train_iters %lld: add "
                        "--scheduler.warmup_steps 0, or raise train_iters",
                        recipe->path, (long long)schedule->warmup_steps,
                        (long long)recipe->train.train_iters);
    return TRI_OK;
}

static enum tri_status check_optimizer(const struct tri_recipe *recipe)
{
    if (recipe->optimizer.beta1 >= 1 || recipe->optimizer.beta2 >= 1)
        return tri_fail(TRI_INVALID, "%s: optimizer.betas must be below 1", recipe->path);
    return TRI_OK;
}

static enum tri_status check_checkpointing(struct tri_recipe *recipe)
{
    if (!recipe->model.disable_activation_checkpoint)
        return TRI_OK;
    if (is_given(recipe, "activation_checkpointing") &&
        recipe->pass.activation_checkpointing != TRI_REMAT_NONE)
        return tri_fail(TRI_INVALID,
                        "%s: model.disable_activation_checkpoint and activation_checkpointing "
                        "contradict each other; keep one of them",
                        recipe->path);
    if (recipe->pass.activation_checkpointing == TRI_REMAT_NONE)
        return TRI_OK;
    recipe->pass.activation_checkpointing = TRI_REMAT_NONE;
    return follow(recipe, "activation_checkpointing", "model.disable_activation_checkpoint");
}

enum { FPDT_CHUNK = 65536 };

static enum tri_status check_chunks(struct tri_recipe *recipe)
{
    struct tri_pass_options *pass = &recipe->pass;
    if (pass->fpdt_enabled && pass->chunk_size == 0) {
        pass->chunk_size = FPDT_CHUNK;
        return follow(recipe, "fpdt.chunk_size", "fpdt.enabled");
    }
    if (!pass->fpdt_enabled && pass->chunk_size > 0) {
        if (is_given(recipe, "fpdt.enabled")) {
            pass->chunk_size = 0;
            return follow(recipe, "fpdt.chunk_size", "fpdt.enabled is false");
        }
        pass->fpdt_enabled = true;
        return follow(recipe, "fpdt.enabled", "fpdt.chunk_size");
    }
    return TRI_OK;
}

static enum tri_status check_tiles(const struct tri_recipe *recipe)
{
    if (!recipe->pass.tiled_mlp_compute && recipe->pass.tiled_mlp_num_shards > 1)
        return tri_fail(TRI_INVALID, "%s: tiled_mlp_num_shards %lld needs tiled_mlp_compute: true",
                        recipe->path, (long long)recipe->pass.tiled_mlp_num_shards);
    return TRI_OK;
}

static enum tri_status check_eval(const struct tri_recipe *recipe)
{
    if (recipe->train.eval_interval > 0 && recipe->data.num_eval_sources == 0)
        return tri_fail(TRI_INVALID, "%s: eval_interval needs data.eval_sources", recipe->path);
    return TRI_OK;
}

static enum tri_status check_model(const struct tri_recipe *recipe)
{
    const struct tri_model_options *model = &recipe->model;
    if (strcmp(model->attn_implementation, "auto") != 0)
        remark(recipe, "model.attn_implementation", "computed by Trireme's own kernel");
    bool scaled = model->rope_type != NULL && strcmp(model->rope_type, "default") != 0;
    if (model->rope_factor != 0 && model->rope_factor < 1)
        return tri_fail(TRI_INVALID, "%s: model.rope.factor %g must be at least 1", recipe->path,
                        model->rope_factor);
    if (model->rope_factor != 0 && !scaled)
        return tri_fail(TRI_INVALID,
                        "%s: model.rope.factor needs model.rope.type: linear, dynamic, yarn or "
                        "llama3",
                        recipe->path);
    return TRI_OK;
}

enum tri_status tri_recipe_validate(struct tri_recipe *recipe)
{
    TRI_TRY(check_required(recipe));
    TRI_TRY(check_duration(recipe));
    TRI_TRY(check_schedule(recipe));
    TRI_TRY(check_optimizer(recipe));
    TRI_TRY(check_checkpointing(recipe));
    TRI_TRY(check_chunks(recipe));
    TRI_TRY(check_tiles(recipe));
    TRI_TRY(check_eval(recipe));
    return check_model(recipe);
}
