/* Attention: what a query sees, workspace, tasks over threads. The work is in simd/attn_*.inc. */
#include "backend/cpu/attn.h"

#include <string.h>

#include "backend/cpu/stream.h"

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The document that holds global token i: the last one that begins at or before it. */
static int64_t document_of(const struct tri_attn *op, int64_t i)
{
    int64_t low = 0, high = op->num_docs;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (op->doc_begin[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void tri_attn_ranges(const struct tri_attn *op, int64_t num_keys, int64_t first, int64_t count,
                     struct tri_attn_range *out)
{
    if (count == 0)
        return;
    int64_t doc = op->num_docs > 0 ? document_of(op, op->q_begin + first) : 0;
    for (int64_t r = 0; r < count; r++) {
        const int64_t i = op->q_begin + first + r;
        while (doc + 1 < op->num_docs && op->doc_begin[doc + 1] <= i)
            doc++;
        int64_t begin = op->num_docs > 0 ? op->doc_begin[doc] : 0;
        if (op->window > 0 && begin < i - op->window + 1)
            begin = i - op->window + 1;
        out[r].begin = clamp(begin - op->k_begin, 0, num_keys);
        out[r].end = clamp(i + 1 - op->k_begin, 0, num_keys);
    }
}

void tri_attn_seen_by(const struct tri_attn *op, int64_t num_queries, int64_t k0, int64_t count,
                      int64_t *begin, int64_t *end)
{
    const int64_t last_key = op->k_begin + k0 + count - 1;
    int64_t to = op->q_begin + num_queries;
    if (op->num_docs > 0) {
        int64_t doc = document_of(op, last_key);
        if (doc + 1 < op->num_docs && op->doc_begin[doc + 1] < to)
            to = op->doc_begin[doc + 1];
    }
    if (op->window > 0 && op->window < to - last_key)
        to = last_key + op->window;
    *begin = clamp(op->k_begin + k0 - op->q_begin, 0, num_queries);
    *end = clamp(to - op->q_begin, 0, num_queries);
}

/* Blocks of `size` on the global grid that [begin, begin + count) touches. */
static int64_t blocks_touched(int64_t begin, int64_t count, int64_t size)
{
    return count == 0 ? 0 : tri_floor_div(begin + count - 1, size) - tri_floor_div(begin, size) + 1;
}

/* The workspace of a call: tiles of the threads, then delta, dq_lost and turns for backward, of as
 * many queries as it goes over at a time. */
struct layout {
    int64_t tile_floats; /* of one thread */
    size_t delta_at, lost_at, turn_at, bytes;
};

static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static struct layout layout_of(const struct tri_cpu *cpu, const struct tri_attn *op, bool backward,
                               struct tri_view q, struct tri_view k)
{
    struct layout l;
    int64_t floats = backward ? cpu->simd->tiles.backward_floats(q.dim[2])
                              : cpu->simd->tiles.forward_floats(q.dim[2]);
    l.tile_floats = (floats + 15) / 16 * 16;
    l.delta_at = (size_t)(l.tile_floats * cpu->threads) * sizeof(float);
    l.lost_at = l.turn_at = l.bytes = l.delta_at;
    if (backward) {
        const int64_t rows = lesser(q.dim[0], TRI_ATTN_BACKWARD_ROWS);
        const int64_t blocks = lesser(blocks_touched(op->q_begin, q.dim[0], TRI_ATTN_QUERIES),
                                      TRI_ATTN_BACKWARD_ROWS / TRI_ATTN_QUERIES);
        l.lost_at = round_up(l.delta_at + (size_t)(rows * q.dim[1]) * sizeof(float));
        l.turn_at = round_up(l.lost_at + (size_t)(rows * q.dim[1] * q.dim[2]) * sizeof(float));
        l.bytes = l.turn_at + (size_t)(blocks * k.dim[1]) * sizeof(atomic_int);
    }
    l.bytes += 64; /* to align the start */
    return l;
}

static size_t attn_workspace(struct tri_stream *s, const struct tri_attn *op, bool backward,
                             struct tri_view q, struct tri_view k)
{
    if (q.dtype != TRI_F32)
        return s->cpu->reference.attn_workspace(s, op, backward, q, k);
    return layout_of(s->cpu, op, backward, q, k).bytes;
}

static char *aligned(void *workspace)
{
    return (char *)workspace + (64 - (uintptr_t)workspace % 64) % 64;
}

static struct tri_attn_call call_of(const struct tri_attn *op, struct tri_view q, struct tri_view k)
{
    struct tri_attn_call c = {.op = op, .q = q, .k = k};
    c.num_queries = q.dim[0];
    c.num_keys = k.dim[0];
    c.num_heads = q.dim[1];
    c.num_kv_heads = k.dim[1];
    c.group = c.num_kv_heads > 0 ? c.num_heads / c.num_kv_heads : 0;
    c.head_size = q.dim[2];
    return c;
}

/* Take tasks in ascending order until there are none. */
static void run_tasks(const struct tri_cpu *cpu, const struct tri_attn_call *call, int64_t tasks,
                      void (*work)(const struct tri_attn_call *call, int64_t task, float *tile),
                      float *tiles, int64_t tile_floats)
{
    const int workers = tasks <= 1 ? 1 : cpu->threads;
    if (workers == 1) {
        for (int64_t task = 0; task < tasks; task++)
            work(call, task, tiles);
        return;
    }
    atomic_llong next;
    atomic_init(&next, 0);
#pragma omp parallel num_threads(workers)
    {
        float *tile = tiles + tri_cpu_thread_index() * tile_floats;
        int64_t task;
        while ((task = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed)) < tasks)
            work(call, task, tile);
    }
}

static enum tri_status attn_forward(struct tri_stream *s, const struct tri_attn *op,
                                    struct tri_view o, struct tri_view lse, struct tri_view q,
                                    struct tri_view k, struct tri_view v, void *workspace)
{
    const struct tri_cpu *cpu = s->cpu;
    if (q.dtype != TRI_F32 || k.dtype != TRI_F32 || v.dtype != TRI_F32 || o.dtype != TRI_F32 ||
        lse.dtype != TRI_F32)
        return cpu->reference.attn_forward(s, op, o, lse, q, k, v, workspace);
    struct tri_attn_call c = call_of(op, q, k);
    if (c.num_queries == 0 || c.num_heads == 0)
        return TRI_OK;
    c.v = v;
    c.o = o;
    c.lse = lse;
    c.heads_per_task = c.group < TRI_ATTN_HEADS ? c.group : TRI_ATTN_HEADS;
    c.head_sets = (c.group + c.heads_per_task - 1) / c.heads_per_task;
    c.rows_per_head = TRI_ATTN_FORWARD_ROWS / c.heads_per_task;
    c.num_query_blocks = (c.num_queries + c.rows_per_head - 1) / c.rows_per_head;
    run_tasks(cpu, &c, c.num_query_blocks * c.num_kv_heads * c.head_sets, cpu->simd->attn_forward,
              (float *)(void *)aligned(workspace), layout_of(cpu, op, false, q, k).tile_floats);
    return TRI_OK;
}

/* delta = rows of dout * o; dq = 0 when it does not accumulate; nothing is lost of it yet. */
static void prepare_rows(const struct tri_cpu *cpu, const struct tri_attn_call *c, bool accumulate,
                         float *delta)
{
    const size_t bytes = (size_t)c->head_size * sizeof(float);
#pragma omp parallel for num_threads(tri_cpu_workers(cpu, tri_view_count(c->q))) schedule(static)
    for (int64_t t = 0; t < c->num_queries; t++)
        for (int64_t h = 0; h < c->num_heads; h++) {
            const float *dout =
                (const float *)c->dout.data + t * c->dout.stride[0] + h * c->dout.stride[1];
            const float *o = (const float *)c->o.data + t * c->o.stride[0] + h * c->o.stride[1];
            delta[t * c->num_heads + h] = cpu->simd->dot(c->head_size, dout, o);
            if (!accumulate)
                memset((float *)c->dq.data + t * c->dq.stride[0] + h * c->dq.stride[1], 0, bytes);
            memset(c->dq_lost + (h * c->num_queries + t) * c->head_size, 0, bytes);
        }
}

static void add_lost(const struct tri_cpu *cpu, const struct tri_attn_call *c)
{
#pragma omp parallel for num_threads(tri_cpu_workers(cpu, tri_view_count(c->q))) schedule(static)
    for (int64_t t = 0; t < c->num_queries; t++)
        for (int64_t h = 0; h < c->num_heads; h++)
            cpu->simd->add(c->head_size,
                           (float *)c->dq.data + t * c->dq.stride[0] + h * c->dq.stride[1],
                           c->dq_lost + (h * c->num_queries + t) * c->head_size);
}

/* Each block of queries is first added to by the first block of keys that it sees. */
static void prepare_turns(const struct tri_attn_call *c, atomic_int *turn)
{
    const int64_t blocks = blocks_touched(c->op->q_begin, c->num_queries, TRI_ATTN_QUERIES);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t first = (c->first_query_block + i) * TRI_ATTN_QUERIES - c->op->q_begin;
        struct tri_attn_range see;
        tri_attn_ranges(c->op, c->num_keys, first > 0 ? first : 0, 1, &see);
        int64_t block =
            tri_floor_div(c->op->k_begin + see.begin, TRI_ATTN_KEYS) - c->first_key_block;
        for (int64_t h = 0; h < c->num_kv_heads; h++)
            atomic_init(turn + i * c->num_kv_heads + h, (int)block);
    }
}

/* Rows from a global token to where the next ones begin that backward goes over at a time. */
static int64_t rows_to_grid(int64_t token)
{
    return (tri_floor_div(token, TRI_ATTN_BACKWARD_ROWS) + 1) * TRI_ATTN_BACKWARD_ROWS - token;
}

static enum tri_status attn_backward(struct tri_stream *s, const struct tri_attn *op,
                                     bool accumulate_dq, struct tri_view dq, struct tri_view dk,
                                     struct tri_view dv, struct tri_view dout, struct tri_view q,
                                     struct tri_view k, struct tri_view v, struct tri_view o,
                                     struct tri_view lse, void *workspace)
{
    const struct tri_cpu *cpu = s->cpu;
    if (q.dtype != TRI_F32 || k.dtype != TRI_F32 || v.dtype != TRI_F32 || o.dtype != TRI_F32 ||
        dout.dtype != TRI_F32 || dq.dtype != TRI_F32 || dk.dtype != TRI_F32 ||
        dv.dtype != TRI_F32 || lse.dtype != TRI_F32)
        return cpu->reference.attn_backward(s, op, accumulate_dq, dq, dk, dv, dout, q, k, v, o, lse,
                                            workspace);
    const struct layout l = layout_of(cpu, op, true, q, k);
    char *base = aligned(workspace);
    float *delta = (float *)(void *)(base + l.delta_at);
    atomic_int *turn = (atomic_int *)(void *)(base + l.turn_at);
    for (int64_t first = 0, count; first < q.dim[0] && q.dim[1] > 0; first += count) {
        struct tri_attn piece = *op;
        piece.q_begin += first;
        count = lesser(q.dim[0] - first, rows_to_grid(piece.q_begin));
        struct tri_attn_call c = call_of(&piece, tri_view_rows(q, first, count), k);
        c.v = v;
        c.o = tri_view_rows(o, first, count);
        c.lse = tri_view_rows(lse, first, count);
        c.dq = tri_view_rows(dq, first, count);
        c.dk = dk;
        c.dv = dv;
        c.dout = tri_view_rows(dout, first, count);
        c.delta = delta;
        c.dq_lost = (float *)(void *)(base + l.lost_at);
        c.turn = turn;
        c.first_key_block = tri_floor_div(piece.k_begin, TRI_ATTN_KEYS);
        c.first_query_block = tri_floor_div(piece.q_begin, TRI_ATTN_QUERIES);
        prepare_rows(cpu, &c, accumulate_dq, delta);
        prepare_turns(&c, turn);
        run_tasks(cpu, &c,
                  blocks_touched(piece.k_begin, c.num_keys, TRI_ATTN_KEYS) * c.num_kv_heads,
                  cpu->simd->attn_backward, (float *)(void *)base, l.tile_floats);
        add_lost(cpu, &c);
    }
    return TRI_OK;
}

void tri_cpu_fast_attn(struct tri_ops *ops)
{
    ops->attn_workspace = attn_workspace;
    ops->attn_forward = attn_forward;
    ops->attn_backward = attn_backward;
}
