/* Linear layers against sgemm. */
#include <stdio.h>
#include <stdlib.h>

#include "cpu/bench.h"

struct linear {
    struct tri_view y, x, w, b, dy, dx, dw, db;
};

static void forward(struct tri_backend *backend, void *ctx)
{
    const struct linear *l = ctx;
    bench_check(backend->ops.linear_forward(backend->stream, false, l->y, l->x, l->w, l->b));
}

static void backward_x(struct tri_backend *backend, void *ctx)
{
    const struct linear *l = ctx;
    bench_check(backend->ops.linear_backward_x(backend->stream, false, l->dx, l->dy, l->w));
}

static void backward_w(struct tri_backend *backend, void *ctx)
{
    const struct linear *l = ctx;
    bench_check(backend->ops.linear_backward_w(backend->stream, l->dw, l->db, l->dy, l->x));
}

static void add_shape(struct bench *b, int64_t t, int64_t k, int64_t n, bool bias)
{
    static struct linear layers[8];
    static int used;
    struct linear *l = &layers[used++];
    *l = (struct linear){.y = bench_matrix(t, n),
                         .x = bench_matrix(t, k),
                         .w = bench_matrix(n, k),
                         .dy = bench_matrix(t, n),
                         .dx = bench_matrix(t, k),
                         .dw = bench_matrix(n, k)};
    if (bias) {
        l->b = tri_view1(bench_numbers(n), TRI_F32, n);
        l->db = tri_view1(bench_zeros(n), TRI_F32, n);
    }
    const double work = 2.0 * (double)t * (double)k * (double)n;
    const char *const passes[] = {"forward", "backward_x", "backward_w"};
    void (*const runs[])(struct tri_backend *, void *) = {forward, backward_x, backward_w};
    for (int i = 0; i < 3; i++) {
        char name[56];
        snprintf(name, sizeof name, "linear %s %lldx%lldx%lld%s", passes[i], (long long)t,
                 (long long)k, (long long)n, bias ? " bias" : "");
        bench_add(b, name, BENCH_SGEMM, work, 0.80, runs[i], l);
    }
}

void bench_add_products(struct bench *b)
{
    if (!bench_wants(b, "linear"))
        return;
    add_shape(b, 4096, 1024, 2816, false);
    add_shape(b, 4096, 1024, 1024, true);
}
