#include "backend/cuda/attn_cudnn_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum { MAX_ENGINES = 8 };

void tri_cudnn_bind(struct tri_cudnn_bindings *bindings, int64_t id, const void *pointer)
{
    if (bindings->count == TRI_CUDNN_MAX_BINDINGS)
        abort(); /* there are fewer identifiers than this */
    bindings->id[bindings->count] = id;
    bindings->pointer[bindings->count] = (void *)(uintptr_t)pointer;
    bindings->count++;
}

/* The first engine of a heuristic whose plan finalises. False when there is none. */
static bool choose_engine(struct tri_cudnn_plan *p, const struct tri_cudnn_plans *plans,
                          cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
    const struct tri_cudnn_api *api = plans->api;
    struct tri_cudnn_graph *g = &p->graph;
    cudnnBackendDescriptor_t heuristic =
        tri_cudnn_descriptor(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnnBackendDescriptor_t engine[MAX_ENGINES];
    int64_t count = 0, one = 0, bytes = 0;
    for (int i = 0; i < MAX_ENGINES; i++)
        engine[i] = tri_cudnn_descriptor(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->status != CUDNN_STATUS_SUCCESS ||
        api->set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                 &graph) != CUDNN_STATUS_SUCCESS ||
        api->set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) !=
            CUDNN_STATUS_SUCCESS ||
        api->finalize(heuristic) != CUDNN_STATUS_SUCCESS ||
        api->get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 MAX_ENGINES, &count, engine) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int64_t i = 0; i < count && i < MAX_ENGINES; i++) {
        cudnnBackendDescriptor_t plan =
            tri_cudnn_descriptor(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        if (plan == NULL)
            return false;
        cudnnHandle_t handle = plans->handle;
        if (api->set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) ==
                CUDNN_STATUS_SUCCESS &&
            api->set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                     1, &engine[i]) == CUDNN_STATUS_SUCCESS &&
            api->finalize(plan) == CUDNN_STATUS_SUCCESS &&
            api->get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                     &bytes) == CUDNN_STATUS_SUCCESS) {
            p->plan = plan;
            p->workspace = (size_t)bytes;
            return true;
        }
    }
    return false;
}

static void plan_free(struct tri_cudnn_plan *p)
{
    tri_cudnn_graph_free(&p->graph);
    free(p);
}

/* A refused shape leaves `refused` set; only failures of another kind are errors. */
static enum tri_status build(struct tri_cudnn_plans *plans, struct tri_cudnn_plan *p)
{
    const struct tri_cudnn_sdpa *s = &p->shape;
    double start = tri_clock();
    cudnnBackendDescriptor_t graph;
    tri_progress("building the %s attention plan of %lld queries, %lld keys, %lld+%lld heads of "
                 "%lld (%lld built so far, %.1f s)",
                 s->backward ? "backward" : "forward", (long long)s->q_rows, (long long)s->k_rows,
                 (long long)s->q_heads, (long long)s->k_heads, (long long)s->head_size,
                 (long long)plans->built, plans->seconds);
    tri_cudnn_graph_begin(&p->graph, plans->api);
    tri_cudnn_sdpa_build(&p->graph, s);
    enum tri_status st = tri_cudnn_graph_finish(&p->graph, plans->handle, &graph);
    if (st == TRI_OK)
        p->refused = !choose_engine(p, plans, graph, CUDNN_HEUR_MODE_A) &&
                     !choose_engine(p, plans, graph, CUDNN_HEUR_MODE_FALLBACK);
    else if (st == TRI_UNSUPPORTED)
        p->refused = true;
    else
        return st;
    tri_error_clear();
    if (p->refused)
        tri_cudnn_graph_free(&p->graph);
    p->seconds = tri_clock() - start;
    plans->seconds += p->seconds;
    plans->built++;
    return TRI_OK;
}

static void make_room(struct tri_cudnn_plans *plans)
{
    if (plans->count < TRI_CUDNN_MAX_PLANS)
        return;
    int oldest = 0;
    for (int i = 1; i < plans->count; i++)
        if (plans->plan[i]->used < plans->plan[oldest]->used)
            oldest = i;
    plan_free(plans->plan[oldest]);
    plans->plan[oldest] = plans->plan[--plans->count];
}

enum tri_status tri_cudnn_plan_get(struct tri_cudnn_plans *plans,
                                   const struct tri_cudnn_sdpa *shape,
                                   const struct tri_cudnn_plan **out)
{
    struct tri_cudnn_plan *p = NULL;
    for (int i = 0; i < plans->count && p == NULL; i++)
        if (memcmp(&plans->plan[i]->shape, shape, sizeof *shape) == 0)
            p = plans->plan[i];
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        if (p == NULL)
            return tri_fail(TRI_NOMEM, "no memory for an attention plan");
        p->shape = *shape;
        enum tri_status st = build(plans, p);
        if (st != TRI_OK) {
            plan_free(p);
            return st;
        }
        make_room(plans);
        plans->plan[plans->count++] = p;
    }
    p->used = ++plans->calls;
    if (p->refused)
        return tri_fail(TRI_UNSUPPORTED,
                        "cuDNN has no engine for %s attention of %lld queries, %lld keys, "
                        "%lld+%lld heads of %lld",
                        shape->backward ? "backward" : "forward", (long long)shape->q_rows,
                        (long long)shape->k_rows, (long long)shape->q_heads,
                        (long long)shape->k_heads, (long long)shape->head_size);
    *out = p;
    return TRI_OK;
}

void tri_cudnn_plans_free(struct tri_cudnn_plans *plans)
{
    for (int i = 0; i < plans->count; i++)
        plan_free(plans->plan[i]);
    plans->count = 0;
}

enum tri_status tri_cudnn_plan_run(struct tri_cudnn_plans *plans, const struct tri_cudnn_plan *plan,
                                   const struct tri_cudnn_bindings *bindings, void *workspace)
{
    const struct tri_cudnn_api *api = plans->api;
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t code = api->create_descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (code == CUDNN_STATUS_SUCCESS)
        code = api->set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, bindings->count,
                        bindings->id);
    if (code == CUDNN_STATUS_SUCCESS)
        code = api->set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                        bindings->count, bindings->pointer);
    if (code == CUDNN_STATUS_SUCCESS)
        code =
            api->set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (code == CUDNN_STATUS_SUCCESS)
        code = api->finalize(pack);
    if (code == CUDNN_STATUS_SUCCESS)
        code = api->execute(plans->handle, plan->plan, pack);
    enum tri_status st = tri_cudnn_check(api, code, "run attention");
    if (pack != NULL)
        (void)api->destroy_descriptor(pack);
    return st;
}
