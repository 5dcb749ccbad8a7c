/* The owner's side: is a sample complete, where are its documents, what does each token predict. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "data/adapter/private.h"

struct tri_field tri_field_split(const char *name, struct tri_tensor tensor, int dim)
{
    return (struct tri_field){.name = name, .tensor = tensor, .split_dim = dim};
}

struct tri_field tri_field_whole(const char *name, struct tri_tensor tensor)
{
    return (struct tri_field){.name = name, .tensor = tensor, .split_dim = -1};
}

struct tri_field tri_field_blob(const char *name, const void *data, size_t bytes)
{
    return (struct tri_field){.name = name,
                              .tensor = tri_tensor_none(),
                              .split_dim = -1,
                              .blob = data,
                              .blob_bytes = bytes};
}

static const struct tri_field *find(const struct tri_sample *sample, const char *name)
{
    for (int i = 0; i < sample->num_fields; i++)
        if (strcmp(sample->fields[i].name, name) == 0)
            return &sample->fields[i];
    return NULL;
}

static enum tri_status check_field(const struct tri_sample *sample, int i)
{
    const struct tri_field *f = &sample->fields[i];
    if (f->name == NULL || f->name[0] == '\0' || strlen(f->name) >= TRI_FIELD_NAME)
        return tri_fail(TRI_INVALID, "field %d has no name of 1 to %d bytes", i,
                        TRI_FIELD_NAME - 1);
    if (find(sample, f->name) != f)
        return tri_fail(TRI_INVALID, "two fields have the name %s", f->name);
    if (strcmp(f->name, "shift_labels") == 0)
        return tri_fail(TRI_INVALID,
                        "shift_labels are made here, after all of a sequence is known: "
                        "give labels, which are not shifted");
    if (f->blob != NULL || f->tensor.num_dims == 0)
        return TRI_OK;
    if (f->tensor.num_dims < 1 || f->tensor.num_dims > TRI_TENSOR_DIMS ||
        f->split_dim >= f->tensor.num_dims)
        return tri_fail(TRI_INVALID, "%s has %d dimensions, of which %d is cut", f->name,
                        f->tensor.num_dims, f->split_dim);
    return TRI_OK;
}

static enum tri_status make_room(struct tri_prepared *p, int64_t tokens)
{
    if (tokens <= p->room)
        return TRI_OK;
    tri_prepared_free(p);
    size_t n = (size_t)tokens;
    p->ids = malloc(n * sizeof *p->ids);
    p->labels = malloc(n * sizeof *p->labels);
    p->positions = malloc(n * sizeof *p->positions);
    p->doc_begin = malloc((n + 1) * sizeof *p->doc_begin);
    p->doc_position = malloc(n * sizeof *p->doc_position);
    if (!p->ids || !p->labels || !p->positions || !p->doc_begin || !p->doc_position) {
        tri_prepared_free(p);
        return tri_fail(TRI_NOMEM, "no memory for a sample of %" PRId64 " tokens", tokens);
    }
    p->room = tokens;
    return TRI_OK;
}

void tri_prepared_free(struct tri_prepared *p)
{
    free(p->ids);
    free(p->labels);
    free(p->positions);
    free(p->doc_begin);
    free(p->doc_position);
    memset(p, 0, sizeof *p);
}

/* The field of a number for each token: (S) or (B, S); (S) and (1, S) serve every row if
 * `one_for_all`. */
static enum tri_status get_tokens(const struct tri_sample *sample, const char *name,
                                  const struct tri_prepared *p, bool one_for_all, const char *hint,
                                  struct tri_tensor *out)
{
    const struct tri_field *f = find(sample, name);
    if (f == NULL || f->tensor.data == NULL)
        return tri_fail(TRI_INVALID, "there are no %s: %s", name, hint);
    struct tri_tensor t = f->tensor;
    if (t.dtype != TRI_I32 && t.dtype != TRI_I64 &&
        !(t.dtype == TRI_U8 && strcmp(name, "attention_mask") == 0))
        return tri_fail(TRI_INVALID, "%s are %s, they must be int32 or int64", name,
                        tri_dtype_name(t.dtype));
    if (t.num_dims > 2)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s have %d dimensions, one or two are possible: (S) or (B, S)", name,
                        t.num_dims);
    if (t.num_dims == 1) {
        t.num_dims = 2;
        t.dim[1] = t.dim[0];
        t.stride[1] = t.stride[0];
        t.dim[0] = 1;
    }
    if (t.dim[0] == 1 && one_for_all && p->rows > 1) {
        t.dim[0] = p->rows;
        t.stride[0] = 0;
    }
    if (p->rows > 0 && (t.dim[0] != p->rows || t.dim[1] != p->tokens))
        return tri_fail(TRI_INVALID,
                        "%s are %" PRId64 " x %" PRId64 ", input_ids %" PRId64 " x %" PRId64, name,
                        t.dim[0], t.dim[1], p->rows, p->tokens);
    if (f->split_dim != f->tensor.num_dims - 1)
        return tri_fail(TRI_INVALID, "%s are cut along dimension %d, not along their last one",
                        name, f->split_dim);
    *out = t;
    return TRI_OK;
}

static int64_t number_at(const struct tri_tensor *t, int64_t row, int64_t token)
{
    int64_t i = row * t->stride[0] + token * t->stride[1];
    return t->dtype == TRI_I64   ? ((const int64_t *)t->data)[i]
           : t->dtype == TRI_I32 ? ((const int32_t *)t->data)[i]
                                 : ((const uint8_t *)t->data)[i];
}

static enum tri_status too_large(const char *name, int64_t value, int64_t row, int64_t token)
{
    return tri_fail(TRI_INVALID, "%s: %" PRId64 " at row %" PRId64 ", token %" PRId64, name, value,
                    row, token);
}

static enum tri_status copy_row(struct tri_prepared *p, const struct tri_tensor *ids,
                                const struct tri_tensor *labels, const struct tri_tensor *positions,
                                const struct tri_tensor *mask, int64_t row)
{
    for (int64_t t = 0; t < p->tokens; t++) {
        int64_t i = row * p->tokens + t;
        int64_t id = number_at(ids, row, t);
        int64_t label = number_at(labels, row, t);
        if (id < 0 || id > INT32_MAX)
            return too_large("input_ids", id, row, t);
        if (label > INT32_MAX)
            return too_large("labels", label, row, t);
        if (label < 0 || (mask->data != NULL && number_at(mask, row, t) == 0))
            label = TRI_IGNORE_LABEL;
        p->ids[i] = (int32_t)id;
        p->labels[i] = (int32_t)label;
        p->positions[i] = number_at(positions, row, t);
    }
    return TRI_OK;
}

/* Attention knows documents, not masks: what a mask hides must not be before anything visible of
 * its document. */
static enum tri_status check_mask(const struct tri_tensor *mask, const struct tri_batch *row,
                                  int64_t index)
{
    for (int64_t d = 0; d < row->num_docs && mask->data != NULL; d++) {
        bool hidden = false;
        for (int64_t t = row->doc_begin[d]; t < row->doc_begin[d + 1]; t++) {
            if (number_at(mask, index, t) == 0)
                hidden = true;
            else if (hidden)
                return tri_fail(TRI_INVALID,
                                "attention_mask hides tokens before token %" PRId64
                                " of row %" PRId64
                                " in its document, and attention would see them: let position_ids "
                                "restart at that token, or pad on the right",
                                t, index);
        }
    }
    return TRI_OK;
}

/* Documents and shifted labels of a row. */
static enum tri_status finish_row(struct tri_prepared *p, const struct tri_tensor *mask,
                                  int64_t index)
{
    int64_t begin = index * p->tokens;
    struct tri_batch row = {.num_tokens = p->tokens,
                            .ids = p->ids + begin,
                            .labels = p->labels + begin,
                            .positions = p->positions + begin,
                            .doc_begin = p->doc_begin + p->num_docs};
    TRI_TRY(tri_batch_finish(&row));
    TRI_TRY(check_mask(mask, &row, index));
    for (int64_t d = 0; d < row.num_docs; d++) {
        p->doc_position[p->num_docs + d] = row.positions[row.doc_begin[d]];
        row.doc_begin[d] += begin;
    }
    p->num_docs += row.num_docs;
    p->doc_begin[p->num_docs] = begin + p->tokens;
    p->trained += row.num_trained;
    return TRI_OK;
}

/* A field cut along the tokens of a sample must have as many. */
static enum tri_status check_length(const struct tri_field *f, int64_t tokens)
{
    if (f->tensor.num_dims > 0 && f->split_dim >= 0 && f->tensor.dim[f->split_dim] != tokens)
        return tri_fail(TRI_INVALID,
                        "dimension %d of %s has %" PRId64 " elements, the sample %" PRId64
                        " tokens: cut the dimension that has them, or carry the field whole",
                        f->split_dim, f->name, f->tensor.dim[f->split_dim], tokens);
    return TRI_OK;
}

/* What is sent: the three that were normed, and the rest as it came. */
static enum tri_status list_fields(const struct tri_sample *sample, struct tri_prepared *p)
{
    const int64_t dim[2] = {p->rows, p->tokens};
    p->num_fields = 0;
    for (int i = 0; i < sample->num_fields; i++) {
        struct tri_field f = sample->fields[i];
        if (strcmp(f.name, "attention_mask") == 0)
            continue;
        if (strcmp(f.name, "input_ids") == 0)
            f = tri_field_split("input_ids", tri_tensor_make(p->ids, TRI_I32, 2, dim), 1);
        else if (strcmp(f.name, "labels") == 0)
            f = tri_field_split("shift_labels", tri_tensor_make(p->labels, TRI_I32, 2, dim), 1);
        else if (strcmp(f.name, "position_ids") == 0)
            f = tri_field_split("position_ids", tri_tensor_make(p->positions, TRI_I64, 2, dim), 1);
        TRI_TRY(check_length(&f, p->tokens));
        p->fields[p->num_fields++] = f;
    }
    return TRI_OK;
}

enum tri_status tri_prepare(const struct tri_sample *sample, int64_t fixed_tokens,
                            struct tri_prepared *p)
{
    struct tri_tensor ids, labels, positions;
    struct tri_tensor mask = tri_tensor_none();
    if (sample->num_fields < 0 || sample->num_fields > TRI_SAMPLE_FIELDS)
        return tri_fail(TRI_INVALID, "a sample of %d fields: at most %d", sample->num_fields,
                        TRI_SAMPLE_FIELDS);
    for (int i = 0; i < sample->num_fields; i++)
        TRI_TRY(check_field(sample, i));
    p->rows = p->tokens = 0;
    TRI_TRY(get_tokens(sample, "input_ids", p, false, "they are what is split", &ids));
    if (ids.dim[0] < 1 || ids.dim[1] < 1 || ids.dim[1] > INT64_MAX / 64 / ids.dim[0])
        return tri_fail(TRI_INVALID, "input_ids are %" PRId64 " x %" PRId64, ids.dim[0],
                        ids.dim[1]);
    if (fixed_tokens > 0 && ids.dim[1] != fixed_tokens)
        return tri_fail(TRI_INVALID,
                        "it has %" PRId64 " tokens, but fixed_tokens is %" PRId64
                        ": pad it with label -100, or set fixed_tokens to 0 for samples of any "
                        "length",
                        ids.dim[1], fixed_tokens);
    TRI_TRY(make_room(p, ids.dim[0] * ids.dim[1]));
    p->rows = ids.dim[0];
    p->tokens = ids.dim[1];
    TRI_TRY(get_tokens(sample, "labels", p, false,
                       "give input_ids once more, with -100 where nothing is to be learned",
                       &labels));
    TRI_TRY(
        get_tokens(sample, "position_ids", p, true,
                   "documents are found by them. Without packing they are 0 to S-1, packed ones "
                   "restart at each document: tri_sp_positions makes them",
                   &positions));
    if (find(sample, "attention_mask") != NULL)
        TRI_TRY(get_tokens(sample, "attention_mask", p, true, "it has no tensor", &mask));
    p->num_docs = p->trained = 0;
    for (int64_t b = 0; b < p->rows; b++) {
        TRI_TRY(copy_row(p, &ids, &labels, &positions, &mask, b));
        TRI_TRY(finish_row(p, &mask, b));
    }
    p->hash =
        tri_hash_bytes(TRI_HASH_START, p->ids, (size_t)(p->rows * p->tokens) * sizeof *p->ids);
    return list_fields(sample, p);
}
