/* The plain kernels: what every op means, written to be read.
 *
 * They are the oracle that faster kernels are tested against and the textbook for whoever writes
 * one. Storage is any floating dtype; all arithmetic is float64; one thread; sums run in index
 * order; every shape and stride of the contract (backend/backend.h) is allowed. Streams are
 * ignored: each op has run when it returns.
 */
#ifndef TRI_BACKEND_CPU_REFERENCE_H
#define TRI_BACKEND_CPU_REFERENCE_H

#include "backend/backend.h"
#include "tensor/half.h"

/* Element `offset` of a tensor as a float64. */
static inline double tri_reference_get(struct tri_view v, int64_t offset)
{
    switch (v.dtype) {
    case TRI_F32:
        return ((const float *)v.data)[offset];
    case TRI_F64:
        return ((const double *)v.data)[offset];
    case TRI_BF16:
        return tri_bf16_to_float(((const uint16_t *)v.data)[offset]);
    case TRI_F16:
        return tri_f16_to_float(((const uint16_t *)v.data)[offset]);
    case TRI_I32:
    case TRI_I64:
    case TRI_U8:
        break; /* callers refuse integers */
    }
    return NAN;
}

/* Round a float64 to the tensor's dtype, to nearest even, and store it as element `offset`. */
static inline void tri_reference_set(struct tri_view v, int64_t offset, double value)
{
    switch (v.dtype) {
    case TRI_F32:
        ((float *)v.data)[offset] = (float)value;
        break;
    case TRI_F64:
        ((double *)v.data)[offset] = value;
        break;
    case TRI_BF16:
        ((uint16_t *)v.data)[offset] = tri_bf16_from_double(value);
        break;
    case TRI_F16:
        ((uint16_t *)v.data)[offset] = tri_f16_from_double(value);
        break;
    case TRI_I32:
    case TRI_I64:
    case TRI_U8:
        break; /* callers refuse integers */
    }
}

static inline void tri_reference_add(struct tri_view v, int64_t offset, double value)
{
    tri_reference_set(v, offset, tri_reference_get(v, offset) + value);
}

static inline bool tri_reference_floating(struct tri_view v)
{
    return v.dtype == TRI_F32 || v.dtype == TRI_F64 || v.dtype == TRI_BF16 || v.dtype == TRI_F16;
}

/* A view as a list of rows: width of a row (the last dimension), how many there are, and the
 * offset of the first element of row r. */
static inline int64_t tri_reference_width(struct tri_view v)
{
    return v.dim[v.num_dims - 1];
}

static inline int64_t tri_reference_rows(struct tri_view v)
{
    int64_t rows = 1;
    for (int i = 0; i < v.num_dims - 1; i++)
        rows *= v.dim[i];
    return rows;
}

static inline int64_t tri_reference_row(struct tri_view v, int64_t r)
{
    if (v.num_dims == 1)
        return 0;
    if (v.num_dims == 2)
        return r * v.stride[0];
    return r / v.dim[1] * v.stride[0] + r % v.dim[1] * v.stride[1];
}

/* `count` neighbouring elements from `offset` as float64: a pointer into a float64 tensor, or their
 * conversions in `buffer`. */
const double *tri_reference_load(struct tri_view v, int64_t offset, int64_t count, double *buffer);

/* TRI_OK, or TRI_UNSUPPORTED naming the op when a present view is not floating. */
enum tri_status tri_reference_check(const char *op, const struct tri_view *views, int count);

/* ---- the ops; contracts in backend/backend.h ------------------------------------------------- */

/* move.c */
enum tri_status tri_reference_copy(struct tri_stream *s, struct tri_view dst, struct tri_view src);
enum tri_status tri_reference_zero(struct tri_stream *s, struct tri_view dst);
enum tri_status tri_reference_accumulate(struct tri_stream *s, struct tri_view dst,
                                         struct tri_view src);
enum tri_status tri_reference_upload(struct tri_stream *s, struct tri_view dst, const void *host);
enum tri_status tri_reference_download(struct tri_stream *s, void *host, struct tri_view src);
enum tri_status tri_reference_read_scalars(struct tri_stream *s, double *host, const double *src,
                                           int64_t n);
enum tri_status tri_reference_sync(struct tri_stream *s);

/* embed.c */
enum tri_status tri_reference_embed_forward(struct tri_stream *s, struct tri_view y,
                                            const int32_t *ids, struct tri_view table);
enum tri_status tri_reference_embed_backward(struct tri_stream *s, struct tri_view dtable,
                                             const int32_t *ids, struct tri_view dy);

/* norm.c */
enum tri_status tri_reference_norm_forward(struct tri_stream *s, const struct tri_norm *op,
                                           struct tri_view y, struct tri_view x, struct tri_view w,
                                           struct tri_view b);
enum tri_status tri_reference_norm_backward(struct tri_stream *s, const struct tri_norm *op,
                                            bool accumulate, struct tri_view dx, struct tri_view dw,
                                            struct tri_view db, struct tri_view dy,
                                            struct tri_view x, struct tri_view w);

/* linear.c */
enum tri_status tri_reference_linear_forward(struct tri_stream *s, bool accumulate,
                                             struct tri_view y, struct tri_view x,
                                             struct tri_view w, struct tri_view b);
enum tri_status tri_reference_linear_backward_x(struct tri_stream *s, bool accumulate,
                                                struct tri_view dx, struct tri_view dy,
                                                struct tri_view w);
enum tri_status tri_reference_linear_backward_w(struct tri_stream *s, struct tri_view dw,
                                                struct tri_view db, struct tri_view dy,
                                                struct tri_view x);

/* rope.c */
enum tri_status tri_reference_rope_table(struct tri_stream *s, struct tri_view table,
                                         const int64_t *pos, const double *inv_freq, double scale);
enum tri_status tri_reference_rope(struct tri_stream *s, bool inverse, struct tri_view y,
                                   struct tri_view x, struct tri_view table);

/* act.c */
enum tri_status tri_reference_act_forward(struct tri_stream *s, enum tri_activation act,
                                          struct tri_view y, struct tri_view gate,
                                          struct tri_view up);
enum tri_status tri_reference_act_backward(struct tri_stream *s, enum tri_activation act,
                                           struct tri_view dgate, struct tri_view dup,
                                           struct tri_view dy, struct tri_view gate,
                                           struct tri_view up);

/* attn.c */
size_t tri_reference_attn_workspace(struct tri_stream *s, const struct tri_attn *op, bool backward,
                                    struct tri_view q, struct tri_view k);
enum tri_status tri_reference_attn_forward(struct tri_stream *s, const struct tri_attn *op,
                                           struct tri_view o, struct tri_view lse,
                                           struct tri_view q, struct tri_view k, struct tri_view v,
                                           void *workspace);
enum tri_status tri_reference_attn_backward(struct tri_stream *s, const struct tri_attn *op,
                                            bool accumulate_dq, struct tri_view dq,
                                            struct tri_view dk, struct tri_view dv,
                                            struct tri_view dout, struct tri_view q,
                                            struct tri_view k, struct tri_view v, struct tri_view o,
                                            struct tri_view lse, void *workspace);

/* loss.c */
enum tri_status tri_reference_cross_entropy(struct tri_stream *s, bool backward, double scale,
                                            double *loss_sum, struct tri_view logits,
                                            const int32_t *labels);

/* optim.c */
enum tri_status tri_reference_adamw(struct tri_stream *s, const struct tri_adamw *op,
                                    struct tri_view p, struct tri_view m, struct tri_view v,
                                    struct tri_view w, struct tri_view g);
enum tri_status tri_reference_sum_squares(struct tri_stream *s, double *sum, struct tri_view x);

#endif
