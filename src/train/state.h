/* The part of a checkpoint that Hugging Face knows nothing of: optimizer tensors and run state. */
#ifndef TRI_TRAIN_STATE_H
#define TRI_TRAIN_STATE_H

#include "ckpt/sums.h"
#include "train/run.h"

/* optimizer.safetensors, written by the first rank while the others give it their parts:
 * state_tensors.c. `job` is told of the bytes written. With `compare` the ranks find out whether
 * they were given the same. */
enum tri_status tri_state_save_tensors(struct tri_run *run, const char *folder,
                                       struct tri_sums *sums, struct tri_job *job);
/* Bytes of all tensors of optimizer.safetensors. */
double tri_state_tensor_bytes(const struct tri_run *run);
enum tri_status tri_state_give_tensors(struct tri_run *run);
enum tri_status tri_state_load_tensors(struct tri_run *run, const char *folder, bool compare);

/* trainer_state.json and recipe.yml: state.c. `sums` take their hashes, or have them. Loading
 * compares the recipe, the model, the data and the sequences of a step with this run's and refuses
 * a difference that the numbers depend on. */
enum tri_status tri_state_save(struct tri_run *run, const char *folder, struct tri_sums *sums);
enum tri_status tri_state_load(struct tri_run *run, const char *folder, struct tri_sums *sums);

#endif
