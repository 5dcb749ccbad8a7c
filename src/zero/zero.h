/* Weights and gradients of a model over all ranks (ZeRO, Rajbhandari et al. 2020).
 *
 *   stage   weights    gradients   optimizer   what a rank sends, in elements of the model
 *     0     all        all         all         2 a step
 *     1     all        all         own part    2 a step: gradients to their rank, weights back
 *     2     all        own part    own part    1 a micro-batch, and 1 a step: weights back
 *     3     own part   own part    own part    3 a micro-batch: weights twice, gradients once
 *
 * A pass tells the units it uses by a walk, which reduces gradients beside the computation. "All"
 * of gradients holds this rank's sums over micro-batches; in the backward of the last one each unit
 * is reduced where it lies once nothing more is added to it. In stages 2 and 3 it never exists: the
 * walk lends each unit room for its gradients and reduces them when the pass is done with it; in
 * stage 3 it gathers the weights too, the next unit's while the pass computes with this one. With
 * one rank every stage is stage 0. */
#ifndef TRI_ZERO_ZERO_H
#define TRI_ZERO_ZERO_H

#include "comm/comm.h"
#include "zero/partition.h"

struct tri_zero {
    struct tri_exec exec;
    const struct tri_model *model;
    struct tri_comm *world; /* all ranks; NULL: one. Not owned */
    int stage;              /* 0 with one rank */
    enum tri_dtype act, stat;
    struct tri_partition partition; /* of one rank in stage 0 */
    void *weights;                  /* act; everything, or in stage 3 the own buffer */
    void *grads;     /* stat; everything, or from stage 2 the own buffer; NULL: forward only */
    double *norm2;   /* in backend memory */
    bool completing; /* the micro-batch at work is the last of the step */
    /* (num_units) where a unit's first element is now; NULL: nobody has entered it. */
    void **unit_weights, **unit_grads;
    struct tri_block *blocks; /* (2 * ranks) */
};

struct tri_zero_config {
    struct tri_exec exec;
    const struct tri_model *model;
    struct tri_comm *world;
    int stage;
    enum tri_dtype act, stat;
    bool training; /* with gradients */
};

/* Take the buffers: weights undefined but for padding, gradients zero. */
enum tri_status tri_zero_open(const struct tri_zero_config *config, struct tri_zero **out);
void tri_zero_close(struct tri_zero *zero);

/* Where this rank's run of elements lies in the weights and in the gradients, for an optimizer. */
int64_t tri_zero_weights_at(const struct tri_zero *zero, const struct tri_own_run *run);
int64_t tri_zero_grads_at(const struct tri_zero *zero, const struct tri_own_run *run);

/* ---- a step ---------------------------------------------------------------------------------- */

/* Before the first micro-batch: all gradients are zero. */
enum tri_status tri_zero_clear_grads(struct tri_zero *zero);
/* Before the last one, which all ranks go through together: its backward reduces what it completes.
 */
void tri_zero_complete_grads(struct tri_zero *zero);
/* After it: this rank's own part of the gradients is the sum over all ranks. */
enum tri_status tri_zero_join_grads(struct tri_zero *zero);
/* L2 norm over the gradients of all ranks, which all get the same of. Waits. */
enum tri_status tri_zero_grad_norm(struct tri_zero *zero, double *norm);
/* After an update of the own part of the weights: every rank has what it keeps of the others'. */
enum tri_status tri_zero_share_weights(struct tri_zero *zero);

/* ---- use of units (walk.c) --------------------------------------------------------------------
 */

/* What a pass uses of units. */
enum {
    TRI_ZERO_WEIGHTS = 1,
    TRI_ZERO_GRADS = 2,     /* it adds to them, the last in its micro-batch to do so */
    TRI_ZERO_SOME_GRADS = 4 /* it adds to them, and a later walk over the unit will */
};

/* A pass over the units from `first` to `last`, up or down, in that order. */
struct tri_zero_walk {
    struct tri_zero *zero;
    int first, last;
    bool gathers;  /* weights */
    bool lends;    /* room for gradients, which are reduced from there */
    bool finishes; /* gradients that are all here: they are reduced where they lie */
    size_t mark;
    void *weights[2], *grads[2]; /* rooms that units take in turns */
    int complete;                /* unit whose gradients wait to be sent, or -1 */
    int reducing;                /* unit whose gradients are on their way, or -1 */
};

/* Take room in the arena, which is a stack: walks end in the reverse order of their begin. */
enum tri_status tri_zero_walk_begin(struct tri_zero *zero, int first, int last, int what,
                                    struct tri_zero_walk *out);
/* From here to leave, unit_weights and unit_grads of the unit are there. */
enum tri_status tri_zero_walk_enter(struct tri_zero_walk *walk, int unit);
enum tri_status tri_zero_walk_leave(struct tri_zero_walk *walk, int unit);
/* The rooms are free: what was lent has been reduced. */
enum tri_status tri_zero_walk_end(struct tri_zero_walk *walk);

/* ---- rows of parameters (rows.c) ----------------------------------------------------------------
 */

/* Which elements of a buffer are right on this rank. */
enum tri_zero_holds {
    TRI_ZERO_HOLDS_ALL,  /* everything */
    TRI_ZERO_HOLDS_PART, /* its own part, at its place among everything */
    TRI_ZERO_HOLDS_OWN,  /* it is an own buffer */
};

struct tri_zero_buffer {
    void *data;
    enum tri_dtype dtype;
    enum tri_zero_holds holds;
};

/* Do ranks have to read together, because each holds a part? */
bool tri_zero_is_shared(const struct tri_zero *zero, const struct tri_zero_buffer *buffer);

/* Does this rank hold any of the rows? */
bool tri_zero_holds_rows(const struct tri_zero *zero, const struct tri_zero_buffer *buffer,
                         int param, int64_t row, int64_t rows);
/* Write those of the rows that this rank holds. `host`: (rows, width) float32. */
enum tri_status tri_zero_write_rows(struct tri_zero *zero, const struct tri_zero_buffer *buffer,
                                    int param, int64_t row, int64_t rows, const float *host);
/* Read rows into `host` of rank `reader`, or with -1 of every rank. All ranks ask for the same rows
 * of a shared buffer. */
enum tri_status tri_zero_read_rows(struct tri_zero *zero, const struct tri_zero_buffer *buffer,
                                   int param, int64_t row, int64_t rows, int reader, float *host);

#endif
