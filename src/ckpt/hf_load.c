/* Weights from a Hugging Face folder: first everything is compared with the model's table, then
 * the rows are handed over. */
#include "ckpt/hf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/hf_rows.h"
#include "tensor/half.h"

enum { SHAPE_ROOM = 200, NAME_ROOM = 80, NAMES_SHOWN = 3 };

/* Names for an error: the first few and how many there are. */
struct names {
    int64_t count;
    char text[NAMES_SHOWN * (NAME_ROOM + 2) + 8];
};

static void add_name(struct names *names, const char *name)
{
    size_t used = strlen(names->text);
    char shown[NAME_ROOM];
    if (names->count < NAMES_SHOWN)
        snprintf(names->text + used, sizeof names->text - used, "%s%s",
                 names->count == 0 ? "" : ", ", tri_st_name_text(name, shown, sizeof shown));
    else if (names->count == NAMES_SHOWN)
        snprintf(names->text + used, sizeof names->text - used, ", ...");
    names->count++;
}

/* The tensor that holds a parameter as a whole, or NULL. */
static const struct tri_hf_tensor *tensor_of_param(const struct tri_model *model, int param)
{
    for (int i = 0; i < model->num_hf; i++)
        if (model->hf[i].num_parts == 1 && model->hf[i].part[0].param == param)
            return &model->hf[i];
    return NULL;
}

static bool is_head(const char *name)
{
    return strcmp(name, "lm_head.weight") == 0 || strcmp(name, "embed_out.weight") == 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Constants that old versions of Transformers saved with the weights. */
static bool is_buffer(const struct tri_model *model, const char *name)
{
    if (ends_with(name, ".rotary_emb.inv_freq"))
        return true;
    return strcmp(model->arch.family, "gpt_neox") == 0 &&
           (ends_with(name, ".attention.bias") || ends_with(name, ".attention.masked_bias"));
}

/* A tied model may come with its head written out, but only if tying it changes nothing. */
static enum tri_status check_tied_head(const struct tri_model *model, const char *folder,
                                       const struct tri_st *st, const struct tri_st_tensor *head)
{
    const struct tri_hf_tensor *hf = tensor_of_param(model, model->outer_param[TRI_EMBED]);
    const struct tri_st_tensor *embed = hf == NULL ? NULL : tri_st_find(st, hf->name);
    if (embed == NULL) /* reported as missing */
        return TRI_OK;
    TRI_TRY(tri_st_check(st, head, 0, head->bytes));
    TRI_TRY(tri_st_check(st, embed, 0, embed->bytes));
    if (head->dtype == embed->dtype && head->bytes == embed->bytes &&
        memcmp(head->data, embed->data, head->bytes) == 0)
        return TRI_OK;
    return tri_fail(TRI_INVALID,
                    "%s: %s differs from %s, but config.json says that they are one "
                    "(tie_word_embeddings): set tie_word_embeddings to false to train both",
                    folder, head->name, hf->name);
}

static int by_hf_name(const void *a, const void *b)
{
    const struct tri_hf_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int name_against_hf(const void *name, const void *member)
{
    const struct tri_hf_tensor *const *hf = member;
    return strcmp(name, (*hf)->name);
}

/* List the tensors of the files that the model has no place for. */
static enum tri_status find_surplus(const struct tri_model *model, const char *folder,
                                    const struct tri_st *st, struct names *surplus)
{
    const struct tri_hf_tensor **sorted = calloc((size_t)model->num_hf + 1, sizeof *sorted);
    if (sorted == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare the weights of %s", folder);
    for (int i = 0; i < model->num_hf; i++)
        sorted[i] = &model->hf[i];
    qsort(sorted, (size_t)model->num_hf, sizeof *sorted, by_hf_name);

    enum tri_status status = TRI_OK;
    for (int64_t i = 0; i < tri_st_count(st); i++) {
        const struct tri_st_tensor *t = tri_st_at(st, i);
        if (bsearch(t->name, sorted, (size_t)model->num_hf, sizeof *sorted, name_against_hf) !=
            NULL)
            continue;
        if (model->arch.tied_embeddings && is_head(t->name))
            TRI_TRY_GOTO(status, check_tied_head(model, folder, st, t), free_sorted);
        else if (!is_buffer(model, t->name))
            add_name(surplus, t->name);
    }

free_sorted:
    free(sorted);
    return status;
}

static enum tri_status check_tensor(const char *folder, const struct tri_hf_tensor *hf,
                                    const struct tri_st_tensor *t)
{
    bool same = t->num_dims == hf->num_dims;
    for (int i = 0; same && i < hf->num_dims; i++)
        same = t->dim[i] == hf->dim[i];
    if (!same) {
        char found[SHAPE_ROOM], wanted[SHAPE_ROOM];
        return tri_fail(TRI_INVALID, "%s: tensor %s has shape %s, but config.json asks for %s",
                        folder, hf->name,
                        tri_st_shape_text(t->num_dims, t->dim, found, sizeof found),
                        tri_st_shape_text(hf->num_dims, hf->dim, wanted, sizeof wanted));
    }
    if (t->dtype != TRI_F32 && t->dtype != TRI_BF16 && t->dtype != TRI_F16 && t->dtype != TRI_F64)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: tensor %s is %s: quantized weights are not supported, use a model in "
                        "float32, bfloat16 or float16",
                        folder, hf->name, tri_dtype_name(t->dtype));
    return TRI_OK;
}

static enum tri_status check_all(const struct tri_model *model, const char *folder,
                                 const struct tri_st *st)
{
    struct names missing = {0}, surplus = {0};
    for (int i = 0; i < model->num_hf; i++)
        if (tri_st_find(st, model->hf[i].name) == NULL)
            add_name(&missing, model->hf[i].name);
    TRI_TRY(find_surplus(model, folder, st, &surplus));

    if (missing.count > 0 && surplus.count > 0)
        return tri_fail(TRI_INVALID,
                        "%s: the weights do not belong to config.json: %" PRId64
                        " missing (%s), %" PRId64 " without a place in the model (%s)",
                        folder, missing.count, missing.text, surplus.count, surplus.text);
    if (missing.count > 0)
        return tri_fail(
            TRI_INVALID,
            "%s: %" PRId64 " of the %d tensors that config.json asks for %s missing: %s", folder,
            missing.count, model->num_hf, missing.count == 1 ? "is" : "are", missing.text);
    if (surplus.count > 0)
        return tri_fail(TRI_INVALID,
                        "%s: %" PRId64 " tensor%s no place in the model that config.json "
                        "describes: %s",
                        folder, surplus.count, surplus.count == 1 ? " has" : "s have",
                        surplus.text);
    for (int i = 0; i < model->num_hf; i++)
        TRI_TRY(check_tensor(folder, &model->hf[i], tri_st_find(st, model->hf[i].name)));
    return TRI_OK;
}

/* Widen or narrow `count` elements from `index` on to float32. The file may lack alignment. */
static void to_float(const struct tri_st_tensor *t, int64_t index, int64_t count, float *out)
{
    const unsigned char *p =
        (const unsigned char *)t->data + (size_t)index * tri_dtype_bytes(t->dtype);
    uint16_t half;
    double wide;
    switch (t->dtype) {
    case TRI_BF16:
        for (int64_t i = 0; i < count; i++) {
            memcpy(&half, p + 2 * i, sizeof half);
            out[i] = tri_bf16_to_float(half);
        }
        break;
    case TRI_F16:
        for (int64_t i = 0; i < count; i++) {
            memcpy(&half, p + 2 * i, sizeof half);
            out[i] = tri_f16_to_float(half);
        }
        break;
    case TRI_F64:
        for (int64_t i = 0; i < count; i++) {
            memcpy(&wide, p + 8 * i, sizeof wide);
            out[i] = (float)wide;
        }
        break;
    default: /* TRI_F32: check_tensor lets no other pass */
        memcpy(out, p, (size_t)count * sizeof *out);
        break;
    }
}

/* Piece by piece, so that a piece is still near when its hash was taken. */
static enum tri_status load_tensor(const struct tri_model *model, int hf, const struct tri_st *st,
                                   float *piece, tri_rows_sink *sink, void *ctx)
{
    const struct tri_hf_tensor *tensor = &model->hf[hf];
    const struct tri_st_tensor *t = tri_st_find(st, tensor->name);
    bool as_it_is = t->dtype == TRI_F32 && (uintptr_t)t->data % _Alignof(float) == 0;
    int64_t width = tri_hf_width(tensor), at_once = tri_hf_rows_at_once(tensor, TRI_HF_PIECE);
    size_t row_bytes = (size_t)width * tri_dtype_bytes(t->dtype);
    for (int64_t row = 0; row < tensor->dim[0]; row += at_once) {
        int64_t rows = tensor->dim[0] - row < at_once ? tensor->dim[0] - row : at_once;
        TRI_TRY(tri_st_check(st, t, (size_t)row * row_bytes, (size_t)rows * row_bytes));
        const float *data = (const float *)t->data + row * width;
        if (!as_it_is) {
            to_float(t, row * width, rows * width, piece);
            data = piece;
        }
        TRI_TRY(tri_hf_scatter_rows(model, hf, row, rows, data, sink, ctx));
    }
    tri_st_forget(t);
    return TRI_OK;
}

enum tri_status tri_hf_load(const struct tri_model *model, const char *folder, tri_rows_sink *sink,
                            void *ctx)
{
    struct tri_st *st = NULL;
    TRI_TRY(tri_st_open(folder, &st));
    enum tri_status status;
    float *piece = NULL;
    TRI_TRY_GOTO(status, check_all(model, folder, st), close_st);

    int64_t elements = tri_hf_piece_room(model);
    piece = malloc((size_t)elements * sizeof *piece);
    if (piece == NULL) {
        status = tri_fail(TRI_NOMEM, "no memory for %" PRId64 " weights of %s", elements, folder);
        goto close_st;
    }
    for (int i = 0; i < model->num_hf; i++)
        TRI_TRY_GOTO(status, load_tensor(model, i, st, piece, sink, ctx), free_piece);

free_piece:
    free(piece);
close_st:
    tri_st_close(st);
    return status;
}
