/* The part of `trireme data inspect` that shows sequences. */
#ifndef TRI_CLI_INSPECT_H
#define TRI_CLI_INSPECT_H

#include "train/run.h"

/* The first `samples` sequences of training as the model gets them, at most `tokens` of each. */
enum tri_status tri_cli_inspect_sequences(struct tri_run *run, int64_t samples, int64_t tokens);

#endif
