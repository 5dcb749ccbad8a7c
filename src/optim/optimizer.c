#include "optim/optimizer.h"

#include "base/arena.h"

/* Zero, padding included, which stays so through every update. */
static enum tri_status get(struct tri_optimizer *o, const char *name, void **out)
{
    int64_t n = o->zero->partition.own_elements;
    enum tri_dtype stat = o->zero->stat;
    TRI_TRY(tri_arena_alloc(o->exec.arena, name, (size_t)n * tri_dtype_bytes(stat), out));
    return o->exec.ops->zero(o->exec.stream, tri_view1(*out, stat, n));
}

enum tri_status tri_optimizer_open(struct tri_exec exec, struct tri_zero *zero,
                                   const struct tri_optim_options *options,
                                   struct tri_optimizer *out)
{
    struct tri_optimizer o = {
        .exec = exec, .zero = zero, .options = *options, .master = zero->weights};
    if (zero->act != zero->stat)
        TRI_TRY(get(&o, "master weights", &o.master));
    TRI_TRY(get(&o, "first moments", &o.m));
    TRI_TRY(get(&o, "second moments", &o.v));
    *out = o;
    return TRI_OK;
}

static struct tri_view run_of(void *flat, enum tri_dtype dtype, int64_t begin, int64_t count)
{
    return tri_view1((char *)flat + (size_t)begin * tri_dtype_bytes(dtype), dtype, count);
}

static enum tri_status update_run(struct tri_optimizer *o, struct tri_adamw *op,
                                  const struct tri_own_run *run)
{
    const struct tri_zero *z = o->zero;
    op->weight_decay = run->decay ? o->options.weight_decay : 0.0;
    struct tri_view w = run_of(z->weights, z->act, tri_zero_weights_at(z, run), run->count);
    struct tri_view g = run_of(z->grads, z->stat, tri_zero_grads_at(z, run), run->count);
    struct tri_view m = run_of(o->m, z->stat, run->own, run->count);
    struct tri_view v = run_of(o->v, z->stat, run->own, run->count);
    if (o->master == z->weights)
        return o->exec.ops->adamw(o->exec.stream, op, w, m, v, tri_view_none(), g);
    struct tri_view p = run_of(o->master, z->stat, run->own, run->count);
    return o->exec.ops->adamw(o->exec.stream, op, p, m, v, w, g);
}

enum tri_status tri_optimizer_update(struct tri_optimizer *o, double lr, double grad_scale)
{
    struct tri_adamw op = {.lr = lr,
                           .beta1 = o->options.beta1,
                           .beta2 = o->options.beta2,
                           .eps = o->options.eps,
                           .step = o->step + 1,
                           .grad_scale = grad_scale};
    struct tri_own_run run;
    for (int param = 0; tri_partition_next_run(&o->zero->partition, &param, &run);)
        TRI_TRY(update_run(o, &op, &run));
    o->step++;
    return TRI_OK;
}
