/* The tiled MLP and the fused loss on tensors of the caller: model/mlp.h and model/head.h with
 * parameters given one by one. */
#include "api/device.h"
#include "base/minmax.h"
#include "model/head.h"
#include "model/mlp.h"
#include "trireme/tiled.h"

/* A gradient that is absent, or has the shape of its parameter and the dtype of statistics. */
static enum tri_status check_grad(const char *name, struct tri_view grad, struct tri_view param)
{
    if (!tri_view_present(grad))
        return TRI_OK;
    enum tri_dtype stat = param.dtype == TRI_F64 ? TRI_F64 : TRI_F32;
    if (!tri_view_present(param) || !tri_view_same_shape(grad, param) || grad.dtype != stat)
        return tri_fail(TRI_INVALID, "%s: the gradient must have the parameter's shape and be %s",
                        name, tri_dtype_name(stat));
    return TRI_OK;
}

static enum tri_status check_shape(const char *name, struct tri_view v, int64_t rows, int64_t cols,
                                   enum tri_dtype dtype)
{
    int64_t got_cols = v.num_dims == 2 ? v.dim[1] : 1;
    if (v.dim[0] != rows || got_cols != cols || v.dtype != dtype)
        return tri_fail(TRI_INVALID, "%s is (%lld, %lld) %s, here it must be (%lld, %lld) %s", name,
                        (long long)v.dim[0], (long long)got_cols, tri_dtype_name(v.dtype),
                        (long long)rows, (long long)cols, tri_dtype_name(dtype));
    return TRI_OK;
}

/* ---- MLP ---------------------------------------------------------------------------------------
 */

static enum tri_status get_params(const struct tri_tiled_mlp *op, struct tri_mlp *m)
{
    TRI_TRY(tri_device_param("in_w", op->in_w, &m->in_w));
    TRI_TRY(tri_device_param("in_b", op->in_b, &m->in_b));
    TRI_TRY(tri_device_param("out_w", op->out_w, &m->out_w));
    TRI_TRY(tri_device_param("out_b", op->out_b, &m->out_b));
    TRI_TRY(tri_device_param("d_in_w", op->d_in_w, &m->d_in_w));
    TRI_TRY(tri_device_param("d_in_b", op->d_in_b, &m->d_in_b));
    TRI_TRY(tri_device_param("d_out_w", op->d_out_w, &m->d_out_w));
    TRI_TRY(tri_device_param("d_out_b", op->d_out_b, &m->d_out_b));
    if (m->in_w.num_dims != 2 || m->out_w.num_dims != 2)
        return tri_fail(TRI_INVALID, "a tiled MLP needs the matrices in_w and out_w");
    int64_t f = m->out_w.dim[1];
    m->gated = m->in_w.dim[0] == 2 * f;
    if (!m->gated && m->in_w.dim[0] != f)
        return tri_fail(TRI_INVALID, "in_w has %lld rows: %lld as out_w has columns, or twice that",
                        (long long)m->in_w.dim[0], (long long)f);
    TRI_TRY(check_shape("out_w", m->out_w, m->in_w.dim[1], f, m->in_w.dtype));
    if (tri_view_present(m->in_b))
        TRI_TRY(check_shape("in_b", m->in_b, m->in_w.dim[0], 1, m->in_w.dtype));
    if (tri_view_present(m->out_b))
        TRI_TRY(check_shape("out_b", m->out_b, m->out_w.dim[0], 1, m->in_w.dtype));
    TRI_TRY(check_grad("d_in_w", m->d_in_w, m->in_w));
    TRI_TRY(check_grad("d_in_b", m->d_in_b, m->in_b));
    TRI_TRY(check_grad("d_out_w", m->d_out_w, m->out_w));
    if ((tri_view_present(m->d_in_b) && !tri_view_present(m->d_in_w)) ||
        (tri_view_present(m->d_out_b) && !tri_view_present(m->d_out_w)))
        return tri_fail(TRI_UNSUPPORTED, "a tiled MLP gives a bias's gradient only together with "
                                         "that of its matrix: give d_in_w, d_out_w too");
    return check_grad("d_out_b", m->d_out_b, m->out_b);
}

static enum tri_status open_mlp(struct tri_device *device, const struct tri_tiled_mlp *op,
                                int64_t rows, struct tri_mlp *out)
{
    struct tri_mlp m = {.exec = device->exec, .activation = op->activation};
    TRI_TRY(get_params(op, &m));
    int64_t e = m.in_w.dim[1];
    int64_t tiles = op->tiles > 0 ? op->tiles : (rows + e - 1) / e;
    m.tiles = tiles > 0 ? tiles : 1;
    *out = m;
    return TRI_OK;
}

static enum tri_status mlp_forward(struct tri_device *device, const struct tri_tiled_mlp *op,
                                   struct tri_tensor y, struct tri_tensor x)
{
    struct tri_mlp m;
    struct tri_matrix to, from;
    TRI_TRY(tri_device_matrix(device, "x", x, true, &from));
    TRI_TRY(tri_device_matrix(device, "y", y, false, &to));
    TRI_TRY(open_mlp(device, op, from.view.dim[0], &m));
    int64_t e = m.in_w.dim[1];
    TRI_TRY(check_shape("x", from.view, from.view.dim[0], e, m.in_w.dtype));
    TRI_TRY(check_shape("y", to.view, from.view.dim[0], e, m.in_w.dtype));
    TRI_TRY(device->exec.ops->zero(device->exec.stream, to.view));
    TRI_TRY(tri_mlp_run(&m, to.view, from.view, tri_view_none()));
    return tri_device_matrix_done(device, &to);
}

static enum tri_status mlp_backward(struct tri_device *device, const struct tri_tiled_mlp *op,
                                    struct tri_tensor dx, struct tri_tensor dy, struct tri_tensor x)
{
    struct tri_mlp m;
    struct tri_matrix to, up, from;
    TRI_TRY(tri_device_matrix(device, "x", x, true, &from));
    TRI_TRY(tri_device_matrix(device, "dy", dy, true, &up));
    TRI_TRY(tri_device_matrix(device, "dx", dx, false, &to));
    TRI_TRY(open_mlp(device, op, from.view.dim[0], &m));
    int64_t e = m.in_w.dim[1];
    TRI_TRY(check_shape("x", from.view, from.view.dim[0], e, m.in_w.dtype));
    TRI_TRY(check_shape("dy", up.view, from.view.dim[0], e, m.in_w.dtype));
    if (tri_view_present(to.view)) {
        TRI_TRY(check_shape("dx", to.view, from.view.dim[0], e, m.in_w.dtype));
        TRI_TRY(device->exec.ops->zero(device->exec.stream, to.view));
    }
    TRI_TRY(tri_mlp_run_backward(&m, to.view, up.view, from.view, tri_view_none()));
    return tri_device_matrix_done(device, &to);
}

enum tri_status tri_tiled_mlp_forward(struct tri_device *device, const struct tri_tiled_mlp *op,
                                      struct tri_tensor y, struct tri_tensor x)
{
    size_t mark = tri_arena_mark(device->exec.arena);
    enum tri_status st = mlp_forward(device, op, y, x);
    tri_arena_release(device->exec.arena, mark);
    return st;
}

enum tri_status tri_tiled_mlp_backward(struct tri_device *device, const struct tri_tiled_mlp *op,
                                       struct tri_tensor dx, struct tri_tensor dy,
                                       struct tri_tensor x)
{
    size_t mark = tri_arena_mark(device->exec.arena);
    enum tri_status st = mlp_backward(device, op, dx, dy, x);
    tri_arena_release(device->exec.arena, mark);
    return st;
}

/* ---- logits and loss ---------------------------------------------------------------------------
 */

static enum tri_status open_head(struct tri_device *device, const struct tri_fused_loss *op,
                                 struct tri_head *out)
{
    struct tri_head head = {.exec = device->exec};
    TRI_TRY(tri_device_param("weight", op->weight, &head.w));
    TRI_TRY(tri_device_param("d_weight", op->d_weight, &head.dw));
    if (head.w.num_dims != 2)
        return tri_fail(TRI_INVALID, "a fused loss needs the matrix weight (V, E)");
    TRI_TRY(check_grad("d_weight", head.dw, head.w));
    int64_t row = head.w.dim[0] * (int64_t)tri_dtype_bytes(head.w.dtype);
    int64_t rows = op->max_rows > 0 ? op->max_rows : ((int64_t)64 << 20) / row;
    head.rows = rows > 0 ? rows : 1;
    *out = head;
    return TRI_OK;
}

/* Are labels those of the weight, and how many are trained? Waits. */
static enum tri_status check_labels(struct tri_device *device, const int32_t *labels, int64_t rows,
                                    int64_t vocab, int64_t *trained)
{
    enum { PIECE = 4096 };
    int32_t host[PIECE];
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i += PIECE) {
        int64_t n = tri_min(rows - i, PIECE);
        TRI_TRY(device->exec.ops->download(device->exec.stream, host,
                                           tri_view1((void *)(uintptr_t)(labels + i), TRI_I32, n)));
        for (int64_t k = 0; k < n; k++)
            if (host[k] >= vocab)
                return tri_fail(TRI_INVALID, "label %d of row %lld: weight has %lld rows",
                                (int)host[k], (long long)(i + k), (long long)vocab);
        count += tri_count_trained(host, n);
    }
    *trained = count;
    return TRI_OK;
}

static enum tri_status fused_loss(struct tri_device *device, const struct tri_fused_loss *op,
                                  bool backward, double upstream, struct tri_tensor dx,
                                  struct tri_tensor x, const int32_t *labels,
                                  struct tri_loss_sum *loss)
{
    struct tri_head head;
    struct tri_matrix to, from;
    TRI_TRY(open_head(device, op, &head));
    TRI_TRY(tri_device_matrix(device, "x", x, true, &from));
    TRI_TRY(tri_device_matrix(device, "dx", dx, false, &to));
    int64_t rows = from.view.dim[0];
    TRI_TRY(check_shape("x", from.view, rows, head.w.dim[1], head.w.dtype));
    if (tri_view_present(to.view))
        TRI_TRY(check_shape("dx", to.view, rows, head.w.dim[1], head.w.dtype));
    /* Who does not want to wait is not made to, where looking at labels takes waiting. */
    struct tri_loss_sum sum = {0, 0};
    if (loss != NULL || device->is_host)
        TRI_TRY(check_labels(device, labels, rows, head.w.dim[0], &sum.count));
    TRI_TRY(device->exec.ops->zero(device->exec.stream, tri_view1(device->scalar, TRI_F64, 1)));
    TRI_TRY(tri_head_loss(&head, backward, upstream, device->scalar, to.view, from.view, labels));
    TRI_TRY(tri_device_matrix_done(device, &to));
    if (loss == NULL)
        return TRI_OK;
    TRI_TRY(device->exec.ops->read_scalars(device->exec.stream, &sum.sum, device->scalar, 1));
    *loss = sum;
    return TRI_OK;
}

enum tri_status tri_fused_loss_forward(struct tri_device *device, const struct tri_fused_loss *op,
                                       struct tri_tensor x, const int32_t *labels,
                                       struct tri_loss_sum *loss)
{
    size_t mark = tri_arena_mark(device->exec.arena);
    enum tri_status st = fused_loss(device, op, false, 0.0, tri_tensor_none(), x, labels, loss);
    tri_arena_release(device->exec.arena, mark);
    return st;
}

enum tri_status tri_fused_loss_backward(struct tri_device *device, const struct tri_fused_loss *op,
                                        double upstream, struct tri_tensor dx, struct tri_tensor x,
                                        const int32_t *labels, struct tri_loss_sum *loss)
{
    size_t mark = tri_arena_mark(device->exec.arena);
    enum tri_status st = fused_loss(device, op, true, upstream, dx, x, labels, loss);
    tri_arena_release(device->exec.arena, mark);
    return st;
}
