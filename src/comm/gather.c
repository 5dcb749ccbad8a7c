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

enum tri_status tri_comm_hand_round(struct tri_comm *comm, int root, void *bytes, size_t count)
{
    enum { WORDS = 1 << 14 };
    int64_t words[WORDS];
    char *at = bytes;
    /* All but the root add zeros. */
    for (size_t done = 0; done < count; done += sizeof words) {
        size_t n = count - done < sizeof words ? count - done : sizeof words;
        int64_t used = (int64_t)((n + 7) / 8);
        memset(words, 0, (size_t)used * sizeof *words);
        if (comm->rank == root)
            memcpy(words, at + done, n);
        TRI_TRY(comm->ops->reduce_host(comm, words, used, TRI_I64, TRI_SUM));
        memcpy(at + done, words, n);
    }
    return TRI_OK;
}

enum tri_status tri_comm_all_well(struct tri_comm *comm, enum tri_status mine)
{
    if (comm == NULL || comm->size == 1)
        return mine;
    /* The least rank that failed; ranks that are well give one that does not exist. */
    int64_t first = mine == TRI_OK ? comm->size : comm->rank;
    struct {
        enum tri_status status;
        int rank;
        char text[512];
    } news = {.status = mine, .rank = comm->world_rank};
    snprintf(news.text, sizeof news.text, "%s", tri_error_text());
    TRI_TRY(comm->ops->reduce_host(comm, &first, 1, TRI_I64, TRI_MIN));
    if (first == comm->size)
        return TRI_OK;
    TRI_TRY(tri_comm_hand_round(comm, (int)first, &news, sizeof news));
    (void)tri_fail(news.status, "%s", news.text);
    tri_error_name_rank(news.rank);
    return news.status;
}
