/* Parameters of a model in memory, and Hugging Face folders that they come from and go to. */
#ifndef TESTS_UNIT_CKPT_HF_FIXTURE_H
#define TESTS_UNIT_CKPT_HF_FIXTURE_H

#include "unit/scratch.h"

#include "base/json.h"
#include "ckpt/hf.h"

/* Parameters as one flat buffer, laid out as the model says. */
struct flat {
    const struct tri_model *model;
    float *data;    /* (num_elements) */
    int64_t rows;   /* handed over */
    int64_t values; /* likewise */
};

static inline int64_t width_of(const struct tri_model *model, int param)
{
    return model->params[param].num_dims == 2 ? model->params[param].dim[1] : 1;
}

static inline enum tri_status put_rows(void *ctx, int param, int64_t row, int64_t rows,
                                       const float *data)
{
    struct flat *flat = ctx;
    int64_t width = width_of(flat->model, param);
    assert_true(row >= 0 && rows > 0 && row + rows <= flat->model->params[param].dim[0]);
    memcpy(flat->data + flat->model->params[param].offset + row * width, data,
           (size_t)(rows * width) * sizeof *data);
    flat->rows += rows;
    flat->values += rows * width;
    return TRI_OK;
}

static inline enum tri_status get_rows(void *ctx, int param, int64_t row, int64_t rows, float *data)
{
    struct flat *flat = ctx;
    int64_t width = width_of(flat->model, param);
    assert_true(row >= 0 && rows > 0 && row + rows <= flat->model->params[param].dim[0]);
    memcpy(data, flat->data + flat->model->params[param].offset + row * width,
           (size_t)(rows * width) * sizeof *data);
    return TRI_OK;
}

static inline struct flat flat_open(const struct tri_model *model)
{
    struct flat flat = {.model = model};
    flat.data = calloc((size_t)model->num_elements, sizeof *flat.data);
    assert_non_null(flat.data);
    return flat;
}

static inline struct tri_model *open_model(const char *folder)
{
    char *path = tri_path_join(folder, "config.json");
    struct tri_model *model = NULL;
    if (tri_model_open(path, NULL, &model) != TRI_OK)
        fail_msg("%s", tri_error_text());
    free(path);
    return model;
}

static inline char *golden(const char *name)
{
    return tri_path_join(TEST_DATA "/golden", name);
}

static inline void load_ok(const struct tri_model *model, const char *folder, struct flat *flat)
{
    if (tri_hf_load(model, folder, put_rows, flat) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_int_equal(flat->values, model->num_weights);
}

static inline void save_ok(const struct tri_model *model, const char *folder,
                           const struct tri_hf_export *how, struct flat *flat)
{
    if (tri_hf_save(model, folder, how, get_rows, flat) != TRI_OK)
        fail_msg("%s", tri_error_text());
}

static inline json_t *load_json(const char *path)
{
    json_t *value = NULL;
    if (tri_json_load(path, &value) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return value;
}

static inline void assert_json_text(const json_t *object, const char *key, const char *expected)
{
    assert_string_equal(json_string_value(json_object_get(object, key)), expected);
}

#endif
