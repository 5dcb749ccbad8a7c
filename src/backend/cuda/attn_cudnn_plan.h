/* Execution plans of cuDNN: built once for a shape, kept in a bounded cache. */
#ifndef TRI_BACKEND_CUDA_ATTN_CUDNN_PLAN_H
#define TRI_BACKEND_CUDA_ATTN_CUDNN_PLAN_H

#include "backend/cuda/attn_cudnn_sdpa.h"

enum {
    TRI_CUDNN_MAX_PLANS = 1024, /* the one used longest ago makes room */
    TRI_CUDNN_MAX_BINDINGS = 40,
};

struct tri_cudnn_plan {
    struct tri_cudnn_sdpa shape;
    struct tri_cudnn_graph graph; /* keeps alive what the plan refers to */
    cudnnBackendDescriptor_t plan;
    bool refused; /* no engine takes the shape */
    size_t workspace;
    double seconds; /* that building took */
    int64_t used;   /* when, in calls */
};

struct tri_cudnn_plans {
    const struct tri_cudnn_api *api;
    cudnnHandle_t handle;
    struct tri_cudnn_plan *plan[TRI_CUDNN_MAX_PLANS];
    int count;
    int64_t calls;
    int64_t built;
    double seconds; /* of all building */
};

/* Pointers to device memory, and to host memory for by-value tensors, under their identifiers. */
struct tri_cudnn_bindings {
    int64_t id[TRI_CUDNN_MAX_BINDINGS];
    void *pointer[TRI_CUDNN_MAX_BINDINGS];
    int64_t count;
};
void tri_cudnn_bind(struct tri_cudnn_bindings *bindings, int64_t id, const void *pointer);

/* The plan of a shape, built when it is new: a progress line says so, which
 * stands until the next message. TRI_UNSUPPORTED when no engine
 * takes it (which is remembered too). The plan stays valid until TRI_CUDNN_MAX_PLANS others were
 * asked for. */
enum tri_status tri_cudnn_plan_get(struct tri_cudnn_plans *plans,
                                   const struct tri_cudnn_sdpa *shape,
                                   const struct tri_cudnn_plan **out);
void tri_cudnn_plans_free(struct tri_cudnn_plans *plans);

/* Queue the plan on the handle's stream. */
enum tri_status tri_cudnn_plan_run(struct tri_cudnn_plans *plans, const struct tri_cudnn_plan *plan,
                                   const struct tri_cudnn_bindings *bindings, void *workspace);

#endif
