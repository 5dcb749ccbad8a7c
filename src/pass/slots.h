/* Which tensors of which layer are kept, and where: the store slots of one micro-batch. */
#ifndef TRI_PASS_SLOTS_H
#define TRI_PASS_SLOTS_H

#include "pass/pass.h"

/* Slots of a layer. Index L (after the last layer) has only TRI_SLOT_X: the top of the stack. */
enum tri_slot {
    TRI_SLOT_X,     /* the layer's input */
    TRI_SLOT_KV,    /* keys and values */
    TRI_SLOT_K_RAW, /* keys before QK-norm */
    TRI_SLOT_Q,
    TRI_SLOT_Q_RAW,
    TRI_SLOT_O,
    TRI_SLOT_LSE,
    TRI_SLOT_MID,
    TRI_SLOT_IN,
    TRI_NUM_SLOTS,
};

/* Reserve the slots for pass->net.batch. */
enum tri_status tri_slots_add(struct tri_pass *pass);

/* The slot's number in the store, or -1. */
int tri_slot(const struct tri_pass *pass, int64_t layer, enum tri_slot which);

/* Rows of `chunk` of everything that a layer keeps, to be filled (forward) or read (backward). */
enum tri_status tri_slots_fill(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk,
                               struct tri_block_kept *kept);
enum tri_status tri_slots_put(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk);
enum tri_status tri_slots_get(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk,
                              struct tri_block_kept *kept);
enum tri_status tri_slots_done(struct tri_pass *pass, int64_t layer, struct tri_chunk chunk);

/* This rank's place in its sequence group. */
int tri_pass_rank(const struct tri_pass *pass);

/* Chunks of the batch at work, in the order of the sequence. */
int64_t tri_pass_chunks(const struct tri_pass *pass);
struct tri_chunk tri_pass_chunk(const struct tri_pass *pass, int64_t i);

#endif
