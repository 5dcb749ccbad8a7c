#include "optim/optimizer.h"

#include <math.h>

#include "base/arena.h"

static enum tri_status get(struct tri_exec exec, const char *name, enum tri_dtype dtype, int64_t n,
                           void **out)
{
    return tri_arena_alloc(exec.arena, name, (size_t)n * tri_dtype_bytes(dtype), out);
}

enum tri_status tri_optimizer_open(struct tri_exec exec, const struct tri_model *model,
                                   const struct tri_optim_options *options, enum tri_dtype act,
                                   enum tri_dtype stat, void *weights, void *grads,
                                   struct tri_optimizer *out)
{
    struct tri_optimizer o = {.exec = exec,
                              .model = model,
                              .options = *options,
                              .act = act,
                              .stat = stat,
                              .weights = weights,
                              .master = weights,
                              .grads = grads};
    int64_t n = model->num_elements;
    void *norm2;
    if (act != stat)
        TRI_TRY(get(exec, "master weights", stat, n, &o.master));
    TRI_TRY(get(exec, "first moments", stat, n, &o.m));
    TRI_TRY(get(exec, "second moments", stat, n, &o.v));
    TRI_TRY(get(exec, "gradient norm", TRI_F64, 1, &norm2));
    o.norm2 = norm2;
    TRI_TRY(exec.ops->zero(exec.stream, tri_view1(o.m, stat, n)));
    TRI_TRY(exec.ops->zero(exec.stream, tri_view1(o.v, stat, n)));
    *out = o;
    return TRI_OK;
}

enum tri_status tri_optimizer_grad_norm(struct tri_optimizer *o, double *norm)
{
    double sum;
    TRI_TRY(o->exec.ops->zero(o->exec.stream, tri_view1(o->norm2, TRI_F64, 1)));
    TRI_TRY(o->exec.ops->sum_squares(o->exec.stream, o->norm2,
                                     tri_view1(o->grads, o->stat, o->model->num_elements)));
    TRI_TRY(o->exec.ops->read_scalars(o->exec.stream, &sum, o->norm2, 1));
    *norm = sqrt(sum);
    return TRI_OK;
}

static struct tri_view run_of(void *flat, enum tri_dtype dtype, int64_t begin, int64_t end)
{
    char *start = (char *)flat + (size_t)begin * tri_dtype_bytes(dtype);
    return tri_view1(start, dtype, end - begin);
}

static enum tri_status update_run(struct tri_optimizer *o, struct tri_adamw *op, bool decay,
                                  int64_t begin, int64_t end)
{
    op->weight_decay = decay ? o->options.weight_decay : 0.0;
    return o->exec.ops->adamw(o->exec.stream, op, run_of(o->master, o->stat, begin, end),
                              run_of(o->m, o->stat, begin, end), run_of(o->v, o->stat, begin, end),
                              o->act != o->stat ? run_of(o->weights, o->act, begin, end)
                                                : tri_view_none(),
                              run_of(o->grads, o->stat, begin, end));
}

enum tri_status tri_optimizer_update(struct tri_optimizer *o, double lr, double grad_scale)
{
    struct tri_adamw op = {.lr = lr,
                           .beta1 = o->options.beta1,
                           .beta2 = o->options.beta2,
                           .eps = o->options.eps,
                           .step = o->step + 1,
                           .grad_scale = grad_scale};
    const struct tri_model *model = o->model;
    /* Neighbours with the same rule are updated in one call; padding between them is all zero and
     * stays zero. */
    for (int first = 0; first < model->num_params;) {
        int next = first + 1;
        while (next < model->num_params && model->params[next].decay == model->params[first].decay)
            next++;
        int64_t end = next < model->num_params ? model->params[next].offset : model->num_elements;
        TRI_TRY(update_run(o, &op, model->params[first].decay, model->params[first].offset, end));
        first = next;
    }
    o->step++;
    return TRI_OK;
}

enum tri_status tri_optimizer_zero_grads(struct tri_optimizer *o)
{
    return o->exec.ops->zero(o->exec.stream, tri_view1(o->grads, o->stat, o->model->num_elements));
}
