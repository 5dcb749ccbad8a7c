/* Parts of opening a run that run.c puts in order. */
#ifndef TRI_TRAIN_RUN_PRIVATE_H
#define TRI_TRAIN_RUN_PRIVATE_H

#include "train/run.h"

/* Compare what the ranks were given: run_agree.c. Collective; world NULL: one rank.
 *
 * Before the mesh, which they divide: the recipe and the model. */
enum tri_status tri_run_agree_on_mesh(const struct tri_run *run, struct tri_comm *world);

/* Before anything is computed: the data, and the recipe again, of which the model or the machine
 * decided some values. */
enum tri_status tri_run_agree(const struct tri_run *run);

/* What the run is to compute, with run->zero_stage: run_memory.c. */
struct tri_trainer_config tri_run_trainer_config(struct tri_run *run, enum tri_run_purpose purpose);

/* Choose run->zero_stage and count run->planned_bytes before anything is taken, so that a run that
 * cannot fit never starts. Collective. */
enum tri_status tri_run_plan_memory(struct tri_run *run, enum tri_run_purpose purpose);

/* Draw the weights, or load those of the model to start from, unless that was done: run.c.
 * Collective. */
enum tri_status tri_run_first_weights(struct tri_run *run);

#endif
