#include "backend/cuda/gemm.h"

#include <cublasLt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/context.h"
#include "backend/cuda/libraries.h"
#include "base/hash.h"

enum { CACHE_ENTRIES = 1024 }; /* shapes; a model has a few dozen */

/* The functions used, by the names of the library. */
#define FUNCTIONS(XX)                                                                              \
    XX(cublasLtCreate)                                                                             \
    XX(cublasLtDestroy)                                                                            \
    XX(cublasLtMatmul)                                                                             \
    XX(cublasLtMatmulDescCreate)                                                                   \
    XX(cublasLtMatmulDescDestroy)                                                                  \
    XX(cublasLtMatmulDescSetAttribute)                                                             \
    XX(cublasLtMatrixLayoutCreate)                                                                 \
    XX(cublasLtMatrixLayoutDestroy)                                                                \
    XX(cublasLtMatmulPreferenceCreate)                                                             \
    XX(cublasLtMatmulPreferenceDestroy)                                                            \
    XX(cublasLtMatmulPreferenceSetAttribute)                                                       \
    XX(cublasLtMatmulAlgoGetHeuristic)                                                             \
    XX(cublasLtGetVersion)

/* Everything that a choice of algorithm depends on. Column-major, as the library sees it. */
struct shape {
    int64_t m, n, k, lda, ldb, ldc;
    int32_t trans_a, trans_b, in, out;
    int32_t accumulate, bias;
    uint32_t align_a, align_b, align_c, align_bias;
};

/* A product ready to run. */
struct plan {
    bool used;
    bool supported;
    struct shape shape;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
};

struct tri_gemm {
#define XX(name) __typeof__(&name) name;
    FUNCTIONS(XX)
#undef XX
    cublasLtHandle_t handle;
    bool tf32;
    struct plan plans[CACHE_ENTRIES];
};

enum tri_status tri_gemm_open(bool tf32, struct tri_cuda_library *found, struct tri_gemm **out)
{
    void *library = tri_library_open_cublaslt(found);
    if (library == NULL)
        return tri_fail(TRI_UNSUPPORTED, "%s", found->problem);
    struct tri_gemm *gemm = calloc(1, sizeof *gemm);
    if (gemm == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the table of products");
    gemm->tf32 = tf32;
    bool all = true;
#define XX(name) all = all && tri_library_symbol(library, #name, &gemm->name, found);
    FUNCTIONS(XX)
#undef XX
    if (!all) {
        free(gemm);
        return tri_fail(TRI_UNSUPPORTED, "%s", found->problem);
    }
    size_t version = gemm->cublasLtGetVersion();
    snprintf(found->version, sizeof found->version, "%zu.%zu.%zu", version / 10000,
             version / 100 % 100, version % 100);
    cublasStatus_t code = gemm->cublasLtCreate(&gemm->handle);
    if (code != CUBLAS_STATUS_SUCCESS) {
        free(gemm);
        return tri_fail(TRI_DEVICE, "cuBLASLt %s cannot start on this card (status %d)",
                        found->version, (int)code);
    }
    *out = gemm;
    return TRI_OK;
}

static void drop(struct tri_gemm *gemm, struct plan *plan)
{
    if (plan->a != NULL)
        gemm->cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->b != NULL)
        gemm->cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->c != NULL)
        gemm->cublasLtMatrixLayoutDestroy(plan->c);
    if (plan->product != NULL)
        gemm->cublasLtMatmulDescDestroy(plan->product);
    *plan = (struct plan){.used = false};
}

void tri_gemm_close(struct tri_gemm *gemm)
{
    if (gemm == NULL)
        return;
    for (int i = 0; i < CACHE_ENTRIES; i++)
        drop(gemm, &gemm->plans[i]);
    gemm->cublasLtDestroy(gemm->handle);
    free(gemm);
}

static uint32_t alignment(const void *p)
{
    uintptr_t bits = (uintptr_t)p | 256; /* more does not help */
    return (uint32_t)(bits & (~bits + 1));
}

static cudaDataType_t type_of(enum tri_dtype dtype)
{
    return dtype == TRI_F32 ? CUDA_R_32F : CUDA_R_16BF;
}

/* Describe and choose. False when the library has no kernel for the shape. */
static bool prepare(struct tri_gemm *gemm, size_t workspace, struct plan *plan)
{
    const struct shape *s = &plan->shape;
    cudaDataType_t in = type_of((enum tri_dtype)s->in), out = type_of((enum tri_dtype)s->out);
    cublasComputeType_t compute =
        in == CUDA_R_32F && gemm->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasOperation_t op_a = s->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_b = s->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint64_t a_rows = (uint64_t)(s->trans_a ? s->k : s->m),
             a_cols = (uint64_t)(s->trans_a ? s->m : s->k);
    uint64_t b_rows = (uint64_t)(s->trans_b ? s->n : s->k),
             b_cols = (uint64_t)(s->trans_b ? s->k : s->n);
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtMatmulHeuristicResult_t best;
    int num_found = 0;
    bool ok = gemm->cublasLtMatmulDescCreate(&plan->product, compute, CUDA_R_32F) ==
                  CUBLAS_STATUS_SUCCESS &&
              gemm->cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSA,
                                                   &op_a, sizeof op_a) == CUBLAS_STATUS_SUCCESS &&
              gemm->cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSB,
                                                   &op_b, sizeof op_b) == CUBLAS_STATUS_SUCCESS &&
              gemm->cublasLtMatrixLayoutCreate(&plan->a, in, a_rows, a_cols, s->lda) ==
                  CUBLAS_STATUS_SUCCESS &&
              gemm->cublasLtMatrixLayoutCreate(&plan->b, in, b_rows, b_cols, s->ldb) ==
                  CUBLAS_STATUS_SUCCESS &&
              gemm->cublasLtMatrixLayoutCreate(&plan->c, out, (uint64_t)s->m, (uint64_t)s->n,
                                               s->ldc) == CUBLAS_STATUS_SUCCESS &&
              gemm->cublasLtMatmulPreferenceCreate(&wish) == CUBLAS_STATUS_SUCCESS;
    if (ok && s->bias) {
        cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        ok =
            gemm->cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                 &epilogue,
                                                 sizeof epilogue) == CUBLAS_STATUS_SUCCESS &&
            gemm->cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                 &in, sizeof in) == CUBLAS_STATUS_SUCCESS;
    }
    const struct {
        cublasLtMatmulPreferenceAttributes_t which;
        uint32_t bytes;
    } alignments[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s->align_a},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s->align_b},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, s->align_c},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, s->align_c}};
    for (size_t i = 0; ok && i < sizeof alignments / sizeof alignments[0]; i++)
        ok = gemm->cublasLtMatmulPreferenceSetAttribute(wish, alignments[i].which,
                                                        &alignments[i].bytes,
                                                        sizeof(uint32_t)) == CUBLAS_STATUS_SUCCESS;
    ok = ok && gemm->cublasLtMatmulPreferenceSetAttribute(
                   wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace) ==
                   CUBLAS_STATUS_SUCCESS;
    ok = ok &&
         gemm->cublasLtMatmulAlgoGetHeuristic(gemm->handle, plan->product, plan->a, plan->b,
                                              plan->c, plan->c, wish, 1, &best,
                                              &num_found) == CUBLAS_STATUS_SUCCESS &&
         num_found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
    if (ok)
        plan->algorithm = best.algo;
    if (wish != NULL)
        gemm->cublasLtMatmulPreferenceDestroy(wish);
    return ok;
}

/* The plan of a shape, made on first use. An entry is taken over when the table has no room near.
 */
static struct plan *plan_of(struct tri_gemm *gemm, size_t workspace, const struct shape *shape)
{
    uint64_t start = tri_hash_bytes(TRI_HASH_START, shape, sizeof *shape) % CACHE_ENTRIES;
    struct plan *plan = &gemm->plans[start];
    for (uint64_t i = 0; i < 16; i++) {
        struct plan *entry = &gemm->plans[(start + i) % CACHE_ENTRIES];
        if (entry->used && memcmp(&entry->shape, shape, sizeof *shape) == 0)
            return entry;
        if (!entry->used) {
            plan = entry;
            break;
        }
    }
    drop(gemm, plan);
    plan->used = true;
    plan->shape = *shape;
    plan->supported = prepare(gemm, workspace, plan);
    return plan;
}

enum tri_status tri_gemm_run(struct tri_gemm *gemm, struct tri_stream *s, bool accumulate,
                             struct tri_view c, struct tri_view a, bool trans_a, struct tri_view b,
                             bool trans_b, struct tri_view bias)
{
    /* A row-major matrix is its transpose in column-major order: c^T = op(b)^T op(a)^T, so the
     * operands change places, and what was transposed still is. Row strides are leading dimensions.
     */
    struct shape shape;
    memset(&shape, 0, sizeof shape); /* padding takes part in the comparison */
    shape.m = c.dim[1];
    shape.n = c.dim[0];
    shape.k = trans_a ? a.dim[0] : a.dim[1];
    shape.lda = b.stride[0];
    shape.ldb = a.stride[0];
    shape.ldc = c.stride[0];
    shape.trans_a = trans_b;
    shape.trans_b = trans_a;
    shape.in = (int32_t)a.dtype;
    shape.out = (int32_t)c.dtype;
    shape.accumulate = accumulate;
    shape.bias = tri_view_present(bias);
    shape.align_a = alignment(b.data);
    shape.align_b = alignment(a.data);
    shape.align_c = alignment(c.data);
    shape.align_bias = shape.bias ? alignment(bias.data) : 0;
    struct plan *plan = plan_of(gemm, s->scratch_bytes, &shape);
    if (!plan->supported)
        return tri_fail(TRI_UNSUPPORTED, "cuBLASLt has no kernel for (%lld x %lld) of depth %lld",
                        (long long)shape.n, (long long)shape.m, (long long)shape.k);
    if (shape.bias &&
        gemm->cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                             &bias.data, sizeof bias.data) != CUBLAS_STATUS_SUCCESS)
        return tri_fail(TRI_DEVICE, "cuBLASLt refuses a bias");
    const float one = 1.0f, beta = accumulate ? 1.0f : 0.0f;
    cublasStatus_t code = gemm->cublasLtMatmul(
        gemm->handle, plan->product, &one, b.data, plan->a, a.data, plan->b, &beta, c.data, plan->c,
        c.data, plan->c, &plan->algorithm, s->scratch, s->scratch_bytes, s->stream);
    if (code == CUBLAS_STATUS_NOT_SUPPORTED) {
        plan->supported =
            false; /* the heuristic offers it all the same: odd rows, bias, += together */
        return tri_fail(TRI_UNSUPPORTED, "cuBLASLt refuses (%lld x %lld) of depth %lld",
                        (long long)shape.n, (long long)shape.m, (long long)shape.k);
    }
    if (code != CUBLAS_STATUS_SUCCESS)
        return tri_fail(TRI_DEVICE,
                        "cuBLASLt: product (%lld x %lld) of depth %lld failed, status %d",
                        (long long)shape.n, (long long)shape.m, (long long)shape.k, (int)code);
    return TRI_OK;
}
