/* How many steps, and how much data, a run has: what its user may not expect. */
#ifndef TRI_TRAIN_LENGTH_H
#define TRI_TRAIN_LENGTH_H

#include "train/run.h"

/* Of a resumed run: warn when epochs or train_iters are not those of the checkpoint and the steps
 * that are left therefore have other learning rates than they would have had. */
enum tri_status tri_length_warn(const struct tri_run *run);

/* Of a run at its start: warn when a step takes more sequences than an epoch has, and say when the
 * last step is filled up from the epoch after. */
void tri_length_warn_steps(const struct tri_run *run);

#endif
