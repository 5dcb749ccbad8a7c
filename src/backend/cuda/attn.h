/* The choice between cuDNN's attention and our own (attn.c). */
#ifndef TRI_BACKEND_CUDA_ATTN_H
#define TRI_BACKEND_CUDA_ATTN_H

#include "backend/backend.h"

struct tri_cuda;

/* An implementation of the three attention entries of the ops table, with the same contracts,
 * except that a call which the engine refuses is TRI_UNSUPPORTED (nothing queued, nothing written)
 * and that a workspace of a refused shape is 0. All NULL: the engine is not there. */
struct tri_attn_engine {
    size_t (*workspace)(struct tri_stream *s, const struct tri_attn *op, bool backward,
                        struct tri_view q, struct tri_view k);
    enum tri_status (*forward)(struct tri_stream *s, const struct tri_attn *op, struct tri_view o,
                               struct tri_view lse, struct tri_view q, struct tri_view k,
                               struct tri_view v, void *workspace);
    enum tri_status (*backward)(struct tri_stream *s, const struct tri_attn *op, bool accumulate_dq,
                                struct tri_view dq, struct tri_view dk, struct tri_view dv,
                                struct tri_view dout, struct tri_view q, struct tri_view k,
                                struct tri_view v, struct tri_view o, struct tri_view lse,
                                void *workspace);
    void (*close)(void *ctx);
    void *ctx; /* the engine's own: handle, plan cache */
};

/* cuDNN (attn_cudnn.c). Opens the library, fills `out` and the version, path or problem in `found`.
 * TRI_UNSUPPORTED when the library is missing or older than 9.10.2. The engine keeps `cuda`. */
enum tri_status tri_cudnn_attn_open(struct tri_cuda *cuda, struct tri_attn_engine *out);

/* Our own kernel (attn_own.c): any head size up to 256, float32 and bfloat16, deterministic. */
extern const struct tri_attn_engine tri_own_attn;

#endif
