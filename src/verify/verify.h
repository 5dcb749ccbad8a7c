/* `verify`: are the numbers of this recipe independent of how they are computed?
 *
 * On the recipe's own model and data, shrunk to the first layers and tokens that take seconds: one
 * rank against many, tiles, chunks, checkpointing, ZeRO, accumulation; who sees whom; saving,
 * being killed and going on. proof/ has a file for each. */
#ifndef TRI_VERIFY_VERIFY_H
#define TRI_VERIFY_VERIFY_H

#include <stdio.h>

#include "recipe/recipe.h"
#include "trireme/comm.h"

struct tri_verify_result {
    int rows;        /* of the tables */
    int failed;      /* rows over their bound */
    char first[160]; /* the first of them, and by how much */
};

/* Print the tables to `to`, which is NULL on all but the first rank. A row over its bound is not an
 * error of this function.
 *
 * `world` NULL: ranks are threads of this process, on the CPU; otherwise all ranks of `world` call
 * it, and these are the ranks that the work is split over. `program` is the path of trireme, which
 * is started and killed; NULL: that part is left out, as it is with a world. */
enum tri_status tri_verify(struct tri_recipe *recipe, struct tri_comm *world, const char *program,
                           FILE *to, struct tri_verify_result *out);

#endif
