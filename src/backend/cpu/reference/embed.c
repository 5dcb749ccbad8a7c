/* Token embedding: a row of the table for each token. */
#include "backend/cpu/reference/reference.h"

#include <assert.h>

enum tri_status tri_reference_embed_forward(struct tri_stream *s, struct tri_view y,
                                            const int32_t *ids, struct tri_view table)
{
    (void)s;
    assert(y.dim[1] == table.dim[1]);
    TRI_TRY(tri_reference_check("embed_forward", (struct tri_view[]){y, table}, 2));
    for (int64_t t = 0; t < y.dim[0]; t++) {
        assert(ids[t] >= 0 && ids[t] < table.dim[0]);
        int64_t to = t * y.stride[0], from = ids[t] * table.stride[0];
        for (int64_t e = 0; e < y.dim[1]; e++)
            tri_reference_set(y, to + e, tri_reference_get(table, from + e));
    }
    return TRI_OK;
}

enum tri_status tri_reference_embed_backward(struct tri_stream *s, struct tri_view dtable,
                                             const int32_t *ids, struct tri_view dy)
{
    (void)s;
    assert(dy.dim[1] == dtable.dim[1]);
    TRI_TRY(tri_reference_check("embed_backward", (struct tri_view[]){dtable, dy}, 2));
    for (int64_t t = 0; t < dy.dim[0]; t++) {
        assert(ids[t] >= 0 && ids[t] < dtable.dim[0]);
        int64_t to = ids[t] * dtable.stride[0], from = t * dy.stride[0];
        for (int64_t e = 0; e < dy.dim[1]; e++)
            tri_reference_add(dtable, to + e, tri_reference_get(dy, from + e));
    }
    return TRI_OK;
}
