/* Saving and resuming a run.
 *
 *   OUTPUT/checkpoint-N/          complete when it has this name: made as checkpoint-N.tmp, synced,
 *                                 renamed
 *     config.json, model*.safetensors, ...   what Transformers loads
 *     optimizer.safetensors       "m.NAME", "v.NAME" float32, by Hugging Face names, so that any
 *                                 later layout can read them; "master.NAME" when the weights have
 *                                 fewer bits
 *     recipe.yml                  the effective recipe
 *     trainer_state.json          step, data position, counts, identity of the data
 *     trireme_checksums.json      hashes of all of these, which a resume compares: it refuses
 *                                 damage in what it reads, and warns of other files that changed;
 *                                 without this file all are believed, with a warning
 *
 * A resumed run gives, bit for bit on the CPU, what an uninterrupted one gives. Nothing in the
 * files depends on the number of ranks or on zero_stage: others may go on from them. */
#ifndef TRI_TRAIN_CHECKPOINT_H
#define TRI_TRAIN_CHECKPOINT_H

#include "train/run.h"

/* All ranks call these two; the first one writes, in pieces to which the others give their parts.
 *
 * Save run->state and all tensors as OUTPUT/checkpoint-<step>, then delete the oldest beyond
 * save_total_limit. A checkpoint of this step that is already there is left as it is. */
enum tri_status tri_checkpoint_save(struct tri_run *run);

/* Export the weights into OUTPUT itself: what `from_pretrained(OUTPUT)` loads. Weight files that
 * are there already with the hashes of those of OUTPUT/checkpoint-<step> are left. */
enum tri_status tri_checkpoint_export(struct tri_run *run);

/* Remove what an interrupted save left behind, and refuse an OUTPUT with a model that no checkpoint
 * there goes with: it is not ours to overwrite. */
enum tri_status tri_checkpoint_clean(struct tri_run *run);

/* Go on from the newest complete checkpoint of OUTPUT: tensors, state, data position. A checkpoint
 * of another recipe or other data is TRI_INVALID. Without one the weights are those that the recipe
 * starts from. */
enum tri_status tri_checkpoint_resume(struct tri_run *run, bool *resumed);

#endif
