/* The exchange of Ulysses against a raw all-to-all of the same bytes: what both machines share. */
#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include "attn/exchange.h"

/* How a machine gives memory and tells time. */
struct exchange_machine {
    const char *name;
    struct tri_exec exec;
    enum tri_dtype dtype;
    void *(*get)(size_t bytes); /* of ones, on this rank's machine */
    /* Seconds of one call of run(ctx), from several that follow each other. */
    double (*time)(struct exchange_machine *m, enum tri_status (*run)(void *ctx), void *ctx);
    /* The plain all-to-all: `bytes` a rank, in equal parts, each one run of bytes. NULL: by the
     * communicator, whose blocks are then as plain as they can be. */
    enum tri_status (*raw)(struct tri_comm *comm, struct tri_stream *s, void *to, const void *from,
                           size_t bytes);
};

/* Measure `mib` MiB of queries, keys and values a rank, of 32 query and 8 key heads of 128, and
 * print the table on rank 0. *low: some row is slower than it must be. */
enum tri_status bench_exchange(struct tri_comm *comm, struct exchange_machine *m, int64_t mib,
                               bool *low);

/* As one process a card; the exit code. Without CUDA or cards -1. `argv` starts this program again
 * for a rank. */
int bench_exchange_cards(char **argv, int ranks, int64_t mib);

#endif
