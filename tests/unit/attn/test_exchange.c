/* The exchange, element by element: every Hq up to 32, every Hk that divides it, P up to 8, whole
 * sequences and chunks, lengths that P does not divide, strided tensors. */
#include "ranks.h"

#include <stdlib.h>

#include "attn/exchange.h"
#include "backend/cpu/cpu.h"
#include "base/arena.h"

enum { D = 2, PAD = 3 };

struct numbers {
    int64_t heads, kv_heads, tokens, chunk;
};

/* The value of a token's element in a head: tells exactly where it came from. */
static float value(int64_t kind, int64_t token, int64_t head, int64_t d)
{
    return (float)(((kind * 64 + token) * 32 + head) * D + d);
}

static enum tri_status wrong(const struct tri_comm *comm, const struct numbers *n, const char *what)
{
    return tri_fail(TRI_INTERNAL, "Hq %lld Hk %lld S %lld C %lld P %d rank %d: %s",
                    (long long)n->heads, (long long)n->kv_heads, (long long)n->tokens,
                    (long long)n->chunk, comm->size, comm->rank, what);
}

/* (rows, heads*D) with PAD unused columns behind each row. */
static struct tri_view padded(float *memory, int64_t rows, int64_t heads)
{
    return tri_view_cols(tri_view2(memory, TRI_F32, rows, heads * D + PAD), 0, heads * D);
}

static float *element(struct tri_view v, int64_t row, int64_t col)
{
    return (float *)v.data + row * v.stride[0] + col;
}

static enum tri_status one_chunk(struct tri_comm *comm, const struct tri_exchange *x,
                                 const struct numbers *n, int64_t index, float *memory)
{
    struct tri_range chunk = tri_layout_chunk(&x->layout, index);
    struct tri_range mine = tri_layout_part(&x->layout, index, comm->rank);
    struct tri_heads h = tri_exchange_heads(x);
    struct tri_exchange_part parts[2] = {{.blocks = false}};
    int64_t total[2] = {n->heads, n->kv_heads};
    struct tri_range own[2] = {h.query, h.key};
    for (int k = 0; k < 2; k++) {
        parts[k].kind = k == 0 ? TRI_HEADS_QUERY : TRI_HEADS_KEY;
        parts[k].local = padded(memory, mine.count, total[k]);
        memory += mine.count * (total[k] * D + PAD);
        parts[k].heads = padded(memory, chunk.count, own[k].count);
        memory += chunk.count * (own[k].count * D + PAD);
        for (int64_t t = 0; t < mine.count; t++)
            for (int64_t c = 0; c < total[k] * D; c++)
                *element(parts[k].local, t, c) = value(k, mine.begin + t, c / D, c % D);
    }
    TRI_TRY(tri_exchange_to_heads(x, index, parts, 2));
    for (int k = 0; k < 2; k++)
        for (int64_t t = 0; t < chunk.count; t++)
            for (int64_t c = 0; c < own[k].count * D; c++)
                if (*element(parts[k].heads, t, c) !=
                    value(k, chunk.begin + t, own[k].begin + c / D, c % D))
                    return wrong(comm, n, "sequence to heads");

    /* Back: queries are as they were, keys come once from each rank that holds them. */
    TRI_TRY(tri_exchange_to_sequence(x, index, parts, 2));
    for (int k = 0; k < 2; k++)
        for (int64_t t = 0; t < mine.count; t++)
            for (int64_t c = 0; c < total[k] * D; c++) {
                int copies = k == 0 ? 1 : 0;
                for (int r = 0; k == 1 && r < comm->size; r++) {
                    struct tri_range key =
                        tri_heads_split(n->heads, n->kv_heads, comm->size, r).key;
                    copies += c / D >= key.begin && c / D < key.begin + key.count;
                }
                if (*element(parts[k].local, t, c) !=
                    (float)copies * value(k, mine.begin + t, c / D, c % D))
                    return wrong(comm, n, "heads to sequence");
            }
    return TRI_OK;
}

/* The same in blocks: of queries, and of keys and values together. */
static enum tri_status one_chunk_in_blocks(struct tri_comm *comm, const struct tri_exchange *x,
                                           const struct numbers *n, int64_t index, float *memory)
{
    struct tri_range chunk = tri_layout_chunk(&x->layout, index);
    struct tri_range mine = tri_layout_part(&x->layout, index, comm->rank);
    struct tri_exchange_part parts[2];
    const enum tri_head_kind kinds[2] = {TRI_HEADS_QUERY, TRI_HEADS_KEY_VALUE};
    for (int k = 0; k < 2; k++) {
        int64_t width = tri_exchange_width(x, kinds[k]);
        struct tri_heads h = tri_exchange_heads(x);
        int64_t own = (k == 0 ? h.query.count : 2 * h.key.count) * D;
        parts[k] = (struct tri_exchange_part){
            .kind = kinds[k],
            .local = tri_view2(memory, TRI_F32, mine.count, width),
            .heads = tri_view2(memory + mine.count * width, TRI_F32, chunk.count, own),
            .blocks = true};
        memory += mine.count * width + chunk.count * own;
    }
    /* What an element of rank r's block is: half 1 are values. */
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < 2; k++)
            for (int r = 0; r < comm->size; r++) {
                struct tri_heads h = tri_heads_split(n->heads, n->kv_heads, comm->size, r);
                struct tri_range own = k == 0 ? h.query : h.key;
                struct tri_view block = tri_exchange_block(x, kinds[k], parts[k].local, r);
                for (int64_t t = 0; t < mine.count; t++)
                    for (int64_t c = 0; c < block.dim[1]; c++) {
                        int64_t head = own.begin + c / D % own.count;
                        float expected = value(k + c / D / own.count, mine.begin + t, head, c % D);
                        float *found = element(block, t, c);
                        if (pass == 0) {
                            *found = expected;
                            continue;
                        }
                        if (k == 1) { /* only sums count: in the last holder's block */
                            struct tri_range summed = tri_exchange_summed(x, r);
                            int copies = 0;
                            for (int q = 0; q < comm->size; q++) {
                                struct tri_range key =
                                    tri_heads_split(n->heads, n->kv_heads, comm->size, q).key;
                                copies += head >= key.begin && head < key.begin + key.count;
                            }
                            bool later = r + 1 < comm->size &&
                                         tri_heads_split(n->heads, n->kv_heads, comm->size, r + 1)
                                                 .key.begin <= head;
                            if (later != (head >= summed.begin + summed.count))
                                return wrong(comm, n, "whose block has the sum");
                            if (later)
                                continue;
                            expected *= (float)copies;
                        }
                        if (*found != expected)
                            return wrong(comm, n, "blocks there and back");
                    }
            }
        if (pass == 1)
            break;
        TRI_TRY(tri_exchange_to_heads(x, index, parts, 2));
        struct tri_heads h = tri_exchange_heads(x);
        for (int k = 0; k < 2; k++) {
            struct tri_range own = k == 0 ? h.query : h.key;
            for (int64_t t = 0; t < chunk.count; t++)
                for (int64_t c = 0; c < parts[k].heads.dim[1]; c++)
                    if (*element(parts[k].heads, t, c) !=
                        value(k + c / D / own.count, chunk.begin + t, own.begin + c / D % own.count,
                              c % D))
                        return wrong(comm, n, "blocks to heads");
        }
        TRI_TRY(tri_exchange_to_sequence(x, index, parts, 2));
    }
    return TRI_OK;
}

static enum tri_status exchange_rank(struct tri_comm *comm, void *ctx)
{
    const struct numbers *n = ctx;
    struct tri_backend *backend = NULL;
    struct tri_arena *arena = NULL;
    struct tri_cpu_config config = {.threads = 1, .kernels = TRI_CPU_REFERENCE};
    enum tri_status st;
    float *memory = calloc(64 * 1024, sizeof *memory);
    TRI_TRY_GOTO(st, tri_cpu_open(&config, &backend), done);
    TRI_TRY_GOTO(st, tri_arena_open(&tri_host_memory, 1 << 22, &arena), done);
    struct tri_exchange x = {.exec = {backend, &backend->ops, backend->stream, arena},
                             .comm = comm,
                             .layout = {n->tokens, n->chunk, comm->size},
                             .num_heads = n->heads,
                             .num_kv_heads = n->kv_heads,
                             .head_dim = D};
    for (int64_t i = 0; i < tri_layout_chunks(&x.layout) && st == TRI_OK; i++) {
        st = one_chunk(comm, &x, n, i, memory);
        if (st == TRI_OK)
            st = one_chunk_in_blocks(comm, &x, n, i, memory);
    }
done:
    tri_arena_close(arena);
    tri_cpu_close(backend);
    free(memory);
    return st;
}

static void every_split_puts_every_element_in_its_place(void **state)
{
    (void)state;
    int cases = 0;
    for (int64_t hq = 1; hq <= 32; hq++)
        for (int64_t hk = 1; hk <= hq; hk++)
            for (int p = 1; p <= 8; p++) {
                if (hq % hk != 0 || p > hq)
                    continue;
                /* Lengths and chunks take turns: P divides some and not others; some parts are
                 * empty. */
                struct numbers n = {hq, hk, 1 + cases % 19, cases % 3 == 0 ? 0 : 1 + cases % 7};
                cases++;
                run_ranks(p, exchange_rank, &n);
            }
    assert_true(cases > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split_puts_every_element_in_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
