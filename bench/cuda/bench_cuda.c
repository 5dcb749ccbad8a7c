/* Speed of the CUDA backend: `make bench-gpu`.
 *
 * Every kernel that is bound by memory is held against a device-to-device copy timed in the same
 * run, every product against a large square one. A rate is the median of the timed calls, events
 * around each. */
#include <stdio.h>
#include <string.h>

#include "cuda/table.h"

static void group(struct bench_table *b, void (*rows)(struct bench_table *b))
{
    struct tri_backend *backend = b->card.backend;
    size_t mark = tri_arena_mark(b->card.arena);
    rows(b);
    bench_check(backend->ops.sync(backend->stream));
    tri_arena_release(b->card.arena, mark);
}

/* bench_cuda [--own] [NAME]: rows whose name holds NAME; --own leaves cuDNN and cuBLASLt out. */
int main(int argc, char **argv)
{
    struct tri_cuda_config config = {.device = 0};
    struct bench_table b = {.calls = 20};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--own") == 0) {
            config.attention = TRI_CUDA_ATTENTION_OWN;
            config.products = TRI_CUDA_PRODUCTS_OWN;
        } else {
            b.only = argv[i];
        }
    }
    struct tri_cuda_info info;
    tri_cuda_probe(0, &info);
    bench_card_open(&config, info.memory_free / 4 * 3, &b.card);
    printf("%s, driver for CUDA %d.%d, %s\n", info.card, info.driver_cuda / 1000,
           info.driver_cuda % 1000 / 10, b.card.backend->kernels);

    bench_copy_roof(&b);
    group(&b, bench_moves);
    group(&b, bench_embeddings);
    group(&b, bench_norms);
    group(&b, bench_activations);
    group(&b, bench_losses);
    group(&b, bench_updates);
    bench_copy_roof(&b);
    group(&b, bench_products);
    group(&b, bench_attention);
    printf("%d rows under 80 %% of copy\n", b.failures);
    bench_card_close(&b.card);
    return 0;
}
