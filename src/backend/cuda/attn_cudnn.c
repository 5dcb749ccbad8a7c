/* The attention engine on cuDNN: what it takes, and its entries. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/attn_cudnn_call.h"

/* Rows that start on 16-byte borders, in bfloat16, and less than 2^31 elements apart: cuDNN 9.19
 * gives wrong numbers beyond, without a word. */
static bool is_act(struct tri_view v)
{
    uint64_t bits = (uint64_t)(uintptr_t)v.data;
    for (int i = 0; i < 2; i++)
        if (v.dim[i] > 1) {
            bits |= (uint64_t)v.stride[i] * 2;
            if (v.stride[i] > INT32_MAX)
                return false;
        }
    return v.dtype == TRI_BF16 && bits % 16 == 0;
}

static enum tri_status check(const struct tri_cudnn_call *c)
{
    enum { MAX_HEAD = 256 };
    int64_t d = c->q.dim[2];
    if (c->q.dtype != TRI_BF16)
        return tri_fail(TRI_UNSUPPORTED,
                        "cuDNN's takes bfloat16 and the model is in %s: set model.dtype: bfloat16 "
                        "(weights are updated in float32 all the same)",
                        tri_dtype_name(c->q.dtype));
    if (!is_act(c->q) || !is_act(c->k) || !is_act(c->v) || !is_act(c->o) ||
        (c->backward && (!is_act(c->dout) || !is_act(c->dq))))
        return tri_fail(TRI_UNSUPPORTED,
                        "cuDNN's takes rows on 16-byte borders, less than 2^31 elements apart, all "
                        "in bfloat16");
    if (d % 8 != 0 || d > MAX_HEAD)
        return tri_fail(TRI_UNSUPPORTED,
                        "head size %lld: cuDNN attention takes multiples of 8 up to %d",
                        (long long)d, MAX_HEAD);
    if (c->k.dim[1] < 1 || c->q.dim[1] % c->k.dim[1] != 0)
        return tri_fail(TRI_INVALID, "%lld query heads are no multiple of %lld key heads",
                        (long long)c->q.dim[1], (long long)c->k.dim[1]);
    if (c->q.dim[0] >= INT32_MAX / 2 || c->k.dim[0] >= INT32_MAX / 2)
        return tri_fail(TRI_UNSUPPORTED, "cuDNN attention takes less than 2^30 tokens at once");
    /* Windows are compared in float32, which counts to 2^24. */
    if (c->op->window > 0 && c->k.dim[0] + c->op->window > (1 << 24))
        return tri_fail(TRI_UNSUPPORTED,
                        "cuDNN attention takes a window within 2^24 keys, not %lld",
                        (long long)c->k.dim[0]);
    return TRI_OK;
}

/* Of a call whose other tensors lie as they usually do: v as k, the rest without gaps. */
static enum tri_status plan_usual(struct tri_stream *s, const struct tri_attn *op, bool backward,
                                  struct tri_view q, struct tri_view k, size_t *bytes)
{
    struct tri_view act = tri_view3(q.data, TRI_BF16, q.dim[0], q.dim[1], q.dim[2]);
    struct tri_cudnn_call c = {.engine = s->cuda->cudnn.ctx,
                               .s = s,
                               .op = op,
                               .backward = backward,
                               .q = q,
                               .k = k,
                               .v = k,
                               .o = act,
                               .lse = tri_view2(q.data, TRI_F32, q.dim[0], q.dim[1]),
                               .dout = act,
                               .dq = act};
    TRI_TRY(check(&c));
    TRI_TRY(tri_cudnn_call_plan(&c));
    *bytes = c.at.total;
    return TRI_OK;
}

static size_t workspace(struct tri_stream *s, const struct tri_attn *op, bool backward,
                        struct tri_view q, struct tri_view k)
{
    size_t bytes = 0;
    if (plan_usual(s, op, backward, q, k, &bytes) != TRI_OK) {
        tri_error_clear();
        return 0;
    }
    return bytes;
}

static enum tri_status run(struct tri_cudnn_call *c)
{
    size_t room;
    TRI_TRY(check(c));
    TRI_TRY(plan_usual(c->s, c->op, c->backward, c->q, c->k, &room));
    TRI_TRY(tri_cudnn_call_plan(c));
    if (c->at.total > room)
        return tri_fail(TRI_UNSUPPORTED,
                        "cuDNN wants %zu bytes for these strides, the workspace has %zu",
                        c->at.total, room);
    return tri_cudnn_call_run(c);
}

static enum tri_status forward(struct tri_stream *s, const struct tri_attn *op, struct tri_view o,
                               struct tri_view lse, struct tri_view q, struct tri_view k,
                               struct tri_view v, void *room)
{
    struct tri_cudnn_call c = {.engine = s->cuda->cudnn.ctx,
                               .s = s,
                               .op = op,
                               .q = q,
                               .k = k,
                               .v = v,
                               .o = o,
                               .lse = lse,
                               .workspace = room};
    return run(&c);
}

static enum tri_status backward(struct tri_stream *s, const struct tri_attn *op, bool accumulate_dq,
                                struct tri_view dq, struct tri_view dk, struct tri_view dv,
                                struct tri_view dout, struct tri_view q, struct tri_view k,
                                struct tri_view v, struct tri_view o, struct tri_view lse,
                                void *room)
{
    struct tri_cudnn_call c = {.engine = s->cuda->cudnn.ctx,
                               .s = s,
                               .op = op,
                               .backward = true,
                               .accumulate_dq = accumulate_dq,
                               .q = q,
                               .k = k,
                               .v = v,
                               .o = o,
                               .lse = lse,
                               .dout = dout,
                               .dq = dq,
                               .dk = dk,
                               .dv = dv,
                               .workspace = room};
    return run(&c);
}

static void close_engine(void *ctx)
{
    struct tri_cudnn_attn *engine = ctx;
    tri_cudnn_plans_free(&engine->plans);
    if (engine->plans.handle != NULL)
        (void)engine->api.destroy(engine->plans.handle);
    free(engine);
}

enum tri_status tri_cudnn_attn_open(struct tri_cuda *cuda, struct tri_attn_engine *out)
{
    struct tri_cudnn_attn *engine = calloc(1, sizeof *engine);
    if (engine == NULL)
        return tri_fail(TRI_NOMEM, "no memory for cuDNN's attention");
    engine->cuda = cuda;
    enum tri_status st = tri_cudnn_api_open(&cuda->info.cudnn, &engine->api);
    if (st == TRI_OK) {
        engine->plans.api = &engine->api;
        st = tri_cudnn_check(&engine->api, engine->api.create(&engine->plans.handle),
                             "start on the card");
    }
    if (st != TRI_OK) {
        close_engine(engine);
        return st;
    }
    *out = (struct tri_attn_engine){.workspace = workspace,
                                    .forward = forward,
                                    .backward = backward,
                                    .close = close_engine,
                                    .ctx = engine};
    return TRI_OK;
}
