/* What `verify` computes with: the first layers of the recipe's model, and the first tokens of its
 * first documents, as many as are computed in seconds. */
#ifndef TRI_VERIFY_PROOF_SUBJECT_H
#define TRI_VERIFY_PROOF_SUBJECT_H

#include <stdio.h>

#include "train/run.h"

enum { TRI_SUBJECT_DOCS = 4 };

struct tri_subject {
    struct tri_run *run;     /* the recipe, its whole model, its data */
    struct tri_model *model; /* the first layers of it */
    json_t *overrides;       /* what makes config.json that of `model`; or NULL */
    struct tri_comm *world;  /* the ranks of a launcher; NULL: ranks are threads, on the CPU */
    float *weights;          /* (model->num_elements) */
    bool is_random;          /* they are not the checkpoint's */
    struct tri_batch docs[TRI_SUBJECT_DOCS]; /* one document each, of uneven lengths */
    int64_t tokens;                          /* of all of them */
    int64_t shortened;                       /* documents that lost tokens */
    enum tri_dtype act;     /* of splits and probes: float64 where that is quick enough */
    enum tri_dtype run_act; /* of the recipe: of saves and kills */
    bool cuda;
    int max_ranks; /* most ranks that have memory and heads to work with */
};

/* Open the recipe's model and data and shrink them. */
enum tri_status tri_subject_open(struct tri_recipe *recipe, struct tri_comm *world,
                                 struct tri_subject *out);
void tri_subject_close(struct tri_subject *subject);

/* What was shrunk, in a few lines. */
void tri_subject_print(const struct tri_subject *subject, FILE *to);

/* Documents [first, first + count), one after the other, in a batch that the caller closes. */
enum tri_status tri_subject_batch(const struct tri_subject *subject, int first, int count,
                                  struct tri_batch *out);

/* Give a trainer on subject->model the recipe's weights, once they are there. */
enum tri_status tri_subject_weights(const struct tri_subject *subject, struct tri_trainer *trainer);

#endif
