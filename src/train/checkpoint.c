#include "train/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "ckpt/hf.h"
#include "train/checkpoint_list.h"
#include "train/state.h"

static enum tri_status remove_old(struct tri_run *run)
{
    const char *folder = run->recipe->checkpoint.output_dir;
    int64_t limit = run->recipe->checkpoint.save_total_limit;
    int64_t *steps = NULL;
    int64_t count = 0;
    char path[TRI_CHECKPOINT_PATH];
    enum tri_status st = TRI_OK;
    if (limit <= 0)
        return TRI_OK;
    TRI_TRY(tri_checkpoint_list(folder, false, &steps, &count));
    for (int64_t i = 0; i + limit < count && st == TRI_OK; i++) {
        st = tri_checkpoint_path(path, folder, NULL, steps[i], "");
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
    char done[TRI_CHECKPOINT_PATH];
    char making[TRI_CHECKPOINT_PATH];
    bool saved;
    double start = tri_clock();
    TRI_TRY(tri_checkpoint_path(done, folder, NULL, run->state.step, ""));
    TRI_TRY(tri_checkpoint_path(making, folder, NULL, run->state.step, ".tmp"));
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
        char path[TRI_CHECKPOINT_PATH];
        TRI_TRY(tri_checkpoint_path(path, folder, names[i], 0, ""));
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
    TRI_TRY(tri_checkpoint_list(folder, true, &steps, &count));
    free(steps);
    return count > 0 ? TRI_OK : refuse_foreign_model(folder);
}
