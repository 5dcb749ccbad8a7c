#include "train/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "train/facts.h"
#include "trireme/trireme.h"

static enum tri_status write_file(const char *path, const char *text, size_t bytes,
                                  struct tri_sums *sums)
{
    tri_sums_add(sums, path, text, bytes);
    return tri_file_write(path, text, bytes);
}

static enum tri_status write_recipe(struct tri_run *run, const char *path, struct tri_sums *sums)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the recipe");
    enum tri_status st = tri_recipe_dump(run->recipe, memory);
    if (fclose(memory) != 0 && st == TRI_OK)
        st = tri_fail(TRI_NOMEM, "no memory for the recipe");
    if (st == TRI_OK)
        st = write_file(path, text, bytes, sums);
    free(text);
    return st;
}

static enum tri_status write_json(const json_t *root, const char *path, struct tri_sums *sums)
{
    char *text = NULL;
    size_t bytes = 0;
    TRI_TRY(tri_json_text(root, &text, &bytes));
    enum tri_status st = write_file(path, text, bytes, sums);
    free(text);
    return st;
}

/* Sequences of a step of one replica. */
static int64_t micro_batches(const struct tri_recipe *recipe)
{
    return recipe->train.micro_batch_size * recipe->train.gradient_accumulation_steps;
}

enum tri_status tri_state_save(struct tri_run *run, const char *folder, struct tri_sums *sums)
{
    const struct tri_run_state *s = &run->state;
    char identity[32];
    enum tri_status st;
    snprintf(identity, sizeof identity, "%016" PRIx64, tri_dataset_identity(run->data));
    char *recipe = tri_path_join(folder, "recipe.yml");
    char *path = tri_path_join(folder, "trainer_state.json");
    json_t *root =
        json_pack("{s:i, s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:f, s:s, s:I, s:b}", "format", 1,
                  "trireme_version", tri_version(), "global_step", (json_int_t)s->step,
                  "num_tokens", (json_int_t)s->tokens, "num_trained_tokens", (json_int_t)s->trained,
                  "loss_average", s->loss_average, "data_epoch", (json_int_t)s->position.epoch,
                  "data_sequence", (json_int_t)s->position.sequence, "epoch",
                  tri_loader_epochs(run->loader), "data_identity", identity, "sequences_per_step",
                  (json_int_t)(micro_batches(run->recipe) * run->mesh.num_replicas), "checksums",
                  sums != NULL);
    if (recipe == NULL || path == NULL || root == NULL)
        st = tri_fail(TRI_NOMEM, "no memory to save the state of the run");
    else
        st = write_recipe(run, recipe, sums);
    if (st == TRI_OK)
        st = write_json(root, path, sums);
    json_decref(root);
    free(path);
    free(recipe);
    return st;
}

/* *sequences = those of a step of one replica when this was saved. */
static enum tri_status compare_recipe(struct tri_run *run, const char *path, int64_t *sequences)
{
    struct tri_recipe *before = NULL;
    TRI_TRY(tri_recipe_open(path, 0, NULL, &before));
    enum tri_status st = tri_recipe_check_same(before, run->recipe);
    *sequences = micro_batches(before);
    tri_recipe_close(before);
    return st;
}

/* The weights go on in the model that they were trained in. The checkpoint's config.json holds what
 * the recipe laid over that of the model. */
static enum tri_status compare_model(struct tri_run *run, const char *path)
{
    struct tri_model *before = NULL;
    struct tri_text was = {0}, is = {0};
    struct tri_facts_difference d;
    TRI_TRY(tri_model_open(path, NULL, &before));
    enum tri_status st = tri_facts_of_arch(&before->arch, &was);
    if (st == TRI_OK)
        st = tri_facts_of_arch(&run->model->arch, &is);
    if (st == TRI_OK && tri_facts_differ(&was, &is, &d))
        st = tri_fail(TRI_INVALID,
                      "%s: the model's %s was %.100s when the run was saved and is %.100s now in "
                      "%s; set it back, or start anew in another checkpoint.output_dir",
                      path, d.key, d.a, d.b, run->model_folder);
    tri_text_free(&was);
    tri_text_free(&is);
    tri_model_close(before);
    return st;
}

/* A step has the same sequences however they are cut into micro-batches and replicas; `before` is
 * their number when this was saved. */
static enum tri_status compare_batch(const struct tri_run *run, const char *path, int64_t before)
{
    const struct tri_train_options *o = &run->recipe->train;
    int64_t now = micro_batches(run->recipe) * run->mesh.num_replicas;
    int64_t at_once = o->micro_batch_size * run->mesh.num_replicas;
    char advice[160];
    if (before == now)
        return TRI_OK;
    if (before % at_once == 0)
        snprintf(advice, sizeof advice, "set gradient_accumulation_steps: %" PRId64,
                 before / at_once);
    else
        snprintf(advice, sizeof advice,
                 "choose micro_batch_size, gradient_accumulation_steps and replicas whose product "
                 "is %" PRId64,
                 before);
    return tri_fail(TRI_INVALID,
                    "%s: a step had %" PRId64 " sequences when the run was saved and has %" PRId64
                    " now (micro_batch_size %" PRId64 " x gradient_accumulation_steps %" PRId64
                    " x %d replicas); %s, or start anew in another checkpoint.output_dir",
                    path, before, now, o->micro_batch_size, o->gradient_accumulation_steps,
                    run->mesh.num_replicas, advice);
}

static enum tri_status read_state(struct tri_run *run, const char *path, const json_t *root,
                                  int64_t sequences_of_replica)
{
    json_int_t format, step, tokens, trained, epoch, sequence;
    /* Versions before this member kept a replica's part the same. */
    json_int_t per_step = sequences_of_replica * run->mesh.num_replicas;
    double average;
    const char *identity;
    char now[32];
    if (json_unpack((json_t *)(uintptr_t)root, "{s:I, s:I, s:I, s:I, s:F, s:I, s:I, s:s, s?I}",
                    "format", &format, "global_step", &step, "num_tokens", &tokens,
                    "num_trained_tokens", &trained, "loss_average", &average, "data_epoch", &epoch,
                    "data_sequence", &sequence, "data_identity", &identity, "sequences_per_step",
                    &per_step) != 0)
        return tri_fail(TRI_FORMAT, "%s: something is missing or of the wrong type", path);
    if (format != 1 || step < 0 || epoch < 0 || sequence < 0 || per_step < 1)
        return tri_fail(TRI_FORMAT, "%s: written by another version, or damaged", path);
    snprintf(now, sizeof now, "%016" PRIx64, tri_dataset_identity(run->data));
    if (strcmp(identity, now) != 0)
        return tri_fail(
            TRI_INVALID,
            "%s: the training data is not the same as when this was saved (%s, now %s): "
            "restore it, or choose another checkpoint.output_dir",
            path, identity, now);
    TRI_TRY(compare_batch(run, path, per_step));
    run->state = (struct tri_run_state){.step = step,
                                        .tokens = tokens,
                                        .trained = trained,
                                        .loss_average = average,
                                        .position = {.epoch = epoch, .sequence = sequence}};
    return TRI_OK;
}

enum tri_status tri_state_load(struct tri_run *run, const char *folder, struct tri_sums *sums)
{
    TRI_TRY(tri_sums_check_file(sums, folder, "recipe.yml"));
    TRI_TRY(tri_sums_check_file(sums, folder, "trainer_state.json"));
    TRI_TRY(tri_sums_check_file(sums, folder, "config.json"));
    json_t *root = NULL;
    char *recipe = tri_path_join(folder, "recipe.yml");
    char *path = tri_path_join(folder, "trainer_state.json");
    char *config = tri_path_join(folder, "config.json");
    int64_t sequences = 0;
    enum tri_status st = recipe == NULL || path == NULL || config == NULL
                             ? tri_fail(TRI_NOMEM, "no memory to load the state of the run")
                             : compare_recipe(run, recipe, &sequences);
    if (st == TRI_OK)
        st = compare_model(run, config);
    if (st == TRI_OK)
        st = tri_json_load(path, &root);
    if (st == TRI_OK)
        st = read_state(run, path, root, sequences);
    json_decref(root);
    free(config);
    free(path);
    free(recipe);
    return st;
}
