/* Rotary position embedding (Su et al. 2021): pairs of elements turn by an angle that grows with
 * the token's position. */
#include "backend/cpu/reference/reference.h"

#include <assert.h>
#include <math.h>

enum tri_status tri_reference_rope_table(struct tri_stream *s, struct tri_view table,
                                         const int64_t *pos, const double *inv_freq, double scale)
{
    (void)s;
    assert(table.dim[1] % 2 == 0);
    TRI_TRY(tri_reference_check("rope_table", &table, 1));
    int64_t half = table.dim[1] / 2;
    for (int64_t t = 0; t < table.dim[0]; t++) {
        int64_t row = t * table.stride[0];
        for (int64_t j = 0; j < half; j++) {
            /* angle + rest is the exact product: at position 2^40 the rounding of the product
             * alone would be 6e-5 rad. */
            double angle = (double)pos[t] * inv_freq[j];
            double rest = fma((double)pos[t], inv_freq[j], -angle);
            double c = cos(angle) * cos(rest) - sin(angle) * sin(rest);
            double d = sin(angle) * cos(rest) + cos(angle) * sin(rest);
            tri_reference_set(table, row + j, scale * c);
            tri_reference_set(table, row + half + j, scale * d);
        }
    }
    return TRI_OK;
}

/* (a, b) becomes (a cos - b sin, b cos + a sin); the transpose, which is the backward, turns the
 * other way. */
enum tri_status tri_reference_rope(struct tri_stream *s, bool inverse, struct tri_view y,
                                   struct tri_view x, struct tri_view table)
{
    (void)s;
    assert(tri_view_same_shape(y, x) && table.dim[0] == x.dim[0] && table.dim[1] <= x.dim[2]);
    TRI_TRY(tri_reference_check("rope", (struct tri_view[]){y, x, table}, 3));
    int64_t half = table.dim[1] / 2;
    for (int64_t t = 0; t < x.dim[0]; t++) {
        for (int64_t h = 0; h < x.dim[1]; h++) {
            int64_t from = t * x.stride[0] + h * x.stride[1];
            int64_t to = t * y.stride[0] + h * y.stride[1];
            for (int64_t j = 0; j < half; j++) {
                double c = tri_reference_get(table, t * table.stride[0] + j);
                double d = tri_reference_get(table, t * table.stride[0] + half + j);
                double a = tri_reference_get(x, from + j);
                double b = tri_reference_get(x, from + half + j);
                if (inverse)
                    d = -d;
                tri_reference_set(y, to + j, a * c - b * d);
                tri_reference_set(y, to + half + j, b * c + a * d);
            }
            for (int64_t j = 2 * half; j < x.dim[2]; j++)
                tri_reference_set(y, to + j, tri_reference_get(x, from + j));
        }
    }
    return TRI_OK;
}
