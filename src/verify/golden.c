#include "verify/golden.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "tensor/half.h"

double tri_golden_value(const struct tri_st_tensor *tensor, int64_t i)
{
    /* The file may place tensors at any byte, so elements are copied out. */
    const char *p = (const char *)tensor->data + (size_t)i * tri_dtype_bytes(tensor->dtype);
    union {
        float f;
        double d;
        uint16_t h;
        int32_t i;
        int64_t l;
        uint8_t u;
    } x;
    memcpy(&x, p, tri_dtype_bytes(tensor->dtype));
    switch (tensor->dtype) {
    case TRI_F32:
        return (double)x.f;
    case TRI_F64:
        return x.d;
    case TRI_BF16:
        return (double)tri_bf16_to_float(x.h);
    case TRI_F16:
        return (double)tri_f16_to_float(x.h);
    case TRI_I32:
        return (double)x.i;
    case TRI_I64:
        return (double)x.l;
    case TRI_U8:
        return (double)x.u;
    }
    return 0;
}

/* A (B, S) tensor of the reference; its shape must agree with the first one asked for. */
static enum tri_status find_rows(const struct tri_golden *g, const char *name, int64_t *rows,
                                 int64_t *cols, const struct tri_st_tensor **out)
{
    const struct tri_st_tensor *t = tri_st_find(g->reference, name);
    if (t == NULL || t->num_dims != 2 || t->dtype != TRI_I64)
        return tri_fail(TRI_FORMAT, "reference.safetensors: '%s' is missing or not int64 of (B, S)",
                        name);
    if (*rows >= 0 && (t->dim[0] != *rows || t->dim[1] != *cols))
        return tri_fail(TRI_FORMAT, "reference.safetensors: '%s' has another shape than input_ids",
                        name);
    *rows = t->dim[0];
    *cols = t->dim[1];
    *out = t;
    return TRI_OK;
}

static enum tri_status read_batch(struct tri_golden *g)
{
    const struct tri_st_tensor *ids = NULL, *labels = NULL, *positions = NULL, *shifted = NULL;
    int64_t rows = -1;
    int64_t cols = -1;
    TRI_TRY(find_rows(g, "input_ids", &rows, &cols, &ids));
    TRI_TRY(find_rows(g, "labels", &rows, &cols, &labels));
    TRI_TRY(find_rows(g, "position_ids", &rows, &cols, &positions));
    TRI_TRY(find_rows(g, "shift_labels", &rows, &cols, &shifted));
    int64_t n = rows * cols;
    TRI_TRY(tri_batch_open(n, &g->batch));
    g->batch.num_tokens = n;
    for (int64_t t = 0; t < n; t++) {
        int64_t id = (int64_t)tri_golden_value(ids, t);
        int64_t label = (int64_t)tri_golden_value(labels, t);
        if (id < 0 || id >= g->model->arch.vocab || label >= g->model->arch.vocab)
            return tri_fail(TRI_INVALID,
                            "reference.safetensors: token %" PRId64 " has id %" PRId64
                            " and label %" PRId64 " outside the vocabulary of %" PRId64,
                            t, id, label, g->model->arch.vocab);
        g->batch.ids[t] = (int32_t)id;
        g->batch.labels[t] = label < 0 ? TRI_IGNORE_LABEL : (int32_t)label;
        g->batch.positions[t] = (int64_t)tri_golden_value(positions, t);
    }
    TRI_TRY(tri_batch_finish(&g->batch));
    /* Our shift must be the reference's. */
    for (int64_t t = 0; t < n; t++) {
        int64_t want = (int64_t)tri_golden_value(shifted, t);
        if ((want < 0) != (g->batch.labels[t] < 0) || (want >= 0 && want != g->batch.labels[t]))
            return tri_fail(TRI_FORMAT,
                            "reference.safetensors: shift_labels[%" PRId64 "] is %" PRId64
                            ", labels and position_ids say %" PRId32,
                            t, want, g->batch.labels[t]);
    }
    return TRI_OK;
}

static enum tri_status read_number(const json_t *object, const char *name, double *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value))
        return tri_fail(TRI_FORMAT, "reference.json: '%s' is missing or not a number", name);
    *out = json_number_value(value);
    return TRI_OK;
}

static enum tri_status read_series(const json_t *root, const char *name, int64_t count, double *out)
{
    const json_t *list = json_object_get(root, name);
    if (!json_is_array(list) || (int64_t)json_array_size(list) != count)
        return tri_fail(TRI_FORMAT, "reference.json: '%s' must be a list of %" PRId64 " numbers",
                        name, count);
    for (int64_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        if (!json_is_number(value))
            return tri_fail(TRI_FORMAT, "reference.json: '%s' holds something that is no number",
                            name);
        out[i] = json_number_value(value);
    }
    return TRI_OK;
}

static enum tri_status read_json(struct tri_golden *g, const json_t *root)
{
    const json_t *hyper = json_object_get(root, "hyper");
    double steps = 0;
    if (!json_is_object(hyper))
        return tri_fail(TRI_FORMAT, "reference.json: 'hyper' is missing or not an object");
    TRI_TRY(read_number(hyper, "steps", &steps));
    if (!(steps >= 0 && steps <= TRI_GOLDEN_MAX_STEPS))
        return tri_fail(TRI_FORMAT, "reference.json: %g steps; 0 to %d are read", steps,
                        TRI_GOLDEN_MAX_STEPS);
    g->steps = (int64_t)steps;
    TRI_TRY(read_number(hyper, "lr", &g->optimizer.learning_rate));
    TRI_TRY(read_number(hyper, "beta1", &g->optimizer.beta1));
    TRI_TRY(read_number(hyper, "beta2", &g->optimizer.beta2));
    TRI_TRY(read_number(hyper, "eps", &g->optimizer.eps));
    TRI_TRY(read_number(hyper, "weight_decay", &g->optimizer.weight_decay));
    TRI_TRY(read_number(hyper, "max_grad_norm", &g->clip));
    TRI_TRY(read_series(root, "losses", g->steps + 1, g->losses));
    return read_series(root, "grad_norms", g->steps, g->grad_norms);
}

static enum tri_status read_all(const char *folder, struct tri_golden *g)
{
    enum tri_status st = TRI_OK;
    json_t *root = NULL;
    char *config = tri_path_join(folder, "config.json");
    char *tensors = tri_path_join(folder, "reference.safetensors");
    char *numbers = tri_path_join(folder, "reference.json");
    if (config == NULL || tensors == NULL || numbers == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory for paths");
        goto free_paths;
    }
    if (!tri_path_exists(numbers)) {
        st = tri_fail(TRI_INVALID,
                      "this is no golden folder, it has no reference.json; give one such "
                      "as tests/golden/llama_gqa, or make one with tools/golden.py");
        goto free_paths;
    }
    TRI_TRY_GOTO(st, tri_model_open(config, NULL, &g->model), free_paths);
    TRI_TRY_GOTO(st, tri_st_open(tensors, &g->reference), free_paths);
    TRI_TRY_GOTO(st, tri_json_load(numbers, &root), free_paths);
    TRI_TRY_GOTO(st, read_json(g, root), free_paths);
    st = read_batch(g);
free_paths:
    json_decref(root);
    free(config);
    free(tensors);
    free(numbers);
    return st;
}

enum tri_status tri_golden_open(const char *folder, struct tri_golden *out)
{
    struct tri_golden golden = {.model = NULL};
    enum tri_status st = read_all(folder, &golden);
    if (st != TRI_OK) {
        tri_error_prefix("%s", folder);
        tri_golden_close(&golden);
        return st;
    }
    *out = golden;
    return TRI_OK;
}

void tri_golden_close(struct tri_golden *golden)
{
    tri_batch_close(&golden->batch);
    tri_st_close(golden->reference);
    tri_model_close(golden->model);
}
