/* `check`: does Trireme compute what Transformers computed? */
#ifndef TRI_VERIFY_CHECK_H
#define TRI_VERIFY_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "comm/comm.h"
#include "pass/options.h"

struct tri_check_result {
    int rows;   /* of the table */
    int failed; /* rows over their bound */
};

/* How to compute. */
struct tri_check_way {
    const struct tri_pass_options *pass;
    const char *dtype; /* model.dtype; NULL: auto */
    int zero_stage;    /* what the ranks divide among them (zero/zero.h) */
};

/* Run the golden folder and print the table to `to`: logits, loss, the worst gradient by name,
 * gradient norms, the losses, the weights after the last step; each with its error and bound. A row
 * over its bound is not an error of this function.
 *
 * All ranks of `world` (NULL: one) call it and share the sequence; `to` may be NULL, and is on all
 * but the first. With several ranks each computes with one thread if pass->threads is 0. */
enum tri_status tri_check(const char *folder, const struct tri_check_way *way,
                          struct tri_comm *world, FILE *to, struct tri_check_result *out);

#endif
