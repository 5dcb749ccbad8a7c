#include "comm/gather.h"

#include <stdio.h>
#include <string.h>

enum tri_status tri_comm_gather(struct tri_comm *comm, const int64_t *values, int64_t n,
                                int64_t *all)
{
    int64_t size = comm != NULL ? comm->size : 1;
    int64_t rank = comm != NULL ? comm->rank : 0;
    memset(all, 0, (size_t)(size * n) * sizeof *all);
    memcpy(all + rank * n, values, (size_t)n * sizeof *all);
    return comm != NULL ? comm->ops->reduce_host(comm, all, size * n, TRI_I64, TRI_SUM) : TRI_OK;
}

enum { TEXT_WORDS = 64 };

enum tri_status tri_comm_all_well(struct tri_comm *comm, enum tri_status mine)
{
    if (comm == NULL || comm->size == 1)
        return mine;
    /* The least rank that failed; ranks that are well give one that does not exist. */
    int64_t first = mine == TRI_OK ? comm->size : comm->rank;
    char text[TEXT_WORDS * sizeof(int64_t)] = "";
    snprintf(text, sizeof text, "%s", tri_error_text());
    TRI_TRY(comm->ops->reduce_host(comm, &first, 1, TRI_I64, TRI_MIN));
    if (first == comm->size)
        return TRI_OK;
    int64_t words[2 + TEXT_WORDS] = {0};
    if (first == comm->rank) {
        words[0] = mine;
        words[1] = comm->world_rank;
        memcpy(words + 2, text, sizeof text);
    }
    TRI_TRY(comm->ops->reduce_host(comm, words, 2 + TEXT_WORDS, TRI_I64, TRI_SUM));
    memcpy(text, words + 2, sizeof text);
    text[sizeof text - 1] = '\0';
    return tri_fail((enum tri_status)words[0], "rank %d: %s", (int)words[1], text);
}
