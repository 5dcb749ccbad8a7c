#include "data/pack.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 5 }; /* 64^5 amounts of room: 2^30 tokens of a sequence */

/* ---- a set of small numbers that finds its next member ----------------------------------------
 *
 * Bit i of level 0 is member i; bit i of level k + 1 says that word i of level k is not zero. */

static int64_t words_of(int64_t capacity, int level)
{
    int64_t bits = capacity + 1;
    for (int i = 0; i <= level; i++)
        bits = (bits + 63) / 64;
    return bits;
}

static void insert(uint64_t *const *bits, int64_t member)
{
    for (int level = 0; level < LEVELS; level++, member /= 64)
        bits[level][member / 64] |= UINT64_C(1) << member % 64;
}

static void take_out(uint64_t *const *bits, int64_t member)
{
    for (int level = 0; level < LEVELS; level++, member /= 64) {
        bits[level][member / 64] &= ~(UINT64_C(1) << member % 64);
        if (bits[level][member / 64] != 0)
            return;
    }
}

/* The least member that is at least `from`, or -1. `end` is behind the largest. */
static int64_t find_from(uint64_t *const *bits, int64_t from, int64_t end)
{
    int64_t at = from, limit = end;
    for (int level = 0; level < LEVELS && at < limit; level++) {
        const uint64_t word = bits[level][at / 64] >> at % 64;
        if (word != 0) { /* here; then down to the least member below */
            at += __builtin_ctzll(word);
            while (level-- > 0)
                at = 64 * at + __builtin_ctzll(bits[level][at]);
            return at;
        }
        at = at / 64 + 1; /* all of this word is too small */
        limit = (limit + 63) / 64;
    }
    return -1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *numbers(int64_t count)
{
    return count > 0 && (uint64_t)count <= SIZE_MAX / sizeof(int64_t)
               ? malloc((size_t)count * sizeof(int64_t))
               : NULL;
}

enum tri_status tri_packing_open(int64_t most, int64_t capacity, struct tri_packing *out)
{
    struct tri_packing p = {.most = most, .capacity = capacity};
    if (capacity >= INT64_C(1) << 6 * LEVELS)
        return tri_fail(TRI_UNSUPPORTED,
                        "sequences of %" PRId64
                        " tokens are not packed: lower data.max_length below 2^30, or set "
                        "data.pack_samples: false",
                        capacity);
    p.item = numbers(most);
    p.begin = numbers(most + 1);
    p.bin = numbers(most);
    p.next = numbers(most);
    p.head = numbers(capacity + 1);
    bool complete = p.item && p.begin && p.bin && p.next && p.head;
    for (int level = 0; level < LEVELS; level++) {
        p.bits[level] = calloc((size_t)words_of(capacity, level), sizeof(uint64_t));
        complete = complete && p.bits[level];
    }
    if (!complete) {
        tri_packing_close(&p);
        return tri_fail(
            TRI_NOMEM, "no memory to pack %" PRId64 " samples into sequences of %" PRId64 " tokens",
            most, capacity);
    }
    *out = p;
    return TRI_OK;
}

void tri_packing_close(struct tri_packing *packing)
{
    free(packing->item);
    free(packing->begin);
    free(packing->bin);
    free(packing->next);
    free(packing->head);
    for (int level = 0; level < LEVELS; level++)
        free(packing->bits[level]);
    memset(packing, 0, sizeof *packing);
}

/* ---- packing --------------------------------------------------------------------------------- */

static int longer_first(const void *a, const void *b, void *ctx)
{
    const int64_t *lengths = ctx;
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    if (lengths[i] != lengths[j])
        return lengths[i] > lengths[j] ? -1 : 1;
    return (i > j) - (i < j);
}

/* Put a sequence among those with `room` left. */
static void link_bin(struct tri_packing *p, int64_t bin, int64_t room)
{
    if (p->head[room] < 0)
        insert(p->bits, room);
    p->next[bin] = p->head[room];
    p->head[room] = bin;
}

/* The sequence for a sample, taken out of its list; *room is what it has left before. */
static int64_t best_bin(struct tri_packing *p, int64_t length, int64_t *room)
{
    *room = find_from(p->bits, length, p->capacity + 1);
    if (*room < 0) {
        *room = p->capacity;
        return p->num_bins++;
    }
    const int64_t bin = p->head[*room];
    p->head[*room] = p->next[bin];
    if (p->head[*room] < 0)
        take_out(p->bits, *room);
    return bin;
}

/* From where each sample went to sequences in the order of their first samples. `new_name` has
 * room for the old names of all sequences. */
static void gather(struct tri_packing *p, int64_t count, int64_t *new_name)
{
    for (int64_t b = 0; b < p->num_bins; b++) {
        new_name[b] = -1;
        p->begin[b] = 0;
    }
    int64_t bins = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t *name = &new_name[p->bin[i]];
        if (*name < 0)
            *name = bins++;
        p->bin[i] = *name;
        p->begin[*name]++;
    }
    int64_t before = 0;
    for (int64_t b = 0; b < bins; b++) { /* counts become where to put the next one */
        const int64_t size = p->begin[b];
        p->begin[b] = before;
        before += size;
    }
    for (int64_t i = 0; i < count; i++)
        p->item[p->begin[p->bin[i]]++] = i;
    for (int64_t b = bins; b > 0; b--) /* each begin is now the end of its sequence */
        p->begin[b] = p->begin[b - 1];
    p->begin[0] = 0;
}

void tri_pack_best_fit(struct tri_packing *p, const int64_t *lengths, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        p->item[i] = i;
    qsort_r(p->item, (size_t)count, sizeof *p->item, longer_first, (void *)(uintptr_t)lengths);
    for (int64_t room = 0; room <= p->capacity; room++)
        p->head[room] = -1;
    for (int level = 0; level < LEVELS; level++)
        memset(p->bits[level], 0, (size_t)words_of(p->capacity, level) * sizeof(uint64_t));
    p->num_bins = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t room;
        const int64_t length = lengths[p->item[i]];
        const int64_t bin = best_bin(p, length, &room);
        p->bin[p->item[i]] = bin;
        link_bin(p, bin, room - length);
    }
    gather(p, count, p->next);
}

void tri_pack_in_order(struct tri_packing *p, const int64_t *lengths, int64_t count)
{
    int64_t room = 0;
    p->num_bins = 0;
    for (int64_t i = 0; i < count; i++) {
        if (p->num_bins == 0 || lengths[i] > room) {
            p->begin[p->num_bins++] = i;
            room = p->capacity;
        }
        room -= lengths[i];
        p->item[i] = i;
    }
    p->begin[p->num_bins] = count;
}
