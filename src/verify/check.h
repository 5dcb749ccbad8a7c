/* `check`: does Trireme compute what Transformers computed? */
#ifndef TRI_VERIFY_CHECK_H
#define TRI_VERIFY_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "pass/options.h"

struct tri_check_result {
    int rows;   /* of the table */
    int failed; /* rows over their bound */
};

/* With `ranks` above 1 the sequence is split over that many threads of this process.
 *
 * Run the golden folder and print the table to `to`: logits, loss, the worst gradient by name,
 * gradient norms, the losses, the weights after the last step; each with its error and bound.
 * `dtype` is model.dtype. A row over its bound is not an error of this function. */
enum tri_status tri_check(const char *folder, const struct tri_pass_options *pass,
                          const char *dtype, int ranks, FILE *to, struct tri_check_result *out);

#endif
