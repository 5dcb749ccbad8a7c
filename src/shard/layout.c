#include "shard/layout.h"

/* A chunk longer than the sequence is the whole of it: nothing below may overflow. */
static int64_t chunk_size(const struct tri_layout *layout)
{
    return layout->chunk > 0 && layout->chunk < layout->tokens ? layout->chunk : layout->tokens;
}

int64_t tri_layout_chunks(const struct tri_layout *layout)
{
    int64_t size = chunk_size(layout);
    return size == 0 ? 0 : (layout->tokens + size - 1) / size;
}

struct tri_range tri_layout_chunk(const struct tri_layout *layout, int64_t i)
{
    int64_t size = chunk_size(layout);
    int64_t begin = i * size;
    int64_t left = layout->tokens - begin;
    return (struct tri_range){.begin = begin, .count = left < size ? left : size};
}

struct tri_range tri_layout_part(const struct tri_layout *layout, int64_t i, int rank)
{
    struct tri_range chunk = tri_layout_chunk(layout, i);
    struct tri_range part = tri_split(chunk.count, layout->ranks, rank);
    part.begin += chunk.begin;
    return part;
}

struct tri_range tri_layout_rows(const struct tri_layout *layout, int64_t i, int rank)
{
    /* All chunks but the last have the same size. */
    int64_t of_full_chunk = tri_split(chunk_size(layout), layout->ranks, rank).count;
    return (struct tri_range){.begin = i * of_full_chunk,
                              .count = tri_layout_part(layout, i, rank).count};
}

int64_t tri_layout_local(const struct tri_layout *layout, int rank)
{
    int64_t chunks = tri_layout_chunks(layout);
    if (chunks == 0)
        return 0;
    struct tri_range last = tri_layout_rows(layout, chunks - 1, rank);
    return last.begin + last.count;
}

struct tri_chunk tri_layout_at(const struct tri_layout *layout, int64_t i, int rank)
{
    return (struct tri_chunk){.index = i,
                              .tokens = tri_layout_chunk(layout, i),
                              .rows = tri_layout_rows(layout, i, rank)};
}

enum tri_status tri_heads_check(int64_t num_heads, int64_t num_kv_heads, int ranks)
{
    if (num_kv_heads < 1 || num_heads % num_kv_heads != 0)
        return tri_fail(TRI_INVALID, "%lld key heads do not divide %lld query heads",
                        (long long)num_kv_heads, (long long)num_heads);
    if (ranks < 1 || ranks > num_heads)
        return tri_fail(
            TRI_INVALID,
            "sequence_parallel_size %d is more than the %lld query heads of the model: "
            "set it to a divisor of the number of ranks that is at most %lld; the rest are "
            "replicas",
            ranks, (long long)num_heads, (long long)num_heads);
    return TRI_OK;
}

struct tri_heads tri_heads_split(int64_t num_heads, int64_t num_kv_heads, int ranks, int rank)
{
    int64_t group = num_heads / num_kv_heads;
    struct tri_range q = tri_split(num_heads, ranks, rank);
    int64_t first = q.begin / group;
    int64_t last = (q.begin + q.count - 1) / group;
    return (struct tri_heads){.query = q, .key = {.begin = first, .count = last - first + 1}};
}

struct tri_range tri_heads_group(const struct tri_heads *heads, int64_t num_heads,
                                 int64_t num_kv_heads, int64_t i)
{
    int64_t group = num_heads / num_kv_heads;
    int64_t begin = (heads->key.begin + i) * group;
    int64_t end = begin + group;
    int64_t q_end = heads->query.begin + heads->query.count;
    if (begin < heads->query.begin)
        begin = heads->query.begin;
    if (end > q_end)
        end = q_end;
    return (struct tri_range){.begin = begin, .count = end - begin};
}
