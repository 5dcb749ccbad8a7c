#include "comm/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tri_compare_wanted(void)
{
    const char *text = getenv("TRIREME_COMM_CHECK");
    return text != NULL && strcmp(text, "1") == 0;
}

/* Zeros behind the texts: calls are sent as bytes. */
struct tri_call tri_call_plain(const struct tri_comm *comm, const char *what)
{
    struct tri_call call;
    memset(&call, 0, sizeof call);
    snprintf(call.what, sizeof call.what, "%s", what);
    call.world_rank = comm->world_rank;
    return call;
}

static struct tri_call call_of(const struct tri_comm *comm, const char *what, int64_t amount,
                               const char *of)
{
    struct tri_call call = tri_call_plain(comm, what);
    snprintf(call.of, sizeof call.of, "%s", of);
    call.amount = amount;
    return call;
}

struct tri_call tri_call_all_to_all(const struct tri_comm *comm, int parts)
{
    return call_of(comm, "all-to-all", parts, "parts");
}

struct tri_call tri_call_all_gather(const struct tri_comm *comm, size_t bytes)
{
    return call_of(comm, "all-gather", (int64_t)bytes, "bytes");
}

struct tri_call tri_call_broadcast(const struct tri_comm *comm, size_t bytes, int root)
{
    char of[36];
    snprintf(of, sizeof of, "bytes of member %d", root);
    return call_of(comm, "broadcast", (int64_t)bytes, of);
}

struct tri_call tri_call_reduce(const struct tri_comm *comm, const char *what, int64_t n,
                                enum tri_dtype dtype, enum tri_reduction reduction)
{
    static const char *const names[] = {
        [TRI_SUM] = "sum", [TRI_MIN] = "least", [TRI_MAX] = "greatest"};
    char of[36];
    snprintf(of, sizeof of, "%s (%s)", tri_dtype_name(dtype), names[reduction]);
    return call_of(comm, what, n, of);
}

static void describe(const struct tri_call *call, char text[128])
{
    if (call->of[0] == '\0')
        snprintf(text, 128, "%s", call->what);
    else
        snprintf(text, 128, "%s of %" PRId64 " %s", call->what, call->amount, call->of);
}

enum tri_status tri_call_compare(const struct tri_call *mine, const struct tri_call *other)
{
    char here[128], there[128];
    if (strcmp(mine->what, other->what) == 0 && strcmp(mine->of, other->of) == 0 &&
        mine->amount == other->amount)
        return TRI_OK;
    describe(mine, here);
    describe(other, there);
    return tri_fail(TRI_COMM, "ranks went apart: rank %" PRId64 " is in %s, rank %" PRId64 " in %s",
                    mine->world_rank, here, other->world_rank, there);
}

enum tri_status tri_calls_compare(const struct tri_call *mine, const struct tri_call *all, int size)
{
    for (int r = 0; r < size; r++)
        TRI_TRY(tri_call_compare(mine, &all[r]));
    return TRI_OK;
}

enum tri_status tri_block_compare(int part, int from, const struct tri_block *sent, int to,
                                  const struct tri_block *expected)
{
    if (sent->rows == expected->rows && sent->row_bytes == expected->row_bytes)
        return TRI_OK;
    return tri_fail(TRI_COMM,
                    "all-to-all, part %d: member %d sends %" PRId64
                    " rows of %zu bytes, member %d expects %" PRId64 " of %zu",
                    part, from, sent->rows, sent->row_bytes, to, expected->rows,
                    expected->row_bytes);
}

enum tri_status tri_blocks_compare(const struct tri_comm *comm, int parts,
                                   const struct tri_block *all, const struct tri_block *recv)
{
    int size = comm->size, rank = comm->rank;
    size_t count = (size_t)parts * (size_t)size; /* blocks of a rank */
    for (int r = 0; r < size; r++)
        for (int p = 0; p < parts; p++) {
            const struct tri_block *sent = &all[(size_t)r * count + (size_t)(p * size + rank)];
            TRI_TRY(tri_block_compare(p, r, sent, rank, &recv[p * size + r]));
        }
    return TRI_OK;
}
