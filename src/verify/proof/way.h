/* One way to compute the same numbers: how many ranks, chunks, tiles, what is kept, what is
 * divided.
 */
#ifndef TRI_VERIFY_PROOF_WAY_H
#define TRI_VERIFY_PROOF_WAY_H

#include "verify/proof/subject.h"

struct tri_way {
    int ranks, shards; /* shards of a sequence; the rest are replicas. ranks 1: alone */
    int zero_stage;
    int64_t chunk;     /* tokens; 0: the whole sequence */
    int64_t mlp_tiles; /* 0: no tiles */
    int64_t loss_rows; /* rows of logits at once; 0: all */
    int remat;         /* enum tri_remat */
};

/* The plainest way: one rank, nothing is cut, everything is kept. */
struct tri_way tri_way_plain(void);

/* Called on every rank of a way with its trainer, whose weights are the recipe's. `mesh` is that of
 * the ranks of this way. */
typedef enum tri_status tri_way_work(const struct tri_subject *subject, struct tri_trainer *trainer,
                                     const struct tri_mesh *mesh, void *ctx);

/* What the trainer is for. */
struct tri_way_use {
    enum tri_dtype act;
    bool gradients;
    const struct tri_optim_options *optimizer; /* NULL: no updates */
};

/* Make a trainer on every rank of the way and run `work` there: on threads of this process, or on
 * the ranks of subject->world, which all call this; alone, each of them for itself. */
enum tri_status tri_way_run(const struct tri_subject *subject, const struct tri_way *way,
                            const struct tri_way_use *use, tri_way_work *work, void *ctx);

/* ---- loss and gradients (gradients.c) ----------------------------------------------------------
 */

/* What the plainest way found. */
struct tri_reference {
    double loss, grad_norm;
    double *grads; /* (model->num_elements); owned */
};

/* How far another way is from it. */
struct tri_difference {
    double loss, grad_norm;         /* what was found */
    double loss_error, norm_error;  /* |got - want| / |want| */
    double grads_error;             /* ||got - want|| / ||want|| over all gradients */
    double focus_norm, focus_error; /* the same of a range of elements */
    double seconds;
};

/* The batches of one step, dealt to replicas in turns, and a range of elements of the flat buffer
 * to look at closely (count 0: none). */
struct tri_step_batches {
    const struct tri_batch *batches;
    int count;
    struct tri_range focus;
};

enum tri_status tri_reference_find(const struct tri_subject *subject,
                                   const struct tri_step_batches *step, struct tri_reference *out);
void tri_reference_close(struct tri_reference *reference);

enum tri_status tri_difference_find(const struct tri_subject *subject, const struct tri_way *way,
                                    const struct tri_step_batches *step,
                                    const struct tri_reference *reference,
                                    struct tri_difference *out);

/* ---- hidden states (hidden.c) ------------------------------------------------------------------
 */

/* The hidden states after the last layer of several batches of as many tokens, forward only:
 * out[i] is (S, E), of the whole sequence. */
enum tri_status tri_hidden_find(const struct tri_subject *subject, const struct tri_way *way,
                                const struct tri_batch *batches, int count, double *const *out);

#endif
