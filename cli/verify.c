#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "base/log.h"
#include "verify/verify.h"

struct request {
    struct tri_recipe *recipe;
    struct tri_verify_result result; /* of the first rank */
};

/* Every rank is a process: threads are started by the work itself. */
static enum tri_status verify(struct tri_comm *world, void *ctx)
{
    struct request *request = ctx;
    struct tri_verify_result result;
    bool first = world == NULL || world->rank == 0;
    TRI_TRY(tri_verify(request->recipe, world, "/proc/self/exe", first ? stdout : NULL, &result));
    if (first)
        request->result = result;
    return TRI_OK;
}

int tri_cli_verify(int argc, char **argv)
{
    struct request request = {.recipe = NULL};
    enum tri_status st = tri_cli_recipe(argc, argv, &request.recipe);
    if (st == TRI_OK) {
        const struct tri_recipe *r = request.recipe;
        bool cuda = strcmp(r->pass.backend, "cuda") == 0 ||
                    (strcmp(r->pass.backend, "auto") == 0 && tri_cuda_available());
        struct tri_cli_start how = {.backend = r->pass.backend,
                                    .ranks = cuda ? r->train.ranks : 1,
                                    .timeout = r->train.comm_timeout};
        st = tri_cli_start_ranks(argc, argv, &how, verify, &request);
    }
    tri_recipe_close(request.recipe);
    if (st == TRI_OK && request.result.failed > 0)
        st = tri_fail(TRI_INVALID, "verify: %d of %d rows are over their bounds, first: %s",
                      request.result.failed, request.result.rows, request.result.first);
    return tri_cli_end(st);
}
