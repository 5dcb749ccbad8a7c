/* trireme_bench: how close the CPU backend comes to what this machine can do.
 *
 * All rows take turns, round after round, each with its roof measured right before and after it, so
 * that other work on the machine touches both alike. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "cpu/bench.h"

struct options {
    int rounds;
    double seconds;
    int threads; /* 0: one and two */
    const char *only;
    enum tri_cpu_kernels kernels;
};

static const char usage[] =
    "Usage: trireme_bench [options]\n"
    "  --only TEXT     rows whose name holds TEXT (linear, attention, norm, ...)\n"
    "  --rounds N      rounds over all rows (default 8)\n"
    "  --seconds S     start no round after S seconds (default 75)\n"
    "  --threads N     measure with N threads (default: with one and with two)\n"
    "  --kernels NAME  auto, reference, generic, avx2, avx512\n";

static _Noreturn void fail(const char *what, const char *value)
{
    fprintf(stderr, "trireme_bench: %s: %s\n%s", what, value, usage);
    exit(1);
}

static double number(const char *text, double least, double most)
{
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end != '\0' || !(x >= least && x <= most))
        fail("not a number in range", text);
    return x;
}

static enum tri_cpu_kernels kernels_named(const char *text)
{
    static const char *const names[] = {"auto", "reference", "generic", "avx2", "avx512"};
    for (int i = 0; i < 5; i++)
        if (strcmp(text, names[i]) == 0)
            return (enum tri_cpu_kernels)i;
    fail("not a kernel set", text);
}

static struct options parse(int argc, char **argv)
{
    static const struct option known[] = {{"only", required_argument, NULL, 'o'},
                                          {"rounds", required_argument, NULL, 'r'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"kernels", required_argument, NULL, 'k'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options o = {.rounds = 8, .seconds = 75.0, .kernels = TRI_CPU_AUTO};
    int c;
    while ((c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
        switch (c) {
        case 'o':
            o.only = optarg;
            break;
        case 'r':
            o.rounds = (int)number(optarg, 1, BENCH_MAX_ROUNDS);
            break;
        case 's':
            o.seconds = number(optarg, 0, 1e6);
            break;
        case 't':
            o.threads = (int)number(optarg, 1, BENCH_MAX_THREADS);
            break;
        case 'k':
            o.kernels = kernels_named(optarg);
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            exit(1);
        }
    }
    if (optind < argc)
        fail("unexpected", argv[optind]);
    return o;
}

static void measure(struct bench *b, struct bench_row *row)
{
    double *best = &b->best_roof[row->roof][row->threads];
    double before = bench_measure_roof(row->roof, row->threads);
    double start = tri_clock();
    row->run(b->backend[row->threads], row->ctx);
    double seconds = tri_clock() - start;
    double after = bench_measure_roof(row->roof, row->threads);
    *best = before > *best ? before : *best;
    *best = after > *best ? after : *best;
    int i = row->num_samples++;
    row->rate[i] = row->work / seconds;
    row->paired[i] = row->rate[i] / (0.5 * (before + after));
}

int main(int argc, char **argv)
{
    const struct options o = parse(argc, argv);
    struct bench *b = calloc(1, sizeof *b);
    if (b == NULL) {
        fputs("trireme_bench: out of memory\n", stderr);
        return 1;
    }
    b->only = o.only;
    for (int threads = 1; threads <= BENCH_MAX_THREADS; threads++) {
        struct tri_cpu_config config = {.threads = threads, .kernels = o.kernels};
        if (o.threads == threads || (o.threads == 0 && threads <= 2))
            bench_check(tri_cpu_open(&config, &b->backend[threads]));
    }
    bench_add_products(b);
    bench_add_attention(b);
    bench_add_memory(b);
    if (b->num_rows == 0)
        fail("no such row", o.only);

    const double start = tri_clock();
    int round = 0;
    for (; round < o.rounds && (round == 0 || tri_clock() - start < o.seconds); round++)
        for (int i = 0; i < b->num_rows; i++)
            measure(b, &b->row[i]);

    const struct tri_backend *any = b->backend[o.threads > 0 ? o.threads : 1];
    printf("CPU backend, %s kernels, %d rounds in %.0f s\n", any->kernels, round,
           tri_clock() - start);
    bench_print(b);
    for (int threads = 1; threads <= BENCH_MAX_THREADS; threads++)
        tri_cpu_close(b->backend[threads]);
    free(b);
    return 0;
}
