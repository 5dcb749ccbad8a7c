/* Linear layers. Forward and both gradients are one product, C(i,j) = sum over l of A(i,l) B(j,l),
 * read through different strides:
 *   y  = x w^T      A = x     B = w       l over K
 *   dx = dy w       A = dy    B = w^T     l over N
 *   dw = dy^T x     A = dy^T  B = x^T     l over T
 */
#include "backend/cpu/reference/reference.h"
#include "base/minmax.h"

#include <assert.h>

/* A matrix whose element (i, j) is at offset i * row + j * col of a tensor. */
struct matrix {
    struct tri_view view;
    int64_t row;
    int64_t col;
};

static struct matrix plain(struct tri_view v)
{
    return (struct matrix){v, v.stride[0], 1};
}

static struct matrix transposed(struct tri_view v)
{
    return (struct matrix){v, 1, v.stride[0]};
}

/* Conversion to float64 costs more than a product, so operands are converted tile by tile, each
 * tile used TILE times. */
enum { TILE = 16, DEPTH = 128 };

static void load_tile(double tile[TILE][DEPTH], struct matrix m, int64_t i, int64_t rows, int64_t j,
                      int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            tile[r][c] = tri_reference_get(m.view, (i + r) * m.row + (j + c) * m.col);
}

/* C(m,n) = or += A(m,depth) B(n,depth)^T + bias(n); each sum runs over l in order. */
static void product(bool accumulate, struct tri_view c, struct matrix a, struct matrix b,
                    struct tri_view bias, int64_t m, int64_t n, int64_t depth)
{
    double a_tile[TILE][DEPTH], b_tile[TILE][DEPTH];
    for (int64_t i = 0; i < m; i += TILE) {
        int64_t rows = tri_min(TILE, m - i);
        for (int64_t j = 0; j < n; j += TILE) {
            int64_t cols = tri_min(TILE, n - j);
            double sum[TILE][TILE] = {{0}};
            for (int64_t l = 0; l < depth; l += DEPTH) {
                int64_t part = tri_min(DEPTH, depth - l);
                load_tile(a_tile, a, i, rows, l, part);
                load_tile(b_tile, b, j, cols, l, part);
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t q = 0; q < cols; q++)
                        for (int64_t d = 0; d < part; d++)
                            sum[r][q] += a_tile[r][d] * b_tile[q][d];
            }
            for (int64_t r = 0; r < rows; r++)
                for (int64_t q = 0; q < cols; q++) {
                    int64_t at = (i + r) * c.stride[0] + j + q;
                    double value = sum[r][q];
                    if (tri_view_present(bias))
                        value += tri_reference_get(bias, j + q);
                    if (accumulate)
                        value += tri_reference_get(c, at);
                    tri_reference_set(c, at, value);
                }
        }
    }
}

enum tri_status tri_reference_linear_forward(struct tri_stream *s, bool accumulate,
                                             struct tri_view y, struct tri_view x,
                                             struct tri_view w, struct tri_view b)
{
    (void)s;
    assert(y.dim[0] == x.dim[0] && y.dim[1] == w.dim[0] && x.dim[1] == w.dim[1]);
    TRI_TRY(tri_reference_check("linear_forward", (struct tri_view[]){y, x, w, b}, 4));
    product(accumulate, y, plain(x), plain(w), b, y.dim[0], y.dim[1], x.dim[1]);
    return TRI_OK;
}

enum tri_status tri_reference_linear_backward_x(struct tri_stream *s, bool accumulate,
                                                struct tri_view dx, struct tri_view dy,
                                                struct tri_view w)
{
    (void)s;
    assert(dx.dim[0] == dy.dim[0] && dy.dim[1] == w.dim[0] && dx.dim[1] == w.dim[1]);
    TRI_TRY(tri_reference_check("linear_backward_x", (struct tri_view[]){dx, dy, w}, 3));
    product(accumulate, dx, plain(dy), transposed(w), tri_view_none(), dx.dim[0], dx.dim[1],
            dy.dim[1]);
    return TRI_OK;
}

enum tri_status tri_reference_linear_backward_w(struct tri_stream *s, struct tri_view dw,
                                                struct tri_view db, struct tri_view dy,
                                                struct tri_view x)
{
    (void)s;
    assert(dw.dim[0] == dy.dim[1] && dw.dim[1] == x.dim[1] && dy.dim[0] == x.dim[0]);
    TRI_TRY(tri_reference_check("linear_backward_w", (struct tri_view[]){dw, db, dy, x}, 4));
    product(true, dw, transposed(dy), transposed(x), tri_view_none(), dw.dim[0], dw.dim[1],
            dy.dim[0]);
    if (!tri_view_present(db))
        return TRI_OK;
    for (int64_t j = 0; j < dy.dim[1]; j++) {
        double sum = 0;
        for (int64_t t = 0; t < dy.dim[0]; t++)
            sum += tri_reference_get(dy, t * dy.stride[0] + j);
        tri_reference_add(db, j, sum);
    }
    return TRI_OK;
}
