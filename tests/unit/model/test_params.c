/* The layout of parameters, and the tensors of a checkpoint against those of the golden folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "model/arch.h"

static struct tri_model *parse(const char *config)
{
    struct tri_model *model = NULL;
    if (tri_model_parse("config.json", config, strlen(config), NULL, &model) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return model;
}

/* The header of a .safetensors file: 8 bytes of length, then JSON. */
static json_t *read_header(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char length[8];
    assert_int_equal(fread(length, 1, 8, file), 8);
    size_t bytes = 0;
    for (int i = 7; i >= 0; i--)
        bytes = bytes << 8 | length[i];
    char *text = malloc(bytes);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, bytes, file), bytes);
    fclose(file);
    json_t *header = NULL;
    assert_int_equal(tri_json_parse(path, text, bytes, &header), TRI_OK);
    free(text);
    return header;
}

/* Every tensor of the file is expected with its shape, and nothing else is. */
static void check_names(const struct tri_model *model, const json_t *header)
{
    size_t tensors = json_object_size(header);
    if (json_object_get(header, "__metadata__") != NULL)
        tensors--;
    assert_int_equal(model->num_hf, tensors);
    for (int i = 0; i < model->num_hf; i++) {
        const struct tri_hf_tensor *t = &model->hf[i];
        const json_t *shape = json_object_get(json_object_get(header, t->name), "shape");
        if (shape == NULL)
            fail_msg("%s is not in the file", t->name);
        assert_int_equal(json_array_size(shape), t->num_dims);
        for (int d = 0; d < t->num_dims; d++)
            assert_int_equal(json_integer_value(json_array_get(shape, (size_t)d)), t->dim[d]);
    }
}

/* Every row of every tensor goes to one row of ours, and every row of ours comes from one. */
static void check_parts(const struct tri_model *model)
{
    unsigned char **ours = calloc((size_t)model->num_params, sizeof *ours);
    assert_non_null(ours);
    for (int i = 0; i < model->num_params; i++)
        ours[i] = calloc((size_t)model->params[i].dim[0], 1);

    for (int i = 0; i < model->num_hf; i++) {
        const struct tri_hf_tensor *t = &model->hf[i];
        unsigned char *theirs = calloc((size_t)t->dim[0], 1);
        for (int k = 0; k < t->num_parts; k++) {
            const struct tri_hf_part *p = &t->part[k];
            const struct tri_param *param = &model->params[p->param];
            assert_int_equal(param->num_dims, t->num_dims);
            if (t->num_dims == 2)
                assert_int_equal(param->dim[1], t->dim[1]);
            for (int64_t b = 0; b < p->blocks; b++)
                for (int64_t r = 0; r < p->rows; r++) {
                    int64_t src = p->src_row + b * p->src_step + r;
                    int64_t dst = p->dst_row + b * p->dst_step + r;
                    assert_in_range(src, 0, t->dim[0] - 1);
                    assert_in_range(dst, 0, param->dim[0] - 1);
                    assert_int_equal(theirs[src]++, 0);
                    assert_int_equal(ours[p->param][dst]++, 0);
                }
        }
        for (int64_t r = 0; r < t->dim[0]; r++)
            assert_int_equal(theirs[r], 1);
        free(theirs);
    }
    for (int i = 0; i < model->num_params; i++) {
        for (int64_t r = 0; r < model->params[i].dim[0]; r++)
            assert_int_equal(ours[i][r], 1);
        free(ours[i]);
    }
    free(ours);
}

static void golden_folders_match(void **state)
{
    (void)state;
    static const char *const folders[] = {"gpt_neox",
                                          "gpt_neox_sequential",
                                          "llama3_rope_packed",
                                          "llama_gqa",
                                          "llama_mqa",
                                          "llama_tied_batch2",
                                          "llama_yarn",
                                          "mistral_window",
                                          "phi3",
                                          "qwen2",
                                          "qwen3"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[512];
        snprintf(path, sizeof path, TEST_DATA "/golden/%s/config.json", folders[i]);
        struct tri_model *model = NULL;
        if (tri_model_open(path, NULL, &model) != TRI_OK)
            fail_msg("%s", tri_error_text());
        snprintf(path, sizeof path, TEST_DATA "/golden/%s/model.safetensors", folders[i]);
        json_t *header = read_header(path);
        check_names(model, header);
        check_parts(model);
        json_decref(header);
        tri_model_close(model);
    }
}

static const char small_neox[] =
    "{\"model_type\": \"gpt_neox\", \"vocab_size\": 10, \"hidden_size\": 12, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 3, \"intermediate_size\": 20, "
    "\"rotary_pct\": 0.5}";

static const char small_llama[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 10, \"hidden_size\": 12, "
    "\"num_hidden_layers\": 3, \"num_attention_heads\": 6, \"num_key_value_heads\": 2, "
    "\"head_dim\": 4, \"intermediate_size\": 20, \"mlp_bias\": true, \"attention_bias\": true%s}";

/* Our row of row `src` of a tensor. */
static int64_t row_of(const struct tri_hf_tensor *t, int64_t src)
{
    for (int k = 0; k < t->num_parts; k++)
        for (int64_t b = 0; b < t->part[k].blocks; b++) {
            int64_t r = src - t->part[k].src_row - b * t->part[k].src_step;
            if (r >= 0 && r < t->part[k].rows)
                return t->part[k].dst_row + b * t->part[k].dst_step + r;
        }
    return -1;
}

static const struct tri_hf_tensor *find(const struct tri_model *model, const char *name)
{
    for (int i = 0; i < model->num_hf; i++)
        if (strcmp(model->hf[i].name, name) == 0)
            return &model->hf[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void gpt_neox_rows_are_by_head(void **state)
{
    (void)state;
    enum { HEADS = 3, D = 4 };
    struct tri_model *model = parse(small_neox);
    check_parts(model);
    const char *const names[] = {"gpt_neox.layers.1.attention.query_key_value.weight",
                                 "gpt_neox.layers.1.attention.query_key_value.bias"};
    for (int n = 0; n < 2; n++) {
        const struct tri_hf_tensor *t = find(model, names[n]);
        assert_int_equal(t->dim[0], 3 * HEADS * D);
        for (int head = 0; head < HEADS; head++)
            for (int part = 0; part < 3; part++)
                for (int d = 0; d < D; d++)
                    assert_int_equal(row_of(t, (head * 3 + part) * D + d),
                                     (part * HEADS + head) * D + d);
    }
    tri_model_close(model);
}

static void fused_rows_are_in_order(void **state)
{
    (void)state;
    char config[512];
    snprintf(config, sizeof config, small_llama, "");
    struct tri_model *model = parse(config);
    check_parts(model);
    assert_int_equal(row_of(find(model, "model.layers.2.self_attn.q_proj.weight"), 5), 5);
    assert_int_equal(row_of(find(model, "model.layers.2.self_attn.k_proj.weight"), 5), 24 + 5);
    assert_int_equal(row_of(find(model, "model.layers.2.self_attn.v_proj.bias"), 5), 32 + 5);
    assert_int_equal(row_of(find(model, "model.layers.2.mlp.gate_proj.weight"), 5), 5);
    assert_int_equal(row_of(find(model, "model.layers.2.mlp.up_proj.bias"), 5), 20 + 5);
    tri_model_close(model);
}

/* Offsets are aligned, ordered by place and never overlap; tables agree with the list. */
static void check_layout(const struct tri_model *model)
{
    int64_t end = 0, weights = 0, layer = -1;
    for (int i = 0; i < model->num_params; i++) {
        const struct tri_param *p = &model->params[i];
        int64_t count = p->dim[0] * (p->num_dims == 2 ? p->dim[1] : 1);
        assert_int_equal(p->offset % 64, 0);
        assert_true(p->offset >= end);
        assert_true(p->offset < end + 64);
        end = p->offset + count;
        weights += count;
        assert_int_equal(p->decay, p->num_dims == 2);
        if (p->layer >= 0) {
            assert_true(p->layer == layer || p->layer == layer + 1);
            layer = p->layer;
            assert_int_equal(model->layer_param[p->layer][p->role], i);
        } else {
            assert_true(p->role == TRI_EMBED ? i == 0 : layer == model->arch.num_layers - 1);
            assert_int_equal(model->outer_param[p->role], i);
        }
    }
    assert_true(model->num_elements >= end && model->num_elements < end + 64);
    assert_int_equal(model->num_elements % 64, 0);
    assert_int_equal(model->num_weights, weights);
}

static void parameters_are_laid_out(void **state)
{
    (void)state;
    char config[512];
    snprintf(config, sizeof config, small_llama, "");
    struct tri_model *model = parse(config);
    check_layout(model);
    /* Embedding and head 2*120; final norm 12; a layer: norms 2*12, qkv 40*13, out 12*25,
     * gate and up 40*13, down 12*21. */
    assert_int_equal(model->num_weights, 240 + 12 + 3 * (24 + 520 + 300 + 520 + 252));
    assert_int_equal(model->outer_param[TRI_FINAL_NORM_B], -1);
    assert_int_equal(model->layer_param[1][TRI_Q_NORM], -1);
    /* Multiply-adds of a token: head 120; qkv 40*12, out 12*24, gate and up 40*12, down 12*20. */
    assert_true(tri_model_linear_flops(model) == 2.0 * (120 + 3 * (480 + 288 + 480 + 240)));
    tri_model_close(model);

    model = parse(small_neox);
    check_layout(model);
    assert_true(model->outer_param[TRI_FINAL_NORM_B] > 0);
    tri_model_close(model);
}

/* The view of a parameter in a flat buffer of the whole model. */
static struct tri_view view_in(const struct tri_model *model, int64_t layer, enum tri_role role,
                               float *flat)
{
    int param = tri_model_param(model, layer, role);
    if (param < 0)
        return tri_view_none();
    float *unit = flat + model->unit_begin[tri_model_unit(model, param)];
    return tri_param_view(model, param, unit, TRI_F32);
}

static void views_point_at_parameters(void **state)
{
    (void)state;
    char config[512];
    snprintf(config, sizeof config, small_llama, ", \"tie_word_embeddings\": true");
    struct tri_model *model = parse(config);
    check_layout(model);
    check_parts(model);
    float *flat = calloc((size_t)model->num_elements, sizeof *flat);
    assert_non_null(flat);

    struct tri_view v = view_in(model, 2, TRI_QKV_W, flat);
    const struct tri_param *p = &model->params[model->layer_param[2][TRI_QKV_W]];
    assert_ptr_equal(v.data, flat + p->offset);
    assert_int_equal(v.num_dims, 2);
    assert_int_equal(v.dim[0], 40);
    assert_int_equal(v.dim[1], 12);
    v = view_in(model, 2, TRI_QKV_B, flat);
    assert_int_equal(v.num_dims, 1);
    assert_int_equal(v.dim[0], 40);
    assert_false(tri_view_present(view_in(model, 0, TRI_K_NORM, flat)));
    assert_false(tri_view_present(view_in(model, -1, TRI_FINAL_NORM_B, flat)));

    /* The head of a tied model is its embedding, and no checkpoint holds it twice. */
    assert_int_equal(model->outer_param[TRI_HEAD_W], -1);
    assert_ptr_equal(view_in(model, -1, TRI_HEAD_W, flat).data,
                     view_in(model, -1, TRI_EMBED, flat).data);
    for (int i = 0; i < model->num_hf; i++)
        assert_string_not_equal(model->hf[i].name, "lm_head.weight");
    assert_true(tri_model_linear_flops(model) == 2.0 * (120 + 3 * (480 + 288 + 480 + 240)));
    free(flat);
    tri_model_close(model);
}

static void phi3_tensors_are_fused_already(void **state)
{
    (void)state;
    struct tri_model *model =
        parse("{\"model_type\": \"phi3\", \"vocab_size\": 10, \"hidden_size\": 12, "
              "\"num_hidden_layers\": 1, \"num_attention_heads\": 6, \"num_key_value_heads\": 2, "
              "\"intermediate_size\": 20}");
    check_layout(model);
    check_parts(model);
    assert_int_equal(find(model, "model.layers.0.self_attn.qkv_proj.weight")->dim[0], 20);
    assert_int_equal(find(model, "model.layers.0.mlp.gate_up_proj.weight")->dim[0], 40);
    tri_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_folders_match),
        cmocka_unit_test(gpt_neox_rows_are_by_head),
        cmocka_unit_test(fused_rows_are_in_order),
        cmocka_unit_test(parameters_are_laid_out),
        cmocka_unit_test(views_point_at_parameters),
        cmocka_unit_test(phi3_tensors_are_fused_already),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
