#include "backend/cuda/attn_cudnn_graph.h"

#include <string.h>

/* Identifiers of outer tensors lie below. */
enum { FIRST_VIRTUAL_ID = 1000 };

void tri_cudnn_graph_begin(struct tri_cudnn_graph *g, const struct tri_cudnn_api *api)
{
    memset(g, 0, sizeof *g);
    g->api = api;
    g->next_virtual = FIRST_VIRTUAL_ID;
    g->status = CUDNN_STATUS_SUCCESS;
}

static void note(struct tri_cudnn_graph *g, cudnnStatus_t status, const char *what)
{
    if (status != CUDNN_STATUS_SUCCESS && g->status == CUDNN_STATUS_SUCCESS) {
        g->status = status;
        g->where = what;
    }
}

cudnnBackendDescriptor_t tri_cudnn_descriptor(struct tri_cudnn_graph *g,
                                              cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;
    if (g->num_descriptors == TRI_CUDNN_MAX_DESCRIPTORS) {
        note(g, CUDNN_STATUS_INTERNAL_ERROR, "descriptors: too many");
        return NULL;
    }
    if (g->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    note(g, g->api->create_descriptor(type, &d), "create a descriptor");
    if (d != NULL)
        g->descriptors[g->num_descriptors++] = d;
    return d;
}

void tri_cudnn_set(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t d,
                   cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   int64_t count, const void *values, const char *what)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, g->api->set(d, name, type, count, values), what);
}

void tri_cudnn_finalize(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t d, const char *what)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, g->api->finalize(d), what);
}

/* Set one attribute that is a descriptor; NULL is left out. */
static void set_descriptor(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t d,
                           cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value,
                           const char *what)
{
    if (value != NULL)
        tri_cudnn_set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value, what);
}

static void add_op(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t op, const char *what)
{
    tri_cudnn_finalize(g, op, what);
    if (g->num_ops == TRI_CUDNN_MAX_OPS)
        note(g, CUDNN_STATUS_INTERNAL_ERROR, "operations: too many");
    else
        g->ops[g->num_ops++] = op;
}

static cudnnBackendDescriptor_t describe(struct tri_cudnn_graph *g,
                                         const struct tri_cudnn_tensor *t, bool inner)
{
    static const char what[] = "describe a tensor";
    cudnnBackendDescriptor_t d = tri_cudnn_descriptor(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t alignment = t->alignment > 0 ? t->alignment : 16;
    bool yes = true;
    tri_cudnn_set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t->id, what);
    tri_cudnn_set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->dtype, what);
    tri_cudnn_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->dim, what);
    tri_cudnn_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t->stride, what);
    tri_cudnn_set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment, what);
    if (inner)
        tri_cudnn_set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes, what);
    if (t->by_value)
        tri_cudnn_set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes, what);
    set_descriptor(g, d, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, t->offsets, what);
    tri_cudnn_finalize(g, d, what);
    return d;
}

cudnnBackendDescriptor_t tri_cudnn_tensor(struct tri_cudnn_graph *g,
                                          const struct tri_cudnn_tensor *tensor)
{
    return describe(g, tensor, false);
}

cudnnBackendDescriptor_t tri_cudnn_value(struct tri_cudnn_graph *g, int64_t id,
                                         cudnnDataType_t dtype)
{
    struct tri_cudnn_tensor t = {.id = id,
                                 .dtype = dtype,
                                 .dim = {1, 1, 1, 1},
                                 .stride = {1, 1, 1, 1},
                                 .alignment = 4,
                                 .by_value = true};
    return describe(g, &t, false);
}

cudnnBackendDescriptor_t tri_cudnn_inner_strided(struct tri_cudnn_graph *g, cudnnDataType_t dtype,
                                                 const int64_t dim[4], const int64_t stride[4],
                                                 cudnnBackendDescriptor_t offsets)
{
    struct tri_cudnn_tensor t = {.id = g->next_virtual++, .dtype = dtype, .offsets = offsets};
    memcpy(t.dim, dim, sizeof t.dim);
    memcpy(t.stride, stride, sizeof t.stride);
    return describe(g, &t, true);
}

cudnnBackendDescriptor_t tri_cudnn_inner(struct tri_cudnn_graph *g, cudnnDataType_t dtype,
                                         int64_t b, int64_t h, int64_t rows, int64_t columns)
{
    int64_t dim[4] = {b, h, rows, columns};
    int64_t stride[4] = {h * rows * columns, rows * columns, columns, 1};
    return tri_cudnn_inner_strided(g, dtype, dim, stride, NULL);
}

static cudnnBackendDescriptor_t pointwise(struct tri_cudnn_graph *g, cudnnPointwiseMode_t mode,
                                          cudnnDataType_t precision, int64_t axis,
                                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                                          cudnnBackendDescriptor_t t, cudnnBackendDescriptor_t y)
{
    static const char what[] = "describe an elementwise operation";
    cudnnBackendDescriptor_t how = tri_cudnn_descriptor(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    tri_cudnn_set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode, what);
    tri_cudnn_set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision,
                  what);
    if (mode == CUDNN_POINTWISE_GEN_INDEX)
        tri_cudnn_set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis, what);
    tri_cudnn_finalize(g, how, what);
    cudnnBackendDescriptor_t op =
        tri_cudnn_descriptor(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y, what);
    add_op(g, op, what);
    return y;
}

cudnnBackendDescriptor_t tri_cudnn_pointwise(struct tri_cudnn_graph *g, cudnnPointwiseMode_t mode,
                                             cudnnDataType_t precision, cudnnBackendDescriptor_t x,
                                             cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t,
                                             cudnnBackendDescriptor_t y)
{
    return pointwise(g, mode, precision, 0, x, b, t, y);
}

cudnnBackendDescriptor_t tri_cudnn_index(struct tri_cudnn_graph *g, cudnnDataType_t precision,
                                         int64_t axis, cudnnBackendDescriptor_t x,
                                         cudnnBackendDescriptor_t y)
{
    return pointwise(g, CUDNN_POINTWISE_GEN_INDEX, precision, axis, x, NULL, NULL, y);
}

cudnnBackendDescriptor_t tri_cudnn_matmul(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t a,
                                          cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c,
                                          struct tri_cudnn_overrides overrides)
{
    static const char what[] = "describe a matrix product";
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    double zero = 0.0;
    cudnnBackendDescriptor_t how = tri_cudnn_descriptor(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    tri_cudnn_set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision, what);
    if (overrides.zero_padding)
        tri_cudnn_set(g, how, CUDNN_ATTR_MATMUL_PADDING_VALUE, CUDNN_TYPE_DOUBLE, 1, &zero, what);
    tri_cudnn_finalize(g, how, what);
    cudnnBackendDescriptor_t op =
        tri_cudnn_descriptor(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, overrides.rows, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, overrides.columns,
                   what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, overrides.depth, what);
    add_op(g, op, what);
    return c;
}

cudnnBackendDescriptor_t tri_cudnn_reduce(struct tri_cudnn_graph *g, cudnnReduceTensorOp_t op,
                                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
{
    static const char what[] = "describe a reduction";
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = tri_cudnn_descriptor(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    tri_cudnn_set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op,
                  what);
    tri_cudnn_set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision,
                  what);
    tri_cudnn_finalize(g, how, what);
    cudnnBackendDescriptor_t node =
        tri_cudnn_descriptor(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_descriptor(g, node, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how, what);
    set_descriptor(g, node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x, what);
    set_descriptor(g, node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y, what);
    add_op(g, node, what);
    return y;
}

cudnnBackendDescriptor_t tri_cudnn_reshape(struct tri_cudnn_graph *g, cudnnBackendDescriptor_t x,
                                           cudnnBackendDescriptor_t y)
{
    static const char what[] = "describe a reshape";
    cudnnBackendDescriptor_t op =
        tri_cudnn_descriptor(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x, what);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y, what);
    add_op(g, op, what);
    return y;
}

enum tri_status tri_cudnn_graph_finish(struct tri_cudnn_graph *g, cudnnHandle_t handle,
                                       cudnnBackendDescriptor_t *out)
{
    static const char what[] = "form a graph of operations";
    cudnnBackendDescriptor_t graph =
        tri_cudnn_descriptor(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (handle != NULL)
        tri_cudnn_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle,
                      what);
    tri_cudnn_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  g->num_ops, g->ops, what);
    tri_cudnn_finalize(g, graph, what);
    int category =
        (int)g->status / 1000; /* of CUDNN_STATUS_NOT_SUPPORTED_... and ..._BAD_PARAM_... */
    if (category == CUDNN_STATUS_NOT_SUPPORTED / 1000 || category == CUDNN_STATUS_BAD_PARAM / 1000)
        return tri_fail(TRI_UNSUPPORTED, "cuDNN refuses to %s: %s", g->where,
                        g->api->error_string(g->status));
    TRI_TRY(tri_cudnn_check(g->api, g->status, g->where));
    *out = graph;
    return TRI_OK;
}

void tri_cudnn_graph_free(struct tri_cudnn_graph *g)
{
    for (int i = g->num_descriptors - 1; i >= 0; i--)
        (void)g->api->destroy_descriptor(g->descriptors[i]);
    g->num_descriptors = 0;
    g->num_ops = 0;
}
