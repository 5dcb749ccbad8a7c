/* Going on from a checkpoint. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ckpt/hf.h"
#include "train/changes.h"
#include "train/checkpoint.h"
#include "train/checkpoint_list.h"
#include "train/facts.h"
#include "train/run_private.h"
#include "train/state.h"

/* Ranks whose checkpoints have the same hashes, and whose files have these hashes, read the same.
 */
static enum tri_status agree_on_sums(struct tri_comm *world, const struct tri_sums *sums)
{
    struct tri_text facts = {0};
    static const char key[] = "trireme_checksums.json";
    if (sums != NULL)
        tri_facts_add_hash(&facts, key, tri_sums_hash(sums));
    else
        tri_facts_add(&facts, key, "absent");
    enum tri_status st =
        tri_facts_agree(world, "the hash of ", "give all ranks the same checkpoint", &facts);
    tri_text_free(&facts);
    return st;
}

static enum tri_status load_tensors(struct tri_run *run, const char *path, bool compare)
{
    struct tri_flat weights = tri_flat_used_weights(run->trainer);
    if (compare)
        TRI_TRY(tri_facts_load(run->mesh.world, run->model, path, tri_flat_sink, &weights));
    else
        TRI_TRY(tri_hf_load(run->model, path, tri_flat_sink, &weights));
    return tri_state_load_tensors(run, path, compare);
}

/* Does the state say that there were hashes? What cannot be read is for tri_state_load to tell. */
static bool had_sums(const char *folder)
{
    json_t *state = NULL;
    char *path = tri_path_join(folder, "trainer_state.json");
    bool had = path != NULL && tri_json_load(path, &state) == TRI_OK &&
               json_is_true(json_object_get(state, "checksums"));
    json_decref(state);
    free(path);
    tri_error_clear();
    return had;
}

static enum tri_status load(struct tri_run *run, const char *path, int64_t step)
{
    struct tri_sums *sums = NULL;
    TRI_TRY(tri_sums_load(path, &sums));
    bool summed = sums != NULL;
    if (!summed)
        tri_warn("%s has no trireme_checksums.json%s: damage to its files would not be noticed",
                 path,
                 had_sums(path) ? " any more, with which it was saved"
                                : ", as those of earlier versions");
    enum tri_status st = agree_on_sums(run->mesh.world, sums);
    if (st == TRI_OK)
        st = tri_state_load(run, path, sums);
    if (st == TRI_OK && run->state.step != step)
        st = tri_fail(TRI_INVALID,
                      "%s/trainer_state.json is of step %" PRId64 ", which the folder's name does "
                      "not say: rename it to checkpoint-%" PRId64 ", or move it away",
                      path, run->state.step, run->state.step);
    if (st == TRI_OK && tri_mesh_is_first(&run->mesh))
        st = tri_warn_of_changes(sums, path);
    tri_sums_close(sums);
    TRI_TRY(st);
    TRI_TRY(load_tensors(run, path, !summed));
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
    char path[TRI_CHECKPOINT_PATH];
    *resumed = false;
    TRI_TRY(tri_checkpoint_list(folder, false, &steps, &count));
    int64_t newest = count > 0 ? steps[count - 1] : -1;
    int64_t before = count > 1 ? steps[count - 2] : -1;
    free(steps);
    if (run->mesh.world != NULL) /* they load it together */
        TRI_TRY(tri_comm_agree(
            run->mesh.world, "the newest checkpoint in checkpoint.output_dir (-1: none)", newest));
    if (newest < 0)
        return tri_run_first_weights(run);
    TRI_TRY(tri_checkpoint_path(path, folder, NULL, newest, ""));
    if (!run->recipe->checkpoint.auto_resume)
        return tri_fail(TRI_INVALID,
                        "%s is there already and checkpoint.auto_resume is false: choose another "
                        "checkpoint.output_dir, or remove it",
                        path);
    enum tri_status st = load(run, path, newest);
    if (st == TRI_IO || st == TRI_FORMAT)
        return fail_to_resume(st, newest, before);
    TRI_TRY(st);
    tri_info("resumed from %s", path);
    *resumed = true;
    return TRI_OK;
}
