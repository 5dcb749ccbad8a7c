/* Pieces of Hugging Face tensors: so that neither reading nor writing holds a whole one. */
#ifndef TRI_CKPT_HF_ROWS_H
#define TRI_CKPT_HF_ROWS_H

#include "ckpt/hf.h"

/* Elements in a row: a 1-D tensor has rows of one element. */
int64_t tri_hf_width(const struct tri_hf_tensor *hf);

/* Rows to take at a time so that a piece has about `elements` elements; at least one. */
int64_t tri_hf_rows_at_once(const struct tri_hf_tensor *hf, int64_t elements);

/* tri_hf_gather and tri_hf_scatter for rows [begin, begin + rows) of the tensor only; `out` and
 * `data` hold just these. */
enum tri_status tri_hf_gather_rows(const struct tri_model *model, int hf, int64_t begin,
                                   int64_t rows, tri_rows_source *source, void *ctx, float *out);
enum tri_status tri_hf_scatter_rows(const struct tri_model *model, int hf, int64_t begin,
                                    int64_t rows, const float *data, tri_rows_sink *sink,
                                    void *ctx);

/* Elements of the pieces that tensors are read and written in. */
enum { TRI_HF_PIECE = 1 << 20 };

/* Room for a piece of any tensor of the model, in elements. */
int64_t tri_hf_piece_room(const struct tri_model *model);

/* Gather a tensor piece by piece, in order, into `room`, and hand each to `visit` (or NULL). The
 * source is asked for the same rows whatever `visit` does. */
typedef enum tri_status tri_hf_visit(void *ctx, const struct tri_hf_tensor *hf, int64_t row,
                                     const float *piece, int64_t count);
enum tri_status tri_hf_gather_pieces(const struct tri_model *model, int hf, tri_rows_source *source,
                                     void *ctx, float *room, tri_hf_visit *visit, void *visit_ctx);

#endif
