/* Which tokens and which heads a rank of a sequence group holds.
 *
 * Chunk [a, a + n) of the sequence is split over the P ranks in order: rank r holds
 * [a + floor(r n / P), a + floor((r + 1) n / P)). A rank's parts of all chunks follow each other in
 * its memory. One chunk is then contiguous after the exchange, and any S, C and P work.
 *
 * Query heads are split like that too. A rank's key heads are those its query heads read, so a key
 * head may live on several ranks, and a rank may hold several key heads with unequal numbers of
 * query heads. */
#ifndef TRI_SHARD_LAYOUT_H
#define TRI_SHARD_LAYOUT_H

#include <stdint.h>

#include "base/range.h"
#include "base/status.h"

struct tri_layout {
    int64_t tokens; /* S */
    int64_t chunk;  /* C; 0, or any number above S: the whole sequence */
    int ranks;      /* P */
};

/* A chunk as one rank sees it. */
struct tri_chunk {
    int64_t index;
    struct tri_range tokens; /* of the whole sequence: what attention works on */
    struct tri_range rows;   /* this rank's part of them, in its own memory */
};

int64_t tri_layout_chunks(const struct tri_layout *layout);
struct tri_chunk tri_layout_at(const struct tri_layout *layout, int64_t i, int rank);
/* Global tokens of chunk i. */
struct tri_range tri_layout_chunk(const struct tri_layout *layout, int64_t i);
/* Global tokens of rank r's part of chunk i. */
struct tri_range tri_layout_part(const struct tri_layout *layout, int64_t i, int rank);
/* Where that part lies in the rank's memory: local rows. */
struct tri_range tri_layout_rows(const struct tri_layout *layout, int64_t i, int rank);
/* T: all local rows of a rank. */
int64_t tri_layout_local(const struct tri_layout *layout, int rank);

struct tri_heads {
    struct tri_range query;
    struct tri_range key; /* key heads that the query heads read */
};

/* Heads of rank r. num_kv_heads divides num_heads and 1 <= ranks <= num_heads, else TRI_INVALID
 * with the numbers. */
enum tri_status tri_heads_check(int64_t num_heads, int64_t num_kv_heads, int ranks);
struct tri_heads tri_heads_split(int64_t num_heads, int64_t num_kv_heads, int ranks, int rank);

/* The query heads of `heads` that read its i-th key head (0 <= i < heads.key.count). */
struct tri_range tri_heads_group(const struct tri_heads *heads, int64_t num_heads,
                                 int64_t num_kv_heads, int64_t i);

#endif
