#include "train/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "ckpt/hf.h"
#include "train/checkpoint_list.h"
#include "train/heartbeat.h"
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

static void show(void *ctx, const char *text)
{
    tri_heartbeat_say(ctx, "%s", text);
}

/* Writing of `bytes` begins. The heartbeat tells of it while the disk is waited for, too. */
static void begin_job(const struct tri_run *run, double bytes, const char *doing,
                      const char *folder, struct tri_job *out)
{
    tri_progress_end(); /* a log file gets no line if it takes less than two seconds */
    *out = (struct tri_job){.show = show, .ctx = run->heartbeat};
    tri_job_begin(out, bytes, "%s %s", doing, folder);
}

static void end_job(const struct tri_run *run, struct tri_job *job)
{
    tri_heartbeat_rest(run->heartbeat);
    tri_job_end(job);
}

static double weight_bytes(const struct tri_run *run)
{
    return (double)run->model->num_weights * (double)tri_dtype_bytes(run->act);
}

/* The weights of all ranks: the first one writes a folder, the others give it their parts. `sums`
 * and `job` may be NULL. With `keep` the weight files are there. */
static enum tri_status save_model(struct tri_run *run, const char *folder, struct tri_sums *sums,
                                  struct tri_job *job, bool keep)
{
    struct tri_hf_export how = export_of(run);
    how.sums = sums;
    how.job = job;
    how.keep_weights = keep;
    struct tri_flat weights = tri_flat_weights(run->trainer);
    weights.reader = 0;
    if (!tri_mesh_is_first(&run->mesh))
        return keep ? TRI_OK : tri_flat_give(&weights);
    return tri_hf_save(run->model, folder, &how, tri_flat_source, &weights);
}

static enum tri_status write_all(struct tri_run *run, const char *folder, struct tri_sums *sums,
                                 struct tri_job *job)
{
    TRI_TRY(save_model(run, folder, sums, job, false));
    TRI_TRY(tri_state_save_tensors(run, folder, sums, job));
    TRI_TRY(tri_state_save(run, folder, sums));
    return tri_sums_save(sums, folder);
}

static enum tri_status fill(struct tri_run *run, const char *folder, const char *done)
{
    struct tri_sums *sums = NULL;
    struct tri_job job;
    if (!tri_mesh_is_first(&run->mesh)) {
        TRI_TRY(save_model(run, folder, NULL, NULL, false));
        return tri_state_give_tensors(run);
    }
    TRI_TRY(tri_remove_folder(folder));
    TRI_TRY(tri_make_folder(folder));
    TRI_TRY(tri_sums_open(&sums));
    begin_job(run, weight_bytes(run) + tri_state_tensor_bytes(run), "saving", done, &job);
    enum tri_status st = write_all(run, folder, sums, &job);
    end_job(run, &job);
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
    enum tri_status st = fill(run, making, done);
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

/* A run that is started again at its end finds its model there: the files have the hashes of those
 * in the checkpoint of this step. Only the first rank looks, so that all do the same. */
static enum tri_status is_exported(struct tri_run *run, bool *out)
{
    const char *folder = run->recipe->checkpoint.output_dir;
    char path[TRI_CHECKPOINT_PATH];
    int64_t there = 0;
    if (tri_mesh_is_first(&run->mesh)) {
        struct tri_hf_export how = export_of(run);
        struct tri_sums *sums = NULL;
        TRI_TRY(tri_checkpoint_path(path, folder, NULL, run->state.step, ""));
        if (tri_sums_load(path, &sums) != TRI_OK)
            tri_error_clear();
        there = tri_hf_weights_are_saved(run->model, folder, &how, sums);
        tri_sums_close(sums);
    }
    if (run->mesh.world != NULL)
        TRI_TRY(tri_comm_max_int(run->mesh.world, &there, 1));
    *out = there != 0;
    return TRI_OK;
}

enum tri_status tri_checkpoint_export(struct tri_run *run)
{
    const char *folder = run->recipe->checkpoint.output_dir;
    struct tri_job job;
    bool first = tri_mesh_is_first(&run->mesh), there;
    TRI_TRY(is_exported(run, &there));
    if (first)
        begin_job(run, weight_bytes(run), "writing the model into", folder, &job);
    enum tri_status st = save_model(run, folder, NULL, first ? &job : NULL, there);
    if (first)
        end_job(run, &job);
    TRI_TRY(st);
    tri_info("model: %s (%sloads with from_pretrained)", folder,
             there ? "was there already, " : "");
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
