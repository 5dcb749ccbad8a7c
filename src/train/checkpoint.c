#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "ckpt/hf.h"
#include "train/facts.h"
#include "train/state.h"

enum { PATH_BYTES = 4096 };

static enum tri_status make_path(char *out, const char *folder, const char *name, int64_t step,
                                 const char *suffix)
{
    int n = name != NULL
                ? snprintf(out, PATH_BYTES, "%s/%s", folder, name)
                : snprintf(out, PATH_BYTES, "%s/checkpoint-%" PRId64 "%s", folder, step, suffix);
    if (n < 0 || n >= PATH_BYTES)
        return tri_fail(TRI_INVALID, "checkpoint.output_dir: the path is too long");
    return TRI_OK;
}

/* Steps of the complete checkpoints in a folder, ascending. The caller frees *steps. */
static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum tri_status list_checkpoints(const char *folder, bool clean, int64_t **steps,
                                        int64_t *count)
{
    enum tri_status st = TRI_OK;
    int64_t *list = NULL;
    int64_t n = 0;
    int64_t room = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return tri_fail_errno(errno, "%s", folder);
    for (struct dirent *entry; st == TRI_OK && (entry = readdir(dir)) != NULL;) {
        long long step;
        int used = 0;
        char path[PATH_BYTES];
        if (sscanf(entry->d_name, "checkpoint-%lld%n", &step, &used) != 1 || step < 0)
            continue;
        st = make_path(path, folder, entry->d_name, 0, "");
        if (st == TRI_OK && strcmp(entry->d_name + used, ".tmp") == 0 && clean)
            st = tri_remove_folder(path); /* an interrupted save */
        if (st != TRI_OK || entry->d_name[used] != '\0')
            continue;
        if (n == room) {
            room = room == 0 ? 16 : 2 * room;
            int64_t *grown = realloc(list, (size_t)room * sizeof *list);
            if (grown == NULL) {
                st = tri_fail(TRI_NOMEM, "no memory for the list of checkpoints");
                break;
            }
            list = grown;
        }
        list[n++] = step;
    }
    closedir(dir);
    if (st != TRI_OK) {
        free(list);
        return st;
    }
    if (n > 0)
        qsort(list, (size_t)n, sizeof *list, compare_steps);
    *steps = list;
    *count = n;
    return TRI_OK;
}

static enum tri_status remove_old(struct tri_run *run)
{
    const char *folder = run->recipe->checkpoint.output_dir;
    int64_t limit = run->recipe->checkpoint.save_total_limit;
    int64_t *steps = NULL;
    int64_t count = 0;
    char path[PATH_BYTES];
    enum tri_status st = TRI_OK;
    if (limit <= 0)
        return TRI_OK;
    TRI_TRY(list_checkpoints(folder, false, &steps, &count));
    for (int64_t i = 0; i + limit < count && st == TRI_OK; i++) {
        st = make_path(path, folder, NULL, steps[i], "");
        if (st == TRI_OK)
            st = tri_remove_folder(path);
    }
    free(steps);
    return st;
}

static struct tri_hf_export export_of(const struct tri_run *run)
{
    return (struct tri_hf_export){.source = run->source,
                                  .source_folder = run->model_folder,
                                  .config_overrides = run->overrides,
                                  .dtype = run->act,
                                  .max_shard_bytes = run->recipe->checkpoint.max_shard_gb * 0x1p30};
}

/* The weights of all ranks: the first one writes a folder, the others give it their parts. `sums`
 * may be NULL. */
static enum tri_status save_model(struct tri_run *run, const char *folder, struct tri_sums *sums)
{
    struct tri_hf_export how = export_of(run);
    how.sums = sums;
    struct tri_flat weights = tri_flat_weights(run->trainer);
    weights.reader = 0;
    if (!tri_mesh_is_first(&run->mesh))
        return tri_flat_give(&weights);
    return tri_hf_save(run->model, folder, &how, tri_flat_source, &weights);
}

static enum tri_status write_all(struct tri_run *run, const char *folder, struct tri_sums *sums)
{
    TRI_TRY(save_model(run, folder, sums));
    TRI_TRY(tri_state_save_tensors(run, folder, sums));
    TRI_TRY(tri_state_save(run, folder, sums));
    return tri_sums_save(sums, folder);
}

static enum tri_status fill(struct tri_run *run, const char *folder)
{
    struct tri_sums *sums = NULL;
    if (!tri_mesh_is_first(&run->mesh)) {
        TRI_TRY(save_model(run, folder, NULL));
        return tri_state_give_tensors(run);
    }
    TRI_TRY(tri_remove_folder(folder));
    TRI_TRY(tri_make_folder(folder));
    TRI_TRY(tri_sums_open(&sums));
    enum tri_status st = write_all(run, folder, sums);
    tri_sums_close(sums);
    return st;
}

/* Is there a complete folder? Only the first rank looks, so that all do the same. */
static enum tri_status is_saved(struct tri_run *run, const char *done, bool *out)
{
    int64_t there = tri_mesh_is_first(&run->mesh) && tri_path_is_folder(done);
    if (run->mesh.world != NULL)
        TRI_TRY(tri_comm_max_int(run->mesh.world, &there, 1));
    *out = there != 0;
    return TRI_OK;
}

enum tri_status tri_checkpoint_save(struct tri_run *run)
{
    const char *folder = run->recipe->checkpoint.output_dir;
    char done[PATH_BYTES];
    char making[PATH_BYTES];
    bool saved;
    double start = tri_clock();
    TRI_TRY(make_path(done, folder, NULL, run->state.step, ""));
    TRI_TRY(make_path(making, folder, NULL, run->state.step, ".tmp"));
    TRI_TRY(is_saved(run, done, &saved));
    if (saved)
        return TRI_OK;
    enum tri_status st = fill(run, making);
    if (!tri_mesh_is_first(&run->mesh))
        return st;
    if (st == TRI_OK)
        st = tri_rename_folder(making, done);
    if (st != TRI_OK) {
        char cause[1024];
        snprintf(cause, sizeof cause, "%s", tri_error_text());
        tri_remove_folder(making); /* an incomplete save is of no use; its failure is no news */
        return tri_fail(st, "saving %s: %s; earlier checkpoints are untouched", done, cause);
    }
    tri_info("saved %s in %.1f s", done, tri_clock() - start);
    return remove_old(run);
}

enum tri_status tri_checkpoint_export(struct tri_run *run)
{
    const char *folder = run->recipe->checkpoint.output_dir;
    TRI_TRY(save_model(run, folder, NULL));
    tri_info("model: %s (loads with from_pretrained)", folder);
    return TRI_OK;
}

/* A model without checkpoints was not made by a run that can go on: the export at the end would
 * overwrite it. */
static enum tri_status refuse_foreign_model(const char *folder)
{
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_BYTES];
        TRI_TRY(make_path(path, folder, names[i], 0, ""));
        if (tri_path_exists(path))
            return tri_fail(TRI_INVALID,
                            "%s: there is a model and no checkpoint to go on from, so this run "
                            "would overwrite it: choose another checkpoint.output_dir, or move the "
                            "model away",
                            path);
    }
    return TRI_OK;
}

enum tri_status tri_checkpoint_clean(struct tri_run *run)
{
    const char *folder = run->recipe->checkpoint.output_dir;
    int64_t *steps = NULL;
    int64_t count = 0;
    TRI_TRY(list_checkpoints(folder, true, &steps, &count));
    free(steps);
    return count > 0 ? TRI_OK : refuse_foreign_model(folder);
}

static enum tri_status load(struct tri_run *run, const char *path)
{
    struct tri_sums *sums = NULL;
    TRI_TRY(tri_sums_load(path, &sums));
    if (sums == NULL)
        tri_warn("%s has no trireme_checksums.json, as those of earlier versions: damage to its "
                 "files would not be noticed",
                 path);
    enum tri_status st = tri_state_load(run, path, sums);
    tri_sums_close(sums);
    TRI_TRY(st);
    struct tri_flat weights = tri_flat_used_weights(run->trainer);
    TRI_TRY(tri_facts_load(run->mesh.world, run->model, path, tri_flat_sink, &weights));
    TRI_TRY(tri_state_load_tensors(run, path));
    run->trainer->optimizer.step = run->state.step;
    return tri_loader_seek(run->loader, run->state.position);
}

/* The cause is known; say where to go on from instead. `before` is -1 if there is nothing. */
static enum tri_status fail_to_resume(enum tri_status status, int64_t newest, int64_t before)
{
    char cause[1024];
    snprintf(cause, sizeof cause, "%s", tri_error_text());
    if (before < 0)
        return tri_fail(status,
                        "cannot go on from checkpoint-%" PRId64
                        ": %s; there is no earlier checkpoint: to start anew choose another "
                        "checkpoint.output_dir",
                        newest, cause);
    return tri_fail(status,
                    "cannot go on from checkpoint-%" PRId64
                    ": %s; move that folder away to go on from checkpoint-%" PRId64
                    ", or choose another checkpoint.output_dir",
                    newest, cause, before);
}

enum tri_status tri_checkpoint_resume(struct tri_run *run, bool *resumed)
{
    const char *folder = run->recipe->checkpoint.output_dir;
    int64_t *steps = NULL;
    int64_t count = 0;
    char path[PATH_BYTES];
    *resumed = false;
    TRI_TRY(list_checkpoints(folder, false, &steps, &count));
    int64_t newest = count > 0 ? steps[count - 1] : -1;
    int64_t before = count > 1 ? steps[count - 2] : -1;
    free(steps);
    if (run->mesh.world != NULL) /* they load it together */
        TRI_TRY(tri_comm_agree(
            run->mesh.world, "the newest checkpoint in checkpoint.output_dir (-1: none)", newest));
    if (newest < 0)
        return TRI_OK;
    TRI_TRY(make_path(path, folder, NULL, newest, ""));
    if (!run->recipe->checkpoint.auto_resume)
        return tri_fail(TRI_INVALID,
                        "%s is there already and checkpoint.auto_resume is false: choose another "
                        "checkpoint.output_dir, or remove it",
                        path);
    enum tri_status st = load(run, path);
    if (st == TRI_IO || st == TRI_FORMAT)
        return fail_to_resume(st, newest, before);
    TRI_TRY(st);
    tri_info("resumed from %s", path);
    *resumed = true;
    return TRI_OK;
}
