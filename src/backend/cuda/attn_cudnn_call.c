/* Planning a call: heads and queries at once, plans, workspace. */
#include <string.h>

#include "backend/cuda/attn_cudnn_call.h"

#include "backend/cuda/kernels/attn_glue.h"
#include "base/minmax.h"

int64_t tri_cudnn_query_heads(const struct tri_cudnn_call *c)
{
    return c->group * (c->q.dim[1] / c->k.dim[1]);
}

/* About what a call takes for the heads of one group. */
static int64_t group_bytes(const struct tri_cudnn_call *c, int64_t group)
{
    int64_t q_heads = group * (c->q.dim[1] / c->k.dim[1]), d = c->q.dim[2];
    if (!c->backward)
        return c->q.dim[0] * q_heads * (2 * d + 4);
    int64_t query = q_heads * (4 * d + 4 + 2 * d);
    int64_t key = group * 4 * d + (q_heads > group ? q_heads * 4 * d : 0);
    return c->chunk * query + c->k.dim[0] * key;
}

static void choose_group(struct tri_cudnn_call *c)
{
    int64_t heads = c->k.dim[1];
    c->group = heads;
    c->chunk = c->q.dim[0];
    if (!c->backward && !tri_cudnn_may_split(c))
        return;
    int64_t bound = c->backward ? TRI_CUDNN_BACKWARD_BYTES : TRI_CUDNN_ASIDE_BYTES;
    for (int64_t parts = 1; parts <= heads; parts++) {
        c->group = heads / parts;
        if (heads % parts == 0 && group_bytes(c, c->group) <= bound)
            break;
    }
    c->most = group_bytes(c, c->group);
    c->most = c->most > TRI_CUDNN_BACKWARD_BYTES ? c->most : TRI_CUDNN_BACKWARD_BYTES;
    if (c->deterministic) {
        enum { LEAST = 64 };
        int64_t keys = tri_cudnn_rounded_rows(c->k.dim[0]);
        int64_t chunk = tri_cudnn_rounded_rows(c->q.dim[0]);
        c->group = 1;
        while (chunk > LEAST && tri_cudnn_query_heads(c) * chunk * keys * 2 > TRI_CUDNN_SCORE_BYTES)
            chunk /= 2;
        c->chunk = chunk < c->q.dim[0] ? chunk : c->q.dim[0];
    }
}

static bool on_hopper(const struct tri_cudnn_call *c)
{
    return c->s->cuda->info.capability / 10 == 9;
}

/* What cudnn-frontend 1.23 refuses because engines get it wrong. */
static enum tri_status avoid_errata(const struct tri_cudnn_call *c,
                                    const struct tri_cudnn_batch *batch)
{
    if (c->engine->api.version == 91400 && batch->windowed && !batch->causal &&
        batch->k_rows > 1024)
        return tri_fail(TRI_UNSUPPORTED, "cuDNN 9.14.0 has an error in windows that are not "
                                         "causal: update it");
    if (c->backward && c->q.dim[2] > 128 && !on_hopper(c))
        return tri_fail(TRI_UNSUPPORTED,
                        "head size %lld: cuDNN's backward takes at most 128 on this card",
                        (long long)c->q.dim[2]);
    return TRI_OK;
}

static enum tri_status plan_batch(struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                                  void *ctx)
{
    (void)ctx;
    struct tri_cudnn_sdpa shape;
    const struct tri_cudnn_plan *plan;
    TRI_TRY(avoid_errata(c, batch));
    tri_cudnn_batch_shape(c, batch, &shape);
    TRI_TRY(tri_cudnn_plan_get(&c->engine->plans, &shape, &plan));
    c->inside = tri_max_size(c->inside, plan->workspace);
    c->aside = c->aside || batch->aside;
    if (c->backward) {
        size_t rows = (size_t)(shape.batch * shape.q_heads * shape.q_rows) * sizeof(float);
        c->delta = tri_max_size(c->delta, rows);
        if (!c->deterministic)
            c->dq_sum = tri_max_size(c->dq_sum, rows * (size_t)shape.head_size);
    }
    return TRI_OK;
}

static size_t place(struct tri_cudnn_layout *at, size_t bytes)
{
    enum { ALIGN = 256 };
    size_t begin = at->total;
    at->total += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return begin;
}

enum tri_status tri_cudnn_call_plan(struct tri_cudnn_call *c)
{
    c->deterministic = c->backward && c->op->deterministic;
    if (c->deterministic && !(on_hopper(c) && tri_cudnn_may_be_ragged(c)))
        return tri_fail(TRI_UNSUPPORTED,
                        "cuDNN: no deterministic attention for head size %lld on this card",
                        (long long)c->q.dim[2]);
    choose_group(c);
    c->inside = c->dq_sum = c->delta = 0;
    c->aside = false;
    TRI_TRY(tri_cudnn_call_batches(c, plan_batch, NULL));

    size_t slots = (size_t)c->slots, d = (size_t)c->q.dim[2];
    struct tri_cudnn_layout *at = &c->at;
    memset(at, 0, sizeof *at);
    at->q_length = place(at, slots * sizeof(int32_t));
    at->k_length = place(at, slots * sizeof(int32_t));
    at->offsets = place(at, TRI_KERNEL_OFFSETS * slots * sizeof(int64_t));
    at->inside = place(at, c->inside);
    size_t query_heads = (size_t)(c->q.dim[0] * tri_cudnn_query_heads(c));
    if (!c->backward && c->aside) {
        at->o = place(at, query_heads * d * 2);
        at->lse = place(at, query_heads * sizeof(float));
    }
    if (c->backward) {
        size_t key_bytes = (size_t)(c->k.dim[0] * c->group) * d * 2;
        at->dq_sum = place(at, c->dq_sum);
        at->delta = place(at, c->delta);
        at->dk = place(at, key_bytes);
        at->dv = place(at, key_bytes);
        /* Always: `+=` or `=` is not known when the workspace is asked for. */
        at->dq = place(at, query_heads * d * 2);
    }
    return TRI_OK;
}
