/* What every communicator must do, as a function of a rank: the same cases run over threads, MPI
 * and NCCL. Each returns TRI_OK, or fails with what went wrong. */
#ifndef TRI_TESTS_UNIT_COMM_COLLECTIVES_H
#define TRI_TESTS_UNIT_COMM_COLLECTIVES_H

#include <string.h>

#include "comm/comm.h"

enum { CASE_ROWS = 3, CASE_COLS = 5, CASE_MAX_RANKS = 16, CASE_COUNT = 1001 };

#define CASE_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tri_fail(TRI_INTERNAL, "%s:%d: rank %d of %d: %s", __FILE__, __LINE__,          \
                            comm->rank, comm->size, #condition);                                   \
    } while (0)

/* Rank r sends r+1 to q+1 columns: strided on one side, uneven over ranks. */
static inline enum tri_status case_all_to_all(struct tri_comm *comm)
{
    static _Thread_local int64_t from[CASE_MAX_RANKS][CASE_ROWS][CASE_MAX_RANKS + 1];
    static _Thread_local int64_t to[CASE_MAX_RANKS][CASE_ROWS][2 * CASE_MAX_RANKS];
    struct tri_block send[CASE_MAX_RANKS], recv[CASE_MAX_RANKS];
    memset(to, -1, sizeof to);
    for (int r = 0; r < comm->size; r++) {
        for (int i = 0; i < CASE_ROWS; i++)
            for (int j = 0; j <= CASE_MAX_RANKS; j++)
                from[r][i][j] = ((comm->rank * 100 + r) * 100 + i) * 100 + j;
        send[r] = (struct tri_block){from[r], CASE_ROWS, (size_t)(r + 1) * 8, sizeof from[r][0]};
        recv[r] =
            (struct tri_block){to[r], CASE_ROWS, (size_t)(comm->rank + 1) * 8, sizeof to[r][0]};
    }
    TRI_TRY(comm->ops->all_to_all(comm, NULL, 1, send, recv));
    for (int r = 0; r < comm->size; r++)
        for (int i = 0; i < CASE_ROWS; i++)
            for (int j = 0; j < 2 * CASE_MAX_RANKS; j++)
                CASE_CHECK(to[r][i][j] ==
                           (j <= comm->rank ? ((r * 100 + comm->rank) * 100 + i) * 100 + j : -1));
    return TRI_OK;
}

static inline enum tri_status case_gather_and_scatter(struct tri_comm *comm)
{
    static _Thread_local float all[CASE_MAX_RANKS * CASE_COUNT], sum[CASE_COUNT];
    int n = CASE_COUNT;
    float *own = all + comm->rank * n;
    for (int i = 0; i < n; i++)
        own[i] = (float)(comm->rank * 7 + i);
    TRI_TRY(comm->ops->all_gather(comm, NULL, all, own, (size_t)n * sizeof *own));
    for (int r = 0; r < comm->size; r++)
        for (int i = 0; i < n; i++)
            CASE_CHECK(all[r * n + i] == (float)(r * 7 + i));
    /* Every rank holds the same, so the sum is `size` times each. */
    TRI_TRY(comm->ops->reduce_scatter(comm, NULL, sum, all, n, TRI_F32));
    for (int i = 0; i < n; i++)
        CASE_CHECK(sum[i] == (float)comm->size * (float)(comm->rank * 7 + i));
    TRI_TRY(comm->ops->reduce_scatter(comm, NULL, own, all, n, TRI_F32)); /* in place */
    for (int i = 0; i < n; i++)
        CASE_CHECK(own[i] == sum[i]);
    TRI_TRY(comm->ops->all_gather(comm, NULL, all, own, 0));
    return TRI_OK;
}

static inline enum tri_status case_all_reduce(struct tri_comm *comm)
{
    static _Thread_local double values[CASE_COUNT];
    int p = comm->size;
    for (int i = 0; i < CASE_COUNT; i++)
        values[i] = comm->rank + 0.5 * i;
    TRI_TRY(comm->ops->all_reduce(comm, NULL, values, CASE_COUNT, TRI_F64, TRI_SUM));
    for (int i = 0; i < CASE_COUNT; i++)
        CASE_CHECK(values[i] == 0.5 * (p - 1) * p + 0.5 * i * p);
    int64_t extremes[2] = {comm->rank, -comm->rank};
    TRI_TRY(tri_comm_max_int(comm, extremes, 2));
    CASE_CHECK(extremes[0] == p - 1 && extremes[1] == 0);
    float one = (float)comm->rank;
    TRI_TRY(comm->ops->all_reduce(comm, NULL, &one, 1, TRI_F32, TRI_MIN));
    CASE_CHECK(one == 0.0f);
    return TRI_OK;
}

static inline enum tri_status case_broadcast_and_agree(struct tri_comm *comm)
{
    char text[64];
    memset(text, comm->rank, sizeof text);
    TRI_TRY(comm->ops->broadcast(comm, NULL, text, sizeof text, comm->size - 1));
    for (size_t i = 0; i < sizeof text; i++)
        CASE_CHECK(text[i] == (char)(comm->size - 1));
    TRI_TRY(tri_comm_agree(comm, "an equal value", INT64_MIN));
    CASE_CHECK(comm->size == 1 || tri_comm_agree(comm, "the rank", comm->rank) == TRI_INVALID);
    CASE_CHECK(comm->size == 1 || strstr(tri_error_text(), "ranks disagree on the rank") != NULL);
    return TRI_OK;
}

/* Halves in reversed order, each with its own sums. */
static inline enum tri_status case_split(struct tri_comm *comm)
{
    struct tri_comm *half = NULL;
    int color = comm->rank % 2;
    TRI_TRY(comm->ops->split(comm, color, -comm->rank, &half));
    int expected = (comm->size + 1 - color) / 2;
    CASE_CHECK(half->size == expected);
    CASE_CHECK(half->rank == expected - 1 - comm->rank / 2);
    CASE_CHECK(half->world_rank == comm->world_rank);
    int64_t sum = comm->rank;
    int64_t want = 0;
    for (int r = color; r < comm->size; r += 2)
        want += r;
    TRI_TRY(tri_comm_sum_int(half, &sum, 1));
    CASE_CHECK(sum == want);
    tri_comm_close(half);
    return TRI_OK;
}

/* All cases, twice, so that left-overs of one call would be seen by the next. */
static inline enum tri_status all_cases(struct tri_comm *comm, void *ctx)
{
    (void)ctx;
    for (int round = 0; round < 2; round++) {
        TRI_TRY(case_all_to_all(comm));
        TRI_TRY(case_gather_and_scatter(comm));
        TRI_TRY(case_all_reduce(comm));
        TRI_TRY(case_broadcast_and_agree(comm));
        TRI_TRY(case_split(comm));
    }
    return TRI_OK;
}

#endif
