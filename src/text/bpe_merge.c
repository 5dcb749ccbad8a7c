/* Symbols to tokens: the pair with the lowest rank first, the leftmost of equal ones. */
#include <stdlib.h>
#include <string.h>

#include "text/bpe_private.h"

enum { FEW_SYMBOLS = 64 };

void tri_bpe_room_free(struct tri_bpe_room *room)
{
    free(room->before);
    free(room->after);
    free(room->heap);
    memset(room, 0, sizeof *room);
}

/* The rank of a pair and what it becomes; a rank above all others if it is not merged. */
static int32_t look_up(const struct tri_bpe *bpe, int32_t left, int32_t right, int32_t *id)
{
    const struct tri_merge *merge = tri_bpe_find(bpe, left, right);
    *id = merge ? merge->id : -1;
    return merge ? merge->rank : INT32_MAX;
}

/* Merge in place, looking over all pairs each time: fastest for a few. */
static void merge_few(const struct tri_bpe *bpe, struct tri_ids *symbols)
{
    int32_t rank[FEW_SYMBOLS], joint[FEW_SYMBOLS]; /* of each symbol with the next */
    int32_t *id = symbols->data;
    int64_t pairs = symbols->count - 1;
    for (int64_t i = 0; i < pairs; i++)
        rank[i] = look_up(bpe, id[i], id[i + 1], &joint[i]);
    while (pairs > 0) {
        int32_t lowest = INT32_MAX;
        for (int64_t i = 0; i < pairs; i++)
            lowest = rank[i] < lowest ? rank[i] : lowest;
        if (lowest == INT32_MAX)
            break;
        int64_t best = 0;
        while (rank[best] != lowest)
            best++;
        id[best] = joint[best];
        pairs--;
        for (int64_t i = best + 1; i <= pairs; i++)
            id[i] = id[i + 1];
        for (int64_t i = best; i < pairs; i++) {
            rank[i] = rank[i + 1];
            joint[i] = joint[i + 1];
        }
        if (best < pairs)
            rank[best] = look_up(bpe, id[best], id[best + 1], &joint[best]);
        if (best > 0)
            rank[best - 1] = look_up(bpe, id[best - 1], id[best], &joint[best - 1]);
    }
    symbols->count = pairs + 1;
}

static enum tri_status make_room(struct tri_bpe_room *room, int64_t symbols)
{
    if (symbols <= room->symbols)
        return TRI_OK;
    if (symbols > INT32_MAX)
        return tri_fail(TRI_UNSUPPORTED,
                        "a piece of %lld characters without a place to cut it: at most 2^31 - 1",
                        (long long)symbols);
    tri_bpe_room_free(room);
    room->before = malloc((size_t)symbols * sizeof *room->before);
    room->after = malloc((size_t)symbols * sizeof *room->after);
    /* Each of n - 1 pairs at first, and at most two more for each of n - 1 merges. */
    room->heap = malloc(3 * (size_t)symbols * sizeof *room->heap);
    if (!room->before || !room->after || !room->heap) {
        tri_bpe_room_free(room);
        return tri_fail(TRI_NOMEM, "no memory to encode a piece of %lld characters",
                        (long long)symbols);
    }
    room->symbols = symbols;
    return TRI_OK;
}

static void push_candidate(const struct tri_bpe *bpe, struct tri_bpe_room *room, const int32_t *id,
                           int32_t at)
{
    const int32_t next = room->after[at];
    const struct tri_merge *merge = next < 0 ? NULL : tri_bpe_find(bpe, id[at], id[next]);
    if (!merge)
        return;
    const struct tri_bpe_candidate new = {(uint64_t)merge->rank << 32 | (uint32_t)at, merge->id};
    int64_t i = room->num_candidates++;
    for (; i > 0 && room->heap[(i - 1) / 2].order > new.order; i = (i - 1) / 2)
        room->heap[i] = room->heap[(i - 1) / 2];
    room->heap[i] = new;
}

static struct tri_bpe_candidate pop_candidate(struct tri_bpe_room *room)
{
    struct tri_bpe_candidate *heap = room->heap;
    const struct tri_bpe_candidate top = heap[0];
    const struct tri_bpe_candidate last = heap[--room->num_candidates];
    const int64_t count = room->num_candidates;
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && heap[child + 1].order < heap[child].order)
            child++;
        if (heap[child].order >= last.order)
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* Merge by a heap of candidates; symbols that are gone get the id -1 until the end. */
static enum tri_status merge_many(const struct tri_bpe *bpe, struct tri_bpe_room *room,
                                  struct tri_ids *symbols)
{
    const int64_t count = symbols->count;
    TRI_TRY(make_room(room, count));
    int32_t *id = symbols->data, *before = room->before, *after = room->after;
    for (int32_t i = 0; i < count; i++) {
        before[i] = i - 1;
        after[i] = i + 1 < count ? i + 1 : -1;
    }
    room->num_candidates = 0;
    for (int32_t i = 0; i + 1 < count; i++)
        push_candidate(bpe, room, id, i);
    while (room->num_candidates > 0) {
        const struct tri_bpe_candidate top = pop_candidate(room);
        const int32_t at = (int32_t)(uint32_t)top.order;
        const int32_t next = after[at];
        if (id[at] < 0 || next < 0)
            continue;
        const struct tri_merge *merge = tri_bpe_find(bpe, id[at], id[next]);
        if (!merge || merge->id != top.id)
            continue; /* one of the two has been merged since */
        id[at] = merge->id;
        id[next] = -1;
        after[at] = after[next];
        if (after[at] >= 0)
            before[after[at]] = at;
        if (before[at] >= 0)
            push_candidate(bpe, room, id, before[at]);
        push_candidate(bpe, room, id, at);
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (id[i] >= 0)
            id[kept++] = id[i];
    symbols->count = kept;
    return TRI_OK;
}

enum tri_status tri_bpe_merge(const struct tri_bpe *bpe, struct tri_bpe_room *room,
                              struct tri_ids *symbols)
{
    if (symbols->count > FEW_SYMBOLS)
        return merge_many(bpe, room, symbols);
    if (symbols->count > 1)
        merge_few(bpe, symbols);
    return TRI_OK;
}
