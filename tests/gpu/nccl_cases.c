#include "gpu/nccl_cases.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cuda/context.h"
#include "unit/comm/collectives.h"

enum { MAX = 16, PARTS = 3 };

static enum tri_status get(size_t bytes, void **out)
{
    return tri_cuda_check(cudaMalloc(out, bytes > 0 ? bytes : 1), "allocate memory for a test");
}

static enum tri_status up(struct tri_stream *s, void *to, const void *from, size_t bytes)
{
    TRI_TRY(tri_cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, s->stream),
                           "upload"));
    return tri_cuda_check(cudaStreamSynchronize(s->stream), "upload");
}

static enum tri_status down(struct tri_stream *s, void *to, const void *from, size_t bytes)
{
    TRI_TRY(tri_cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, s->stream),
                           "download"));
    return tri_cuda_check(cudaStreamSynchronize(s->stream), "download");
}

/* ---- all-to-all --------------------------------------------------------------------------------
 */

/* Element j of row i of what rank a sends to rank b in part p. */
static int32_t value(int a, int b, int p, int64_t i, int64_t j)
{
    return (int32_t)(((((a * MAX + b) * PARTS + p) * 8191 + i) * 4093 + j) & 0x7FFFFFFF);
}

/* A block of (rows, cols) int32 with `pitch` elements from row to row, in a buffer of its own. */
struct table {
    int64_t rows, cols, pitch;
    int32_t *device;
};

static struct tri_block block_of(const struct table *t)
{
    return (struct tri_block){.data = t->device,
                              .rows = t->rows,
                              .row_bytes = (size_t)t->cols * sizeof *t->device,
                              .stride = (size_t)t->pitch * sizeof *t->device};
}

static enum tri_status make_table(struct tri_stream *s, struct table *t, int a, int b, int p)
{
    size_t bytes = (size_t)(t->rows * t->pitch) * sizeof *t->device;
    int32_t *host = malloc(bytes > 0 ? bytes : 1);
    if (host == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a test");
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->pitch; j++)
            host[i * t->pitch + j] = a >= 0 && j < t->cols ? value(a, b, p, i, j) : -1;
    enum tri_status st = get(bytes, (void **)&t->device);
    if (st == TRI_OK)
        st = up(s, t->device, host, bytes);
    free(host);
    return st;
}

static enum tri_status check_table(struct tri_comm *comm, struct tri_stream *s,
                                   const struct table *t, int a, int b, int p)
{
    size_t bytes = (size_t)(t->rows * t->pitch) * sizeof *t->device;
    int64_t wrong = 0;
    int32_t *host = malloc(bytes > 0 ? bytes : 1);
    if (host == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a test");
    enum tri_status st = down(s, host, t->device, bytes);
    for (int64_t i = 0; i < t->rows && st == TRI_OK; i++)
        for (int64_t j = 0; j < t->pitch; j++)
            wrong += host[i * t->pitch + j] != (j < t->cols ? value(a, b, p, i, j) : -1);
    free(host);
    if (st == TRI_OK && wrong > 0)
        st = tri_fail(
            TRI_INTERNAL, "rank %d of %d: part %d from rank %d: %lld of %lld elements are wrong",
            comm->rank, comm->size, p, a, (long long)wrong, (long long)(t->rows * t->pitch));
    return st;
}

/* Exchange tables whose shapes depend on sender, receiver and part. */
static enum tri_status exchange_tables(struct tri_comm *comm, struct tri_stream *s, int parts,
                                       int64_t rows, int64_t cols, int64_t pad_send,
                                       int64_t pad_recv)
{
    struct table sent[PARTS * MAX], got[PARTS * MAX];
    struct tri_block send[PARTS * MAX], recv[PARTS * MAX];
    int me = comm->rank;
    int size = comm->size;
    for (int p = 0; p < parts; p++)
        for (int r = 0; r < size; r++) {
            struct table *to = &sent[p * size + r];
            struct table *from = &got[p * size + r];
            /* Part 1 sends nothing to the next rank; one row and one column come up too. */
            *to = (struct table){.rows = p == 1 && r == (me + 1) % size ? 0 : rows + me + r,
                                 .cols = cols + r};
            *from = (struct table){.rows = p == 1 && me == (r + 1) % size ? 0 : rows + me + r,
                                   .cols = cols + me};
            to->pitch = to->cols + pad_send;
            from->pitch = from->cols + pad_recv;
            TRI_TRY(make_table(s, to, me, r, p));
            TRI_TRY(make_table(s, from, -1, 0, p));
            send[p * size + r] = block_of(to);
            recv[p * size + r] = block_of(from);
        }
    for (int again = 0; again < 2; again++)
        TRI_TRY(comm->ops->all_to_all(comm, s, parts, send, recv));
    for (int p = 0; p < parts; p++)
        for (int r = 0; r < size; r++) {
            TRI_TRY(check_table(comm, s, &got[p * size + r], r, me, p));
            TRI_TRY(tri_cuda_check(cudaFree(got[p * size + r].device), "free"));
            TRI_TRY(tri_cuda_check(cudaFree(sent[p * size + r].device), "free"));
        }
    return TRI_OK;
}

enum tri_status nccl_case_all_to_all(struct tri_comm *comm, struct tri_stream *s)
{
    for (int strided = 0; strided < 4; strided++)
        for (int parts = 1; parts <= PARTS; parts++)
            TRI_TRY(
                exchange_tables(comm, s, parts, 7, 33, strided & 1 ? 5 : 0, strided & 2 ? 3 : 0));
    TRI_TRY(exchange_tables(comm, s, PARTS, 0, 1, 3, 1));
    TRI_TRY(exchange_tables(comm, s, 2, 1, 0, 1, 0));
    return TRI_OK;
}

/* More than fits a round of the slots, so that both slots are used again. */
enum tri_status nccl_case_rounds(struct tri_comm *comm, struct tri_stream *s)
{
    int64_t elements = (int64_t)64 * 1024 * 1024 / 4 / comm->size; /* of a peer in a round */
    TRI_TRY(exchange_tables(comm, s, 2, elements * 7 / 4 / 1000, 1000, 24, 0));
    TRI_TRY(exchange_tables(comm, s, 2, elements * 7 / 4 / 1000, 1000, 0, 24));
    TRI_TRY(exchange_tables(comm, s, 1, elements * 9 / 2 / 3001, 3001, 7, 9));
    /* Rows longer than a round. */
    return exchange_tables(comm, s, 1, 1, elements * 5 / 4, 64, 64);
}

/* ---- the other collectives ---------------------------------------------------------------------
 */

/* Reduce n numbers of a type, each (rank + 1) * (i % 7), and compare. */
static enum tri_status reduce_numbers(struct tri_comm *comm, struct tri_stream *s,
                                      enum tri_dtype dtype, enum tri_reduction reduction, int64_t n)
{
    size_t width = tri_dtype_bytes(dtype);
    char *host = malloc((size_t)n * width);
    void *device;
    int64_t wrong = 0;
    int p = comm->size;
    int64_t scale = reduction == TRI_SUM ? (int64_t)p * (p + 1) / 2 : reduction == TRI_MIN ? 1 : p;
    if (host == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a test");
    for (int64_t i = 0; i < n; i++) {
        int64_t x = (comm->rank + 1) * (i % 7);
        float f = (float)x;
        double d = (double)x;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        uint16_t half = (uint16_t)(bits >> 16); /* small integers are exact in bfloat16 */
        memcpy(host + (size_t)i * width,
               dtype == TRI_F32    ? (const void *)&f
               : dtype == TRI_F64  ? (const void *)&d
               : dtype == TRI_BF16 ? (const void *)&half
                                   : (const void *)&x,
               width);
    }
    TRI_TRY(get((size_t)n * width, &device));
    TRI_TRY(up(s, device, host, (size_t)n * width));
    TRI_TRY(comm->ops->all_reduce(comm, s, device, n, dtype, reduction));
    TRI_TRY(down(s, host, device, (size_t)n * width));
    for (int64_t i = 0; i < n; i++) {
        double want = (double)(scale * (i % 7));
        double got;
        const char *at = host + (size_t)i * width;
        if (dtype == TRI_F64)
            memcpy(&got, at, sizeof got);
        else if (dtype == TRI_I64)
            got = (double)((const int64_t *)(const void *)host)[i];
        else {
            uint32_t bits = 0;
            float f;
            if (dtype == TRI_F32)
                memcpy(&bits, at, 4);
            else
                memcpy((char *)&bits + 2, at, 2);
            memcpy(&f, &bits, sizeof f);
            got = (double)f;
        }
        wrong += got != want;
    }
    free(host);
    TRI_TRY(tri_cuda_check(cudaFree(device), "free"));
    CASE_CHECK(wrong == 0);
    return TRI_OK;
}

enum tri_status nccl_case_reductions(struct tri_comm *comm, struct tri_stream *s)
{
    static const enum tri_dtype dtypes[] = {TRI_F32, TRI_F64, TRI_BF16, TRI_I64};
    static const enum tri_reduction reductions[] = {TRI_SUM, TRI_MIN, TRI_MAX};
    for (int d = 0; d < 4; d++)
        for (int r = 0; r < 3; r++) {
            TRI_TRY(reduce_numbers(comm, s, dtypes[d], reductions[r], 1));
            TRI_TRY(reduce_numbers(comm, s, dtypes[d], reductions[r], 100003));
        }
    TRI_TRY(comm->ops->all_reduce(comm, s, NULL, 0, TRI_F32, TRI_SUM));
    return TRI_OK;
}

/* all-gather, reduce-scatter, in place and not, and broadcast. */
enum tri_status nccl_case_gather(struct tri_comm *comm, struct tri_stream *s)
{
    enum { N = 4099 };
    int p = comm->size;
    static _Thread_local float host[MAX * N];
    float *all = NULL, *own = NULL;
    TRI_TRY(get(sizeof host, (void **)&all));
    TRI_TRY(get(N * sizeof *own, (void **)&own));
    for (int i = 0; i < N; i++)
        host[i] = (float)(comm->rank * 7 + i);
    TRI_TRY(up(s, own, host, N * sizeof *own));
    TRI_TRY(comm->ops->all_gather(comm, s, all, own, N * sizeof *own));
    TRI_TRY(down(s, host, all, (size_t)p * N * sizeof *all));
    for (int r = 0; r < p; r++)
        for (int i = 0; i < N; i++)
            CASE_CHECK(host[r * N + i] == (float)(r * 7 + i));
    TRI_TRY(comm->ops->reduce_scatter(comm, s, own, all, N, TRI_F32));
    TRI_TRY(down(s, host, own, N * sizeof *own));
    for (int i = 0; i < N; i++)
        CASE_CHECK(host[i] == (float)p * (float)(comm->rank * 7 + i));
    float *mine = all + comm->rank * N;
    TRI_TRY(comm->ops->reduce_scatter(comm, s, mine, all, N, TRI_F32));
    TRI_TRY(comm->ops->all_gather(comm, s, all, mine, N * sizeof *all));
    TRI_TRY(down(s, host, all, (size_t)p * N * sizeof *all));
    for (int r = 0; r < p; r++)
        for (int i = 0; i < N; i++)
            CASE_CHECK(host[r * N + i] == (float)p * (float)(r * 7 + i));
    for (int i = 0; i < N; i++)
        host[i] = (float)comm->rank;
    TRI_TRY(up(s, own, host, N * sizeof *own));
    TRI_TRY(comm->ops->broadcast(comm, s, own, N * sizeof *own, p - 1));
    TRI_TRY(down(s, host, own, N * sizeof *own));
    for (int i = 0; i < N; i++)
        CASE_CHECK(host[i] == (float)(p - 1));
    TRI_TRY(tri_cuda_check(cudaFree(all), "free"));
    return tri_cuda_check(cudaFree(own), "free");
}

/* The communicator's own queue: collectives there come after what was queued before the fork, and
 * what is queued after the join sees them. */
enum tri_status nccl_case_queue(struct tri_comm *comm, struct tri_stream *s)
{
    enum { N = 1 << 22 };
    struct tri_stream *side = NULL;
    float *data = NULL;
    float got[2];
    TRI_TRY(get(N * sizeof *data, (void **)&data));
    for (int round = 0; round < 20; round++) {
        /* 0x3F800000 is 1.0 in every fourth byte order; memset writes bytes: 0x3F3F3F3F. */
        TRI_TRY(tri_cuda_check(cudaMemsetAsync(data, 0x3F, N * sizeof *data, s->stream), "fill"));
        TRI_TRY(tri_comm_fork(comm, s, &side));
        TRI_TRY(comm->ops->all_reduce(comm, side, data, N, TRI_F32, TRI_SUM));
        TRI_TRY(tri_comm_join(comm, s));
        TRI_TRY(down(s, &got[0], data, sizeof *got));
        TRI_TRY(down(s, &got[1], data + N - 1, sizeof *got));
        uint32_t bits = 0x3F3F3F3F;
        float one;
        memcpy(&one, &bits, sizeof one);
        for (int i = 0; i < 2; i++)
            CASE_CHECK(got[i] > 0.999f * (float)comm->size * one &&
                       got[i] < 1.001f * (float)comm->size * one);
    }
    return tri_cuda_check(cudaFree(data), "free");
}

enum tri_status nccl_case_host(struct tri_comm *comm, struct tri_stream *s)
{
    (void)s;
    enum { N = 5001 };
    static _Thread_local double values[N];
    int p = comm->size;
    for (int i = 0; i < N; i++)
        values[i] = comm->rank + 0.5 * i;
    TRI_TRY(tri_comm_sum_double(comm, values, N));
    for (int i = 0; i < N; i++)
        CASE_CHECK(values[i] == 0.5 * (p - 1) * p + 0.5 * i * p);
    int64_t extremes[2] = {comm->rank, -comm->rank};
    TRI_TRY(tri_comm_max_int(comm, extremes, 2));
    CASE_CHECK(extremes[0] == p - 1 && extremes[1] == 0);
    TRI_TRY(tri_comm_agree(comm, "an equal value", INT64_MIN));
    CASE_CHECK(comm->size == 1 || tri_comm_agree(comm, "the rank", comm->rank) == TRI_INVALID);
    return TRI_OK;
}

/* Tables of host memory: the cases of the other communicators. */
enum tri_status nccl_case_host_blocks(struct tri_comm *comm, struct tri_stream *s)
{
    (void)s;
    TRI_TRY(case_all_to_all(comm));
    return case_all_to_all(comm);
}

/* Halves in reversed order, single ranks, and all again; each used, closed, and made once more. */
enum tri_status nccl_case_split(struct tri_comm *comm, struct tri_stream *s)
{
    for (int round = 0; round < 2; round++)
        for (int ways = 1; ways <= 3; ways++) {
            struct tri_comm *part = NULL;
            int parts = ways == 1 ? 1 : ways == 2 ? 2 : comm->size;
            int color = comm->rank % parts;
            TRI_TRY(comm->ops->split(comm, color, -comm->rank, &part));
            CASE_CHECK(part->size == (comm->size - color + parts - 1) / parts);
            CASE_CHECK(part->rank == part->size - 1 - comm->rank / parts);
            CASE_CHECK(part->world_rank == comm->world_rank);
            TRI_TRY(exchange_tables(part, s, 2, 5, 9, 3, 0));
            TRI_TRY(reduce_numbers(part, s, TRI_F32, TRI_SUM, 1000));
            TRI_TRY(nccl_case_host(part, s));
            tri_comm_close(part);
        }
    return TRI_OK;
}
