/* A golden folder: a small model in Hugging Face layout with what float64 PyTorch computed on it.
 * Its format is written down in tests/golden/README.md; tools/golden.py makes one from any model.
 */
#ifndef TRI_VERIFY_GOLDEN_H
#define TRI_VERIFY_GOLDEN_H

#include "ckpt/safetensors.h"
#include "data/batch.h"
#include "model/arch.h"
#include "optim/options.h"

enum { TRI_GOLDEN_MAX_STEPS = 64 };

struct tri_golden {
    struct tri_model *model;
    struct tri_st *reference;
    struct tri_batch batch; /* all rows, one after the other */
    int64_t steps;
    double losses[TRI_GOLDEN_MAX_STEPS + 1]; /* before step 1, ..., after the last step */
    double grad_norms[TRI_GOLDEN_MAX_STEPS]; /* before clipping */
    struct tri_optim_options optimizer;
    double clip;
};

/* Every disagreement with the format is an error that names file, tensor or key. */
enum tri_status tri_golden_open(const char *folder, struct tri_golden *out);
void tri_golden_close(struct tri_golden *golden);

/* Element `i` of a floating or integer tensor. */
double tri_golden_value(const struct tri_st_tensor *tensor, int64_t i);

#endif
