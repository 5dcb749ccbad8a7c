/* A run that goes on with another number of steps. */
#ifndef TRI_TRAIN_LENGTH_H
#define TRI_TRAIN_LENGTH_H

#include "train/run.h"

/* Of a resumed run: warn when epochs or train_iters are not those of the checkpoint and the steps
 * that are left therefore have other learning rates than they would have had. */
enum tri_status tri_length_warn(const struct tri_run *run);

#endif
