/* Ranks as threads of a test. */
#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "comm/thread/thread.h"

/* In what a rank runs, where cmocka's assertions would leave a thread that is not theirs. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tri_fail(TRI_INTERNAL, "line %d: %s", __LINE__, #condition);                    \
    } while (0)

/* Fail the test unless function(comm, ctx) succeeds on all of `ranks` ranks. */
static inline void run_ranks(int ranks, tri_rank_function *function, void *ctx)
{
    if (tri_comm_threads_run(ranks, 100, function, ctx) != TRI_OK)
        fail_msg("%d ranks: %s", ranks, tri_error_text());
}

#endif
