#include "train/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "ckpt/hf_rows.h"
#include "base/fingerprint.h"
#include "train/facts.h"
#include "trireme/trireme.h"

/* ---- tensors --------------------------------------------------------------------------------- */

/* The flat buffers of an optimizer under the prefixes they are saved with. */
struct kind {
    const char *prefix;
    struct tri_flat flat;
};

static int kinds_of(struct tri_run *run, struct kind kinds[3])
{
    int count = run->act == run->trainer->stat ? 2 : 3;
    kinds[0] = (struct kind){"m.", tri_flat_moment(run->trainer, 0)};
    kinds[1] = (struct kind){"v.", tri_flat_moment(run->trainer, 1)};
    kinds[2] = (struct kind){"master.", tri_flat_weights(run->trainer)};
    for (int k = 0; k < count; k++)
        kinds[k].flat.reader = 0;
    return count;
}

/* One file of all kinds, for its writer and for its readers. */
struct tensors {
    struct tri_run *run;
    struct kind kinds[3];
    int num_kinds;
    float *room; /* (tri_hf_piece_room) */
    struct tri_st_writer *writer;
};

static enum tri_status open_tensors(struct tri_run *run, struct tensors *out)
{
    struct tensors t = {.run = run};
    t.num_kinds = kinds_of(run, t.kinds);
    t.room = malloc((size_t)tri_hf_piece_room(run->model) * sizeof *t.room);
    if (t.room == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a piece of the optimizer");
    *out = t;
    return TRI_OK;
}

static enum tri_status write_piece(void *ctx, const struct tri_hf_tensor *hf, int64_t row,
                                   const float *piece, int64_t count)
{
    struct tensors *t = ctx;
    (void)hf;
    (void)row;
    return tri_st_writer_append(t->writer, piece, (size_t)count * sizeof *piece);
}

static enum tri_status write_tensors(struct tensors *t, const char *path, struct tri_st_decl *decl,
                                     char (*names)[128], struct tri_sums *sums)
{
    const struct tri_model *model = t->run->model;
    int64_t n = 0;
    for (int k = 0; k < t->num_kinds; k++)
        for (int i = 0; i < model->num_hf; i++, n++) {
            const struct tri_hf_tensor *hf = &model->hf[i];
            snprintf(names[n], sizeof names[n], "%s%s", t->kinds[k].prefix, hf->name);
            decl[n] = (struct tri_st_decl){.name = names[n],
                                           .dtype = TRI_F32,
                                           .num_dims = hf->num_dims,
                                           .dim = {hf->dim[0], hf->dim[1]}};
        }
    enum tri_status st;
    TRI_TRY(tri_st_writer_open_summed(path, decl, n, sums, &t->writer));
    for (int k = 0; k < t->num_kinds; k++)
        for (int i = 0; i < model->num_hf; i++)
            TRI_TRY_GOTO(st,
                         tri_hf_gather_pieces(model, i, tri_flat_source, &t->kinds[k].flat, t->room,
                                              write_piece, t),
                         abandon_writer);
    return tri_st_writer_commit(t->writer);
abandon_writer:
    tri_st_writer_abandon(t->writer);
    return st;
}

enum tri_status tri_state_save_tensors(struct tri_run *run, const char *folder,
                                       struct tri_sums *sums)
{
    enum tri_status st;
    struct tensors tensors;
    TRI_TRY(open_tensors(run, &tensors));
    size_t most = 3 * (size_t)run->model->num_hf;
    char *path = tri_path_join(folder, "optimizer.safetensors");
    struct tri_st_decl *decl = malloc(most * sizeof *decl);
    char(*names)[128] = malloc(most * sizeof *names);
    if (path == NULL || decl == NULL || names == NULL)
        st = tri_fail(TRI_NOMEM, "no memory to save the optimizer");
    else
        st = write_tensors(&tensors, path, decl, names, sums);
    free(path);
    free(decl);
    free(names);
    free(tensors.room);
    return st;
}

enum tri_status tri_state_give_tensors(struct tri_run *run)
{
    struct kind kinds[3];
    int num_kinds = kinds_of(run, kinds);
    for (int k = 0; k < num_kinds; k++)
        TRI_TRY(tri_flat_give(&kinds[k].flat));
    return TRI_OK;
}

/* The tensor of the file, which is not aligned, to the rows that this rank holds. *hash is mixed
 * with all of it. */
static enum tri_status read_tensor(struct tensors *t, int i, const struct tri_st *file,
                                   const struct tri_st_tensor *from, struct tri_flat *to,
                                   uint64_t *hash)
{
    const struct tri_hf_tensor *hf = &t->run->model->hf[i];
    int64_t at_once = tri_hf_rows_at_once(hf, TRI_HF_PIECE);
    size_t row_bytes = (size_t)tri_hf_width(hf) * sizeof *t->room;
    for (int64_t row = 0; row < hf->dim[0]; row += at_once) {
        int64_t rows = hf->dim[0] - row < at_once ? hf->dim[0] - row : at_once;
        TRI_TRY(tri_st_check(file, from, (size_t)row * row_bytes, (size_t)rows * row_bytes));
        memcpy(t->room, (const char *)from->data + (size_t)row * row_bytes,
               (size_t)rows * row_bytes);
        if (t->run->mesh.world != NULL)
            *hash =
                tri_fingerprint(*hash, (const unsigned char *)t->room, (size_t)rows * row_bytes);
        TRI_TRY(tri_hf_scatter_rows(t->run->model, i, row, rows, t->room, tri_flat_sink, to));
    }
    return TRI_OK;
}

static enum tri_status read_tensors(struct tensors *t, const struct tri_st *file,
                                    struct tri_text *facts)
{
    for (int k = 0; k < t->num_kinds; k++)
        for (int i = 0; i < t->run->model->num_hf; i++) {
            const struct tri_hf_tensor *hf = &t->run->model->hf[i];
            char name[160];
            snprintf(name, sizeof name, "%s%s", t->kinds[k].prefix, hf->name);
            const struct tri_st_tensor *from = tri_st_find(file, name);
            size_t bytes = (size_t)(hf->dim[0] * tri_hf_width(hf)) * sizeof *t->room;
            if (from == NULL || from->dtype != TRI_F32 || from->bytes != bytes)
                return tri_fail(TRI_FORMAT,
                                "optimizer.safetensors: '%s' is missing or has another shape",
                                name);
            uint64_t hash = 0;
            char text[24];
            TRI_TRY(read_tensor(t, i, file, from, &t->kinds[k].flat, &hash));
            snprintf(text, sizeof text, "%016" PRIx64, hash);
            tri_facts_add(facts, name, text);
        }
    if (facts->failed)
        return tri_fail(TRI_NOMEM, "no memory to compare the optimizer");
    return tri_facts_agree(t->run->mesh.world, "the hash of the optimizer's ",
                           "give all ranks the same checkpoint", facts);
}

enum tri_status tri_state_load_tensors(struct tri_run *run, const char *folder)
{
    struct tensors tensors;
    struct tri_text facts = {0};
    struct tri_st *file = NULL;
    TRI_TRY(open_tensors(run, &tensors));
    char *path = tri_path_join(folder, "optimizer.safetensors");
    enum tri_status st = path == NULL ? tri_fail(TRI_NOMEM, "no memory to load the optimizer")
                                      : tri_st_open(path, &file);
    if (st == TRI_OK)
        st = read_tensors(&tensors, file, &facts);
    tri_text_free(&facts);
    tri_st_close(file);
    free(path);
    free(tensors.room);
    return st;
}

/* ---- run state ---------------------------------------------------------------------------------
 */

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
    json_t *root = json_pack(
        "{s:i, s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:f, s:s, s:I}", "format", 1, "trireme_version",
        tri_version(), "global_step", (json_int_t)s->step, "num_tokens", (json_int_t)s->tokens,
        "num_trained_tokens", (json_int_t)s->trained, "loss_average", s->loss_average, "data_epoch",
        (json_int_t)s->position.epoch, "data_sequence", (json_int_t)s->position.sequence, "epoch",
        tri_loader_epochs(run->loader), "data_identity", identity, "sequences_per_step",
        (json_int_t)(micro_batches(run->recipe) * run->mesh.num_replicas));
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
