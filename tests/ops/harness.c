/* Cases: their storage in a place, the call, and the check that nothing else was touched. */
#include "ops/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "base/arena.h"
#include "tensor/half.h"

enum { GUARD = 64, MISALIGNED_GUARD = 37 };

/* ---- storage -----------------------------------------------------------------------------------
 */

static enum tri_dtype dtype_of(enum tri_test_kind kind, enum tri_dtype act)
{
    switch (kind) {
    case TRI_TEST_ACT:
        return act;
    case TRI_TEST_STAT:
        return act == TRI_F64 ? TRI_F64 : TRI_F32;
    case TRI_TEST_F32:
        return TRI_F32;
    case TRI_TEST_F64:
        return TRI_F64;
    case TRI_TEST_BF16:
        return TRI_BF16;
    case TRI_TEST_F16:
        return TRI_F16;
    case TRI_TEST_I32:
        return TRI_I32;
    case TRI_TEST_I64:
        return TRI_I64;
    }
    return TRI_F64;
}

static void store(enum tri_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case TRI_F32:
        ((float *)data)[i] = (float)value;
        break;
    case TRI_F64:
        ((double *)data)[i] = value;
        break;
    case TRI_BF16:
        ((uint16_t *)data)[i] = tri_bf16_from_double(value);
        break;
    case TRI_F16:
        ((uint16_t *)data)[i] = tri_f16_from_double(value);
        break;
    case TRI_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case TRI_I64:
        ((int64_t *)data)[i] = (int64_t)value;
        break;
    case TRI_U8:
        ((unsigned char *)data)[i] = (unsigned char)value;
        break;
    }
}

static double load(enum tri_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case TRI_F32:
        return ((const float *)data)[i];
    case TRI_F64:
        return ((const double *)data)[i];
    case TRI_BF16:
        return tri_bf16_to_float(((const uint16_t *)data)[i]);
    case TRI_F16:
        return tri_f16_to_float(((const uint16_t *)data)[i]);
    case TRI_I32:
        return ((const int32_t *)data)[i];
    case TRI_I64:
        return (double)((const int64_t *)data)[i];
    case TRI_U8:
        return ((const unsigned char *)data)[i];
    }
    return NAN;
}

double tri_test_round(enum tri_dtype dtype, double value)
{
    switch (dtype) {
    case TRI_F32:
        return (float)value;
    case TRI_BF16:
        return tri_bf16_to_float(tri_bf16_from_double(value));
    case TRI_F16:
        return tri_f16_to_float(tri_f16_from_double(value));
    case TRI_F64:
    case TRI_I32:
    case TRI_I64:
    case TRI_U8:
        break;
    }
    return value;
}

int64_t tri_test_count(const struct tri_test_tensor *tensor)
{
    int64_t n = tensor->num_dims == 0 ? 0 : 1;
    for (int i = 0; i < tensor->num_dims; i++)
        n *= tensor->dim[i];
    return n;
}

/* A tensor in the memory of a place, with a host image of its whole block. */
struct block {
    struct tri_view whole; /* every element of the block, guards included */
    struct tri_view view;  /* the tensor itself */
    int64_t *offset;       /* (count) of each element from the start of the block */
    unsigned char *image;  /* what was uploaded */
};

static int64_t element_offset(struct tri_view v, int64_t index)
{
    int64_t offset = 0;
    for (int i = v.num_dims - 1; i >= 0; i--) {
        offset += index % v.dim[i] * v.stride[i];
        index /= v.dim[i];
    }
    return offset;
}

static void block_open(struct tri_test_place *place, const struct tri_test_tensor *tensor,
                       enum tri_dtype inputs, enum tri_dtype storage, struct block *out)
{
    enum tri_dtype dtype = dtype_of(tensor->kind, storage);
    size_t bytes = tri_dtype_bytes(dtype);
    int64_t guard = tensor->pad > 0 ? MISALIGNED_GUARD : GUARD;
    int64_t count = tri_test_count(tensor);

    struct tri_view v = {.dtype = dtype, .num_dims = tensor->num_dims};
    int64_t stride = 1;
    for (int i = tensor->num_dims - 1; i >= 0; i--) {
        v.dim[i] = tensor->dim[i];
        v.stride[i] = stride;
        stride = stride * tensor->dim[i] + tensor->pad;
    }
    int64_t extent = count > 0 ? element_offset(v, count - 1) + 1 : 0;

    void *memory = NULL;
    struct tri_view whole = tri_view1(NULL, dtype, extent + 2 * guard);
    assert_int_equal(tri_arena_alloc(place->arena, "tensor", tri_view_bytes(whole), &memory),
                     TRI_OK);
    whole.data = memory;
    v.data = (char *)memory + guard * (int64_t)bytes;

    unsigned char *image = malloc(tri_view_bytes(whole));
    int64_t *offset = malloc((size_t)(count + 1) * sizeof(*offset));
    assert_non_null(image);
    assert_non_null(offset);
    memset(image, 0xFF,
           tri_view_bytes(whole)); /* all ones is a NaN in every format, -1 in others */
    for (int64_t i = 0; i < count; i++) {
        offset[i] = guard + element_offset(v, i);
        if (tensor->role != TRI_TEST_OUT)
            store(dtype, image, offset[i],
                  tri_test_round(dtype_of(tensor->kind, inputs), tensor->value[i]));
    }
    const struct tri_ops *ops = &place->backend->ops;
    assert_int_equal(ops->upload(place->backend->stream, whole, image), TRI_OK);
    *out = (struct block){whole, v, offset, image};
}

static void block_close(struct block *block)
{
    free(block->offset);
    free(block->image);
}

/* ---- the call ----------------------------------------------------------------------------------
 */

static enum tri_status call(const struct tri_ops *ops, struct tri_stream *s,
                            const struct tri_test_case *c, const struct tri_view *v,
                            void *workspace)
{
    switch (c->op) {
    case TRI_TEST_COPY:
        return ops->copy(s, v[0], v[1]);
    case TRI_TEST_ZERO:
        return ops->zero(s, v[0]);
    case TRI_TEST_ADD:
        return ops->add(s, v[0], v[1]);
    case TRI_TEST_EMBED_FORWARD:
        return ops->embed_forward(s, v[0], v[1].data, v[2]);
    case TRI_TEST_EMBED_BACKWARD:
        return ops->embed_backward(s, v[0], v[1].data, v[2]);
    case TRI_TEST_NORM_FORWARD:
        return ops->norm_forward(s, &c->norm, v[0], v[1], v[2], v[3]);
    case TRI_TEST_NORM_BACKWARD:
        return ops->norm_backward(s, &c->norm, c->flag, v[0], v[1], v[2], v[3], v[4], v[5]);
    case TRI_TEST_LINEAR_FORWARD:
        return ops->linear_forward(s, c->flag, v[0], v[1], v[2], v[3]);
    case TRI_TEST_LINEAR_BACKWARD_X:
        return ops->linear_backward_x(s, c->flag, v[0], v[1], v[2]);
    case TRI_TEST_LINEAR_BACKWARD_W:
        return ops->linear_backward_w(s, v[0], v[1], v[2], v[3]);
    case TRI_TEST_ROPE_TABLE:
        return ops->rope_table(s, v[0], v[1].data, c->inv_freq, c->scale);
    case TRI_TEST_ROPE:
        return ops->rope(s, c->flag, v[0], v[1], v[2]);
    case TRI_TEST_ACT_FORWARD:
        return ops->act_forward(s, c->act, v[0], v[1], v[2]);
    case TRI_TEST_ACT_BACKWARD:
        return ops->act_backward(s, c->act, v[0], v[1], v[2], v[3], v[4]);
    case TRI_TEST_ATTN_FORWARD:
        return ops->attn_forward(s, &c->attn, v[0], v[1], v[2], v[3], v[4], workspace);
    case TRI_TEST_ATTN_BACKWARD:
        return ops->attn_backward(s, &c->attn, c->flag, v[0], v[1], v[2], v[3], v[4], v[5], v[6],
                                  v[7], v[8], workspace);
    case TRI_TEST_CROSS_ENTROPY:
        return ops->cross_entropy(s, c->flag, c->scale, v[0].data, v[1], v[2].data);
    case TRI_TEST_ADAMW:
        return ops->adamw(s, &c->adamw, v[0], v[1], v[2], v[3], v[4]);
    case TRI_TEST_SUM_SQUARES:
        return ops->sum_squares(s, v[0].data, v[1]);
    }
    return TRI_INTERNAL;
}

static size_t workspace_bytes(const struct tri_ops *ops, struct tri_stream *s,
                              const struct tri_test_case *c, const struct tri_view *v)
{
    if (c->op == TRI_TEST_ATTN_FORWARD)
        return ops->attn_workspace(s, &c->attn, false, v[2], v[3]);
    if (c->op == TRI_TEST_ATTN_BACKWARD)
        return ops->attn_workspace(s, &c->attn, true, v[4], v[5]);
    return 0;
}

/* ---- running -----------------------------------------------------------------------------------
 */

struct tri_backend *tri_test_reference(void)
{
    static struct tri_backend backend;
    if (backend.name == NULL) {
        backend.name = "cpu";
        backend.kernels = "reference";
        backend.memory = &tri_host_memory;
        tri_cpu_reference_ops(&backend.ops);
    }
    return &backend;
}

void tri_test_place_open(struct tri_backend *backend, struct tri_test_place *out)
{
    out->backend = backend;
    assert_int_equal(tri_arena_open(backend->memory, (size_t)1 << 30, &out->arena), TRI_OK);
}

void tri_test_place_close(struct tri_test_place *place)
{
    tri_arena_close(place->arena);
}

void tri_test_result_free(struct tri_test_result *result)
{
    for (int i = 0; i < TRI_TEST_MAX_TENSORS; i++)
        free(result->value[i]);
    *result = (struct tri_test_result){{NULL}};
}

/* Bring a block back, take the tensor's elements out of it, and demand that the rest is as it was
 * uploaded. */
static void check_block(struct tri_test_place *place, const struct tri_test_case *c, int index,
                        bool written, const struct block *block, double *result)
{
    size_t bytes = tri_view_bytes(block->whole), width = tri_dtype_bytes(block->whole.dtype);
    unsigned char *after = malloc(bytes);
    assert_non_null(after);
    const struct tri_ops *ops = &place->backend->ops;
    assert_int_equal(ops->download(place->backend->stream, after, block->whole), TRI_OK);

    for (int64_t i = 0; i < tri_test_count(&c->tensor[index]); i++) {
        size_t at = (size_t)block->offset[i] * width;
        if (result != NULL)
            result[i] = load(block->whole.dtype, after, block->offset[i]);
        if (written)
            memcpy(after + at, block->image + at, width);
    }
    bool equal = memcmp(after, block->image, bytes) == 0;
    for (size_t i = 0; !equal && i < bytes; i++)
        if (after[i] != block->image[i])
            fail_msg(
                "%s: %s: byte %zu of the block of %zu, which is not the op's to write, changed",
                c->name, c->tensor[index].name, i, bytes);
    free(after);
}

void tri_test_run(struct tri_test_place *place, const struct tri_test_case *c,
                  enum tri_dtype inputs, enum tri_dtype storage, bool aliased,
                  struct tri_test_result *out)
{
    enum { WORKSPACE_GUARD = 256 };
    const struct tri_ops *ops = &place->backend->ops;
    struct tri_stream *s = place->backend->stream;
    size_t mark = tri_arena_mark(place->arena);
    struct block block[TRI_TEST_MAX_TENSORS];
    struct tri_view view[TRI_TEST_MAX_TENSORS];
    int owner[TRI_TEST_MAX_TENSORS]; /* whose block a tensor lies in */
    bool written[TRI_TEST_MAX_TENSORS] = {false};

    memset(block, 0, sizeof(block));
    memset(view, 0, sizeof(view));
    for (int i = 0; i < c->num_tensors; i++) {
        owner[i] = aliased && c->tensor[i].alias >= 0 ? c->tensor[i].alias : i;
        if (c->tensor[i].num_dims > 0 && owner[i] == i)
            block_open(place, &c->tensor[i], inputs, storage, &block[i]);
        if (c->tensor[i].role != TRI_TEST_IN)
            written[owner[i]] = true;
    }
    for (int i = 0; i < c->num_tensors; i++)
        view[i] = block[owner[i]].view;

    size_t room = workspace_bytes(ops, s, c, view);
    void *workspace = NULL;
    struct tri_view around = tri_view_none();
    if (room > 0) {
        around = tri_view1(NULL, TRI_U8, (int64_t)room + 2 * WORKSPACE_GUARD);
        assert_int_equal(
            tri_arena_alloc(place->arena, "workspace", tri_view_bytes(around), &around.data),
            TRI_OK);
        unsigned char *poison = malloc(tri_view_bytes(around));
        assert_non_null(poison);
        memset(poison, 0xFF, tri_view_bytes(around));
        assert_int_equal(ops->upload(s, around, poison), TRI_OK);
        free(poison);
        workspace = (char *)around.data + WORKSPACE_GUARD;
    }

    enum tri_status status = call(ops, s, c, view, workspace);
    if (status != TRI_OK)
        fail_msg("%s: %s", c->name, tri_error_text());
    assert_int_equal(ops->sync(s), TRI_OK);

    *out = (struct tri_test_result){{NULL}};
    for (int i = 0; i < c->num_tensors; i++) {
        int64_t count = tri_test_count(&c->tensor[i]);
        if (c->tensor[i].num_dims == 0)
            continue;
        if (c->tensor[i].role != TRI_TEST_IN) {
            out->value[i] = malloc((size_t)(count + 1) * sizeof(double));
            assert_non_null(out->value[i]);
        }
        check_block(place, c, i, written[owner[i]], &block[owner[i]], out->value[i]);
    }
    if (room > 0) {
        unsigned char *after = malloc(tri_view_bytes(around));
        assert_non_null(after);
        assert_int_equal(ops->download(s, after, around), TRI_OK);
        for (size_t i = 0; i < WORKSPACE_GUARD; i++)
            if (after[i] != 0xFF || after[WORKSPACE_GUARD + room + i] != 0xFF)
                fail_msg("%s: written outside the workspace of %zu bytes", c->name, room);
        free(after);
    }
    for (int i = 0; i < c->num_tensors; i++)
        if (owner[i] == i)
            block_close(&block[i]);
    tri_arena_release(place->arena, mark);
}

void tri_test_case_free(struct tri_test_case *c)
{
    for (int i = 0; i < c->num_tensors; i++)
        free(c->tensor[i].value);
    c->num_tensors = 0;
}
