#include "attn/attention.h"

#include "base/arena.h"

/* First token of the document that token t belongs to. */
static int64_t document_begin(const struct tri_batch *batch, int64_t t)
{
    int64_t low = 0;
    int64_t high = batch->num_docs; /* doc_begin[low] <= t < doc_begin[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (batch->doc_begin[middle] <= t)
            low = middle;
        else
            high = middle;
    }
    return batch->doc_begin[low];
}

struct tri_chunk tri_attention_keys(const struct tri_attention *a, struct tri_chunk chunk)
{
    int64_t first = document_begin(a->batch, chunk.begin);
    if (a->window > 0 && chunk.begin - a->window + 1 > first)
        first = chunk.begin - a->window + 1;
    return (struct tri_chunk){.begin = first, .count = chunk.begin + chunk.count - first};
}

static struct tri_attn describe(const struct tri_attention *a, struct tri_chunk chunk,
                                struct tri_chunk keys)
{
    return (struct tri_attn){.scale = a->scale,
                             .q_begin = chunk.begin,
                             .k_begin = keys.begin,
                             .window = a->window,
                             .doc_begin = a->batch->doc_begin,
                             .num_docs = a->batch->num_docs,
                             .deterministic = a->deterministic};
}

/* The key heads and the value heads of rows of (keys | values). */
static struct tri_view key_heads(const struct tri_attention *a, struct tri_view kv)
{
    return tri_view_heads(tri_view_cols(kv, 0, kv.dim[1] / 2), a->num_kv_heads);
}

static struct tri_view value_heads(const struct tri_attention *a, struct tri_view kv)
{
    return tri_view_heads(tri_view_cols(kv, kv.dim[1] / 2, kv.dim[1] / 2), a->num_kv_heads);
}

static enum tri_status get_workspace(const struct tri_attention *a, const struct tri_attn *op,
                                     bool backward, struct tri_view q, struct tri_view k,
                                     void **out)
{
    size_t bytes = a->exec.ops->attn_workspace(a->exec.stream, op, backward, q, k);
    return tri_arena_alloc(a->exec.arena, "attention workspace", bytes, out);
}

enum tri_status tri_attention_forward(const struct tri_attention *a, struct tri_chunk chunk,
                                      struct tri_view o, struct tri_view lse, struct tri_view q)
{
    struct tri_chunk keys = tri_attention_keys(a, chunk);
    struct tri_attn op = describe(a, chunk, keys);
    size_t mark = tri_arena_mark(a->exec.arena);
    struct tri_view kv;
    void *workspace;
    TRI_TRY(tri_store_get(a->store, a->kv_slot, keys.begin, keys.count, &kv));
    TRI_TRY(get_workspace(a, &op, false, q, key_heads(a, kv), &workspace));
    TRI_TRY(a->exec.ops->attn_forward(a->exec.stream, &op, o, lse, q, key_heads(a, kv),
                                      value_heads(a, kv), workspace));
    tri_arena_release(a->exec.arena, mark);
    return tri_store_done(a->store, a->kv_slot, keys.begin, keys.count);
}

enum tri_status tri_attention_backward(const struct tri_attention *a, struct tri_chunk chunk,
                                       struct tri_view dq, struct tri_view dkv,
                                       struct tri_view dout, struct tri_view q, struct tri_view o,
                                       struct tri_view lse)
{
    struct tri_chunk keys = tri_attention_keys(a, chunk);
    struct tri_attn op = describe(a, chunk, keys);
    size_t mark = tri_arena_mark(a->exec.arena);
    struct tri_view kv;
    struct tri_view dkv_range = tri_view_rows(dkv, keys.begin, keys.count);
    void *workspace;
    TRI_TRY(tri_store_get(a->store, a->kv_slot, keys.begin, keys.count, &kv));
    TRI_TRY(get_workspace(a, &op, true, q, key_heads(a, kv), &workspace));
    TRI_TRY(a->exec.ops->attn_backward(a->exec.stream, &op, false, dq, key_heads(a, dkv_range),
                                       value_heads(a, dkv_range), dout, q, key_heads(a, kv),
                                       value_heads(a, kv), o, lse, workspace));
    tri_arena_release(a->exec.arena, mark);
    return tri_store_done(a->store, a->kv_slot, keys.begin, keys.count);
}
