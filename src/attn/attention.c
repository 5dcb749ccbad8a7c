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

struct tri_range tri_attention_keys(const struct tri_attention *a, struct tri_range chunk)
{
    int64_t first = document_begin(a->batch, chunk.begin);
    if (a->window > 0 && chunk.begin - a->window + 1 > first)
        first = chunk.begin - a->window + 1;
    return (struct tri_range){.begin = first, .count = chunk.begin + chunk.count - first};
}

static struct tri_attn describe(const struct tri_attention *a, struct tri_range chunk,
                                struct tri_range keys)
{
    return (struct tri_attn){.scale = a->scale,
                             .q_begin = chunk.begin,
                             .k_begin = keys.begin,
                             .window = a->window,
                             .doc_begin = a->batch->doc_begin,
                             .num_docs = a->batch->num_docs,
                             .deterministic = a->deterministic};
}

/* Query heads that read the same number of keys each: one call of the backend. Usually that is all
 * heads; a rank whose key heads serve unequal numbers of its query heads makes a call for each. */
struct call {
    struct tri_range query; /* among the rank's heads */
    struct tri_range key;
};

static int64_t num_calls(const struct tri_attention *a)
{
    int64_t first = tri_heads_group(&a->heads, a->num_heads, a->num_kv_heads, 0).count;
    for (int64_t i = 1; i < a->heads.key.count; i++)
        if (tri_heads_group(&a->heads, a->num_heads, a->num_kv_heads, i).count != first)
            return a->heads.key.count;
    return 1;
}

static struct call call_at(const struct tri_attention *a, int64_t calls, int64_t i)
{
    if (calls == 1)
        return (struct call){{0, a->heads.query.count}, {0, a->heads.key.count}};
    struct tri_range group = tri_heads_group(&a->heads, a->num_heads, a->num_kv_heads, i);
    return (struct call){{group.begin - a->heads.query.begin, group.count}, {i, 1}};
}

/* The heads of a call in q, o, dq, dout (n,Hq,D) and in lse (n,Hq). */
static struct tri_view heads_of(struct tri_view v, struct tri_range heads)
{
    v.data = (char *)v.data + heads.begin * v.stride[1] * (int64_t)tri_dtype_bytes(v.dtype);
    v.dim[1] = heads.count;
    return v;
}

/* Its key heads and value heads in rows of (keys | values). */
static struct tri_view keys_of(const struct tri_attention *a, struct tri_view kv,
                               struct tri_range heads)
{
    return heads_of(tri_view_heads(tri_view_cols(kv, 0, kv.dim[1] / 2), a->heads.key.count), heads);
}

static struct tri_view values_of(const struct tri_attention *a, struct tri_view kv,
                                 struct tri_range heads)
{
    return heads_of(
        tri_view_heads(tri_view_cols(kv, kv.dim[1] / 2, kv.dim[1] / 2), a->heads.key.count), heads);
}

static enum tri_status get_workspace(const struct tri_attention *a, const struct tri_attn *op,
                                     bool backward, struct tri_view q, struct tri_view k,
                                     void **out)
{
    size_t bytes = a->exec.ops->attn_workspace(a->exec.stream, op, backward, q, k);
    return tri_arena_alloc(a->exec.arena, "attention workspace", bytes, out);
}

enum tri_status tri_attention_forward(const struct tri_attention *a, struct tri_range chunk,
                                      struct tri_view o, struct tri_view lse, struct tri_view q)
{
    struct tri_range keys = tri_attention_keys(a, chunk);
    struct tri_attn op = describe(a, chunk, keys);
    int64_t calls = num_calls(a);
    struct tri_view kv;
    TRI_TRY(tri_store_get(a->store, a->kv_slot, keys.begin, keys.count, &kv));
    for (int64_t i = 0; i < calls; i++) {
        struct call c = call_at(a, calls, i);
        struct tri_view qc = heads_of(q, c.query);
        struct tri_view k = keys_of(a, kv, c.key);
        size_t mark = tri_arena_mark(a->exec.arena);
        void *workspace;
        TRI_TRY(get_workspace(a, &op, false, qc, k, &workspace));
        TRI_TRY(a->exec.ops->attn_forward(a->exec.stream, &op, heads_of(o, c.query),
                                          heads_of(lse, c.query), qc, k, values_of(a, kv, c.key),
                                          workspace));
        tri_arena_release(a->exec.arena, mark);
    }
    return tri_store_done(a->store, a->kv_slot, keys.begin, keys.count);
}

enum tri_status tri_attention_backward(const struct tri_attention *a, struct tri_range chunk,
                                       struct tri_view dq, struct tri_view dkv,
                                       struct tri_view dout, struct tri_view q, struct tri_view o,
                                       struct tri_view lse)
{
    struct tri_range keys = tri_attention_keys(a, chunk);
    struct tri_attn op = describe(a, chunk, keys);
    int64_t calls = num_calls(a);
    struct tri_view dkv_range = tri_view_rows(dkv, keys.begin, keys.count);
    struct tri_view kv;
    TRI_TRY(tri_store_get(a->store, a->kv_slot, keys.begin, keys.count, &kv));
    for (int64_t i = 0; i < calls; i++) {
        struct call c = call_at(a, calls, i);
        struct tri_view qc = heads_of(q, c.query);
        struct tri_view k = keys_of(a, kv, c.key);
        size_t mark = tri_arena_mark(a->exec.arena);
        void *workspace;
        TRI_TRY(get_workspace(a, &op, true, qc, k, &workspace));
        TRI_TRY(a->exec.ops->attn_backward(
            a->exec.stream, &op, false, heads_of(dq, c.query), keys_of(a, dkv_range, c.key),
            values_of(a, dkv_range, c.key), heads_of(dout, c.query), qc, k, values_of(a, kv, c.key),
            heads_of(o, c.query), heads_of(lse, c.query), workspace));
        tri_arena_release(a->exec.arena, mark);
    }
    return tri_store_done(a->store, a->kv_slot, keys.begin, keys.count);
}
