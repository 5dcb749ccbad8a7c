/* Speed of the exchange, from what the products write to what attention reads.
 *
 * What counts is all that would not be there with one rank: the all-to-all, and copies. RoPE is
 * there anyway: it writes queries and keys into the blocks that are sent, and reads those of their
 * gradients that arrive. Values and theirs have no RoPE, so the time of copying them into blocks
 * and out of them counts. Products write the gradient of the output into blocks. The output itself
 * comes back into a matrix, because a product over blocks would round the residual once for each
 * rank; its unpacking counts.
 * Each row passes when it reaches 0.80 of the rate of its raw exchange on cards, or takes 1.5 times
 * as long on the CPU; a row below is LOW, and the exit code is 1.
 *
 *   trireme_bench_exchange [--cpu] [--ranks P] [--mib 256]
 *
 * With two cards or more: over NCCL, against grouped ncclSend and ncclRecv of the same bytes in one
 * run of bytes a rank. On the CPU: ranks as threads, against the copy of such runs. Each row is
 * measured in turns with its own raw exchange; times are medians, of the slowest rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/arena.h"
#include "base/clock.h"
#include "comm/thread/thread.h"
#include "common.h"
#include "exchange.h"

enum { HEADS = 32, KV_HEADS = 8, HEAD_SIZE = 128, SAMPLES = 15 };

static const double LEAST_RATE = 0.80; /* of the raw exchange, on cards */
static const double MOST_TIME = 1.5;   /* times the raw exchange, on the CPU */

/* ---- the table ---------------------------------------------------------------------------------
 */

struct problem {
    struct tri_exchange x;
    struct exchange_machine *m;
    struct tri_exchange_part qkv[2];          /* queries; keys and values: in blocks */
    struct tri_exchange_part output;          /* a matrix */
    struct tri_exchange_part output_gradient; /* in blocks */
    struct tri_view v;                        /* (rows, Hk*D): the values in their product */
    bool low;                                 /* some row is */
    size_t bytes;                             /* of the raw exchange */
    void *from, *to;
};

/* Values between their product and the blocks of all ranks. */
static enum tri_status copy_values(const struct problem *p, bool into_blocks)
{
    for (int r = 0; r < p->x.comm->size; r++) {
        struct tri_heads all = tri_heads_split(HEADS, KV_HEADS, p->x.comm->size, r);
        struct tri_range heads = into_blocks ? all.key : tri_exchange_summed(&p->x, r);
        struct tri_view block = tri_exchange_block(&p->x, TRI_HEADS_KEY_VALUE, p->qkv[1].local, r);
        struct tri_view packed =
            tri_view_cols(block, all.key.count * HEAD_SIZE, heads.count * HEAD_SIZE);
        struct tri_view plain =
            tri_view_cols(p->v, heads.begin * HEAD_SIZE, heads.count * HEAD_SIZE);
        TRI_TRY(p->m->exec.ops->copy(p->m->exec.stream, into_blocks ? packed : plain,
                                     into_blocks ? plain : packed));
    }
    return TRI_OK;
}

static enum tri_status run_to_heads(void *ctx)
{
    const struct problem *p = ctx;
    TRI_TRY(copy_values(p, true));
    return tri_exchange_to_heads(&p->x, 0, p->qkv, 2);
}

static enum tri_status run_output(void *ctx)
{
    const struct problem *p = ctx;
    return tri_exchange_to_sequence(&p->x, 0, &p->output, 1);
}

static enum tri_status run_output_gradient(void *ctx)
{
    const struct problem *p = ctx;
    return tri_exchange_to_heads(&p->x, 0, &p->output_gradient, 1);
}

static enum tri_status run_gradients(void *ctx)
{
    const struct problem *p = ctx;
    TRI_TRY(tri_exchange_to_sequence(&p->x, 0, p->qkv, 2));
    return copy_values(p, false);
}

static enum tri_status run_raw(void *ctx)
{
    const struct problem *p = ctx;
    struct tri_block send[TRI_EXCHANGE_MAX_RANKS], recv[TRI_EXCHANGE_MAX_RANKS];
    struct tri_comm *comm = p->x.comm;
    size_t each = p->bytes / (size_t)comm->size;
    if (p->m->raw != NULL)
        return p->m->raw(comm, p->m->exec.stream, p->to, p->from, each);
    for (int r = 0; r < comm->size; r++) {
        send[r] = (struct tri_block){(char *)p->from + (size_t)r * each, 1, each, each};
        recv[r] = (struct tri_block){(char *)p->to + (size_t)r * each, 1, each, each};
    }
    return comm->ops->all_to_all(comm, p->m->exec.stream, 1, send, recv);
}

/* The slowest rank's median of both, in turns. */
static enum tri_status measure(struct problem *p, enum tri_status (*run)(void *), double *seconds,
                               double *raw)
{
    double times[2][SAMPLES];
    for (int i = -2; i < SAMPLES; i++)
        for (int way = 0; way < 2; way++) {
            TRI_TRY(tri_comm_agree(p->x.comm, "a sample", i));
            double t = p->m->time(p->m, way == 0 ? run : run_raw, p);
            TRI_TRY(p->x.comm->ops->reduce_host(p->x.comm, &t, 1, TRI_F64, TRI_MAX));
            if (i >= 0)
                times[way][i] = t;
        }
    *seconds = bench_median(times[0], SAMPLES);
    *raw = bench_median(times[1], SAMPLES);
    return TRI_OK;
}

static enum tri_status print_row(struct problem *p, const char *name, int64_t width,
                                 enum tri_status (*run)(void *))
{
    double seconds, raw;
    int size = p->x.comm->size;
    int64_t rows = p->x.layout.tokens / size;
    p->bytes = (size_t)(rows * width) * tri_dtype_bytes(p->m->dtype) / (size_t)size * (size_t)size;
    TRI_TRY(measure(p, run, &seconds, &raw));
    double leaves = (double)p->bytes * (size - 1) / size; /* a rank */
    bool low = p->m->raw != NULL ? raw / seconds < LEAST_RATE : seconds / raw > MOST_TIME;
    p->low = p->low || low;
    if (p->x.comm->rank == 0)
        printf("%-34s %8.1f %9.3f %8.1f %9.3f %8.1f %10.2f %9.2f  %s\n", name,
               (double)p->bytes / 0x1p20, seconds * 1e3, leaves / seconds / 1e9, raw * 1e3,
               leaves / raw / 1e9, raw / seconds, seconds / raw, low ? "LOW" : "PASS");
    fflush(stdout);
    return TRI_OK;
}

static struct tri_view get_view(const struct exchange_machine *m, int64_t rows, int64_t width)
{
    struct tri_view v = tri_view2(NULL, m->dtype, rows, width);
    v.data = m->get(tri_view_bytes(v));
    return v;
}

enum tri_status bench_exchange(struct tri_comm *comm, struct exchange_machine *m, int64_t mib,
                               bool *low)
{
    const int64_t all = (HEADS + 2 * KV_HEADS) * HEAD_SIZE;
    int64_t rows = mib * 1048576 / (all * (int64_t)tri_dtype_bytes(m->dtype));
    struct problem p = {.m = m};
    p.x = (struct tri_exchange){.exec = m->exec,
                                .comm = comm,
                                .layout = {.tokens = rows * comm->size, .ranks = comm->size},
                                .num_heads = HEADS,
                                .num_kv_heads = KV_HEADS,
                                .head_dim = HEAD_SIZE};
    struct tri_heads mine = tri_exchange_heads(&p.x);
    int64_t tokens = rows * comm->size;
    struct tri_view q_heads = get_view(m, tokens, mine.query.count * HEAD_SIZE);
    p.qkv[0] = (struct tri_exchange_part){
        .kind = TRI_HEADS_QUERY,
        .local = get_view(m, rows, tri_exchange_width(&p.x, TRI_HEADS_QUERY)),
        .heads = q_heads,
        .blocks = true};
    p.qkv[1] = (struct tri_exchange_part){
        .kind = TRI_HEADS_KEY_VALUE,
        .local = get_view(m, rows, tri_exchange_width(&p.x, TRI_HEADS_KEY_VALUE)),
        .heads = get_view(m, tokens, 2 * mine.key.count * HEAD_SIZE),
        .blocks = true};
    p.output = (struct tri_exchange_part){
        .kind = TRI_HEADS_QUERY, .local = get_view(m, rows, HEADS * HEAD_SIZE), .heads = q_heads};
    p.output_gradient = p.qkv[0]; /* of the same shape */
    p.v = tri_view_cols(get_view(m, rows, 2 * KV_HEADS * HEAD_SIZE), KV_HEADS * HEAD_SIZE,
                        KV_HEADS * HEAD_SIZE);
    p.from = m->get((size_t)(rows * all) * tri_dtype_bytes(m->dtype));
    p.to = m->get((size_t)(rows * all) * tri_dtype_bytes(m->dtype));
    if (comm->rank == 0)
        printf("%s, %d ranks, %lld tokens a rank, %d query and %d key heads of %d, %s\n"
               "%-34s %8s %9s %8s %9s %8s %10s %9s\n",
               m->name, comm->size, (long long)rows, HEADS, KV_HEADS, HEAD_SIZE,
               tri_dtype_name(m->dtype), "", "MiB", "ms", "GB/s", "raw ms", "raw GB/s", "rate/raw",
               "time/raw");
    TRI_TRY(print_row(&p, "q, k, v to heads", all, run_to_heads));
    TRI_TRY(print_row(&p, "output back to the sequence", HEADS * HEAD_SIZE, run_output));
    TRI_TRY(print_row(&p, "d output to heads", HEADS * HEAD_SIZE, run_output_gradient));
    TRI_TRY(print_row(&p, "dq, dk, dv back to the sequence", all, run_gradients));
    *low = p.low;
    return TRI_OK;
}

/* ---- ranks as threads --------------------------------------------------------------------------
 */

static void *get_host(size_t bytes)
{
    void *data = malloc(bytes);
    if (data == NULL) {
        fprintf(stderr, "bench_exchange: no memory\n");
        exit(1);
    }
    memset(data, 1, bytes);
    return data;
}

static double time_host(struct exchange_machine *m, enum tri_status (*run)(void *ctx), void *ctx)
{
    (void)m;
    double start = tri_clock();
    enum tri_status st = run(ctx);
    double took = tri_clock() - start;
    if (st != TRI_OK) {
        fprintf(stderr, "bench_exchange: %s\n", tri_error_text());
        exit(1);
    }
    return took;
}

struct thread_job {
    int64_t mib;
    bool low; /* as rank 0 says */
};

static enum tri_status run_thread(struct tri_comm *comm, void *ctx)
{
    struct thread_job *job = ctx;
    bool low = false;
    struct tri_cpu_config config = {.threads = 1};
    struct exchange_machine m = {
        .name = "CPU", .dtype = TRI_F32, .get = get_host, .time = time_host};
    enum tri_status st;
    TRI_TRY(tri_cpu_open(&config, &m.exec.backend));
    m.exec.ops = &m.exec.backend->ops;
    m.exec.stream = m.exec.backend->stream;
    TRI_TRY_GOTO(st, tri_arena_open(&tri_host_memory, (size_t)1 << 33, &m.exec.arena), close_cpu);
    st = bench_exchange(comm, &m, job->mib, &low);
    if (comm->rank == 0)
        job->low = low;
    tri_arena_close(m.exec.arena);
close_cpu:
    tri_cpu_close(m.exec.backend);
    return st;
}

static int64_t read_number(const char *text, int64_t most)
{
    char *end;
    long value = text != NULL ? strtol(text, &end, 10) : 0;
    if (text == NULL || *end != '\0' || value < 1 || value > most) {
        fprintf(stderr, "usage: bench_exchange [--cpu] [--ranks P] [--mib 256]\n");
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    bool cpu = false;
    int ranks = 0;
    struct thread_job job = {.mib = 256};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--cpu") == 0)
            cpu = true;
        else if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc)
            ranks = (int)read_number(argv[++i], TRI_EXCHANGE_MAX_RANKS);
        else
            job.mib = read_number(strcmp(argv[i], "--mib") == 0 ? argv[++i] : NULL, 1 << 16);
    int code = cpu ? -1 : bench_exchange_cards(argv, ranks, job.mib);
    if (code >= 0)
        return code;
    if (tri_comm_threads_run(ranks > 0 ? ranks : 2, 600, run_thread, &job) != TRI_OK) {
        fprintf(stderr, "bench_exchange: %s\n", tri_error_text());
        return 1;
    }
    return job.low;
}
