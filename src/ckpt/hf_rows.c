#include "ckpt/hf_rows.h"

int64_t tri_hf_width(const struct tri_hf_tensor *hf)
{
    return hf->num_dims == 2 ? hf->dim[1] : 1;
}

int64_t tri_hf_rows_at_once(const struct tri_hf_tensor *hf, int64_t elements)
{
    int64_t rows = elements / tri_hf_width(hf);
    if (rows < 1)
        rows = 1;
    return rows < hf->dim[0] ? rows : hf->dim[0];
}

/* Rows of one block of a part that lie in [begin, begin + rows): `from` counts in the tensor, `row`
 * in the parameter. */
struct overlap {
    int64_t from, row, rows;
};

static struct overlap block_overlap(const struct tri_hf_part *part, int64_t block, int64_t begin,
                                    int64_t rows)
{
    int64_t src = part->src_row + block * part->src_step;
    int64_t from = src > begin ? src : begin;
    int64_t end = src + part->rows < begin + rows ? src + part->rows : begin + rows;
    return (struct overlap){from, part->dst_row + block * part->dst_step + from - src, end - from};
}

enum tri_status tri_hf_gather_rows(const struct tri_model *model, int hf, int64_t begin,
                                   int64_t rows, tri_rows_source *source, void *ctx, float *out)
{
    const struct tri_hf_tensor *tensor = &model->hf[hf];
    int64_t width = tri_hf_width(tensor);
    for (int p = 0; p < tensor->num_parts; p++) {
        const struct tri_hf_part *part = &tensor->part[p];
        for (int64_t b = 0; b < part->blocks; b++) {
            struct overlap o = block_overlap(part, b, begin, rows);
            if (o.rows > 0)
                TRI_TRY(source(ctx, part->param, o.row, o.rows, out + (o.from - begin) * width));
        }
    }
    return TRI_OK;
}

enum tri_status tri_hf_scatter_rows(const struct tri_model *model, int hf, int64_t begin,
                                    int64_t rows, const float *data, tri_rows_sink *sink, void *ctx)
{
    const struct tri_hf_tensor *tensor = &model->hf[hf];
    int64_t width = tri_hf_width(tensor);
    for (int p = 0; p < tensor->num_parts; p++) {
        const struct tri_hf_part *part = &tensor->part[p];
        for (int64_t b = 0; b < part->blocks; b++) {
            struct overlap o = block_overlap(part, b, begin, rows);
            if (o.rows > 0)
                TRI_TRY(sink(ctx, part->param, o.row, o.rows, data + (o.from - begin) * width));
        }
    }
    return TRI_OK;
}

enum tri_status tri_hf_gather(const struct tri_model *model, int hf, tri_rows_source *source,
                              void *ctx, float *out)
{
    return tri_hf_gather_rows(model, hf, 0, model->hf[hf].dim[0], source, ctx, out);
}

enum tri_status tri_hf_scatter(const struct tri_model *model, int hf, const float *data,
                               tri_rows_sink *sink, void *ctx)
{
    return tri_hf_scatter_rows(model, hf, 0, model->hf[hf].dim[0], data, sink, ctx);
}

int64_t tri_hf_piece_room(const struct tri_model *model)
{
    int64_t elements = 1;
    for (int i = 0; i < model->num_hf; i++) {
        const struct tri_hf_tensor *hf = &model->hf[i];
        int64_t need = tri_hf_rows_at_once(hf, TRI_HF_PIECE) * tri_hf_width(hf);
        elements = need > elements ? need : elements;
    }
    return elements;
}

enum tri_status tri_hf_gather_pieces(const struct tri_model *model, int hf, tri_rows_source *source,
                                     void *ctx, float *room, tri_hf_visit *visit, void *visit_ctx)
{
    const struct tri_hf_tensor *tensor = &model->hf[hf];
    int64_t at_once = tri_hf_rows_at_once(tensor, TRI_HF_PIECE);
    for (int64_t row = 0; row < tensor->dim[0]; row += at_once) {
        int64_t rows = tensor->dim[0] - row < at_once ? tensor->dim[0] - row : at_once;
        TRI_TRY(tri_hf_gather_rows(model, hf, row, rows, source, ctx, room));
        if (visit != NULL)
            TRI_TRY(visit(visit_ctx, tensor, row, room, rows * tri_hf_width(tensor)));
    }
    return TRI_OK;
}
