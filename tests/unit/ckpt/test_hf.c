/* Weights go into a Hugging Face folder and come out the same, in pieces, shards and dtypes. */
#include "unit/ckpt/hf_fixture.h"

#include "tensor/half.h"

static void assert_same_tensors(const char *a, const char *b)
{
    struct tri_st *x = NULL, *y = NULL;
    assert_int_equal(tri_st_open(a, &x), TRI_OK);
    assert_int_equal(tri_st_open(b, &y), TRI_OK);
    assert_int_equal(tri_st_count(x), tri_st_count(y));
    for (int64_t i = 0; i < tri_st_count(x); i++) {
        const struct tri_st_tensor *t = tri_st_at(x, i), *u = tri_st_at(y, i);
        assert_string_equal(t->name, u->name);
        assert_int_equal(t->dtype, u->dtype);
        assert_int_equal(t->num_dims, u->num_dims);
        assert_memory_equal(t->dim, u->dim, sizeof t->dim);
        assert_memory_equal(t->data, u->data, t->bytes);
    }
    tri_st_close(x);
    tri_st_close(y);
}

static const char *const golden_names[] = {"gpt_neox",
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

/* In, out, and every tensor is the same again; with and without shards. */
static void round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden_names / sizeof golden_names[0]; i++) {
        char *source = golden(golden_names[i]);
        struct tri_model *model = open_model(source);
        struct flat flat = flat_open(model);
        load_ok(model, source, &flat);
        struct tri_hf_export how = {.source_folder = source, .dtype = TRI_F32};
        save_ok(model, scratch, &how, &flat);
        assert_true(tri_path_exists(in_scratch("model.safetensors")));
        assert_same_tensors(source, scratch);

        how.max_shard_bytes = 100000;
        save_ok(model, scratch, &how, &flat);
        assert_false(tri_path_exists(in_scratch("model.safetensors")));
        assert_same_tensors(source, scratch);

        struct tri_model *again = open_model(scratch);
        assert_memory_equal(&again->arch.rope, &model->arch.rope, sizeof model->arch.rope);
        assert_int_equal(again->num_weights, model->num_weights);
        tri_model_close(again);
        tri_model_close(model);
        free(flat.data);
        free(source);
    }
}

static void shards_and_their_index(void **state)
{
    (void)state;
    char *source = golden("llama_gqa");
    struct tri_model *model = open_model(source);
    struct flat flat = flat_open(model);
    load_ok(model, source, &flat);
    struct tri_hf_export how = {
        .source_folder = source, .dtype = TRI_F32, .max_shard_bytes = 200000};
    save_ok(model, scratch, &how, &flat);

    json_t *index = load_json(in_scratch("model.safetensors.index.json"));
    const json_t *map = json_object_get(index, "weight_map");
    assert_int_equal(json_object_size(map), model->num_hf);
    json_int_t total =
        json_integer_value(json_object_get(json_object_get(index, "metadata"), "total_size"));
    assert_int_equal(total, model->num_weights * 4);
    int shards = 0;
    sscanf(json_string_value(json_object_get(map, model->hf[0].name)),
           "model-00001-of-%05d.safetensors", &shards);
    assert_in_range(shards, 3, 5);
    for (int s = 1; s <= shards; s++) {
        char name[64];
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", s, shards);
        struct tri_st *st = NULL;
        assert_int_equal(tri_st_open(in_scratch(name), &st), TRI_OK);
        size_t bytes = 0;
        for (int64_t i = 0; i < tri_st_count(st); i++) {
            const struct tri_st_tensor *t = tri_st_at(st, i);
            bytes += t->bytes;
            assert_json_text(map, t->name, name);
        }
        assert_true(bytes <= 200000);
        tri_st_close(st);
    }
    json_decref(index);

    /* A later save with other shards leaves none of these behind. */
    how.max_shard_bytes = 50000;
    save_ok(model, scratch, &how, &flat);
    assert_same_tensors(source, scratch);
    how.max_shard_bytes = 0;
    save_ok(model, scratch, &how, &flat);
    assert_same_tensors(source, scratch);
    assert_int_equal(count_entries(scratch), 3); /* weights, config, generation_config */
    tri_model_close(model);
    free(flat.data);
    free(source);
}

/* BF16 and F16 out and in again lose exactly what the rounding loses; F64 narrows. */
static void converts_dtypes(void **state)
{
    (void)state;
    char *source = golden("qwen2");
    struct tri_model *model = open_model(source);
    struct flat flat = flat_open(model), back = flat_open(model);
    load_ok(model, source, &flat);
    static const enum tri_dtype dtypes[] = {TRI_BF16, TRI_F16};
    for (size_t d = 0; d < 2; d++) {
        struct tri_hf_export how = {.source_folder = source, .dtype = dtypes[d]};
        save_ok(model, scratch, &how, &flat);
        back.values = 0;
        load_ok(model, scratch, &back);
        for (int64_t i = 0; i < model->num_elements; i++) {
            float expected = d == 0 ? tri_bf16_to_float(tri_bf16_from_float(flat.data[i]))
                                    : tri_f16_to_float(tri_f16_from_float(flat.data[i]));
            assert_true(back.data[i] == expected);
        }
        json_t *config = load_json(in_scratch("config.json"));
        assert_json_text(config, "dtype", d == 0 ? "bfloat16" : "float16");
        assert_null(json_object_get(config, "torch_dtype"));
        json_decref(config);
    }
    struct tri_hf_export how = {.source_folder = source, .dtype = TRI_I32};
    assert_int_equal(tri_hf_save(model, scratch, &how, get_rows, &flat), TRI_INVALID);
    tri_model_close(model);
    free(flat.data);
    free(back.data);
    free(source);
}

/* Rows of [head][q, k, v] become q, then k, then v. The expected places are written out by hand. */
static void scatters_and_gathers_fused_qkv(void **state)
{
    (void)state;
    enum { HEADS = 2, D = 3, E = 4, ROWS = 3 * HEADS * D };
    struct tri_param params[] = {{.role = TRI_QKV_W, .num_dims = 2, .dim = {ROWS, E}}};
    struct tri_hf_tensor hf[] = {{.name = "qkv",
                                  .num_dims = 2,
                                  .dim = {ROWS, E},
                                  .num_parts = 3,
                                  .part = {{0, 0 * D, 3 * D, 0, D, D, HEADS},
                                           {0, 1 * D, 3 * D, HEADS * D, D, D, HEADS},
                                           {0, 2 * D, 3 * D, 2 * HEADS * D, D, D, HEADS}}}};
    struct tri_model model = {.params = params,
                              .num_params = 1,
                              .num_elements = ROWS * E,
                              .num_weights = ROWS * E,
                              .hf = hf,
                              .num_hf = 1};
    float data[ROWS * E], back[ROWS * E];
    for (int i = 0; i < ROWS * E; i++)
        data[i] = (float)i;
    struct flat flat = flat_open(&model);
    assert_int_equal(tri_hf_scatter(&model, 0, data, put_rows, &flat), TRI_OK);
    assert_int_equal(flat.rows, ROWS);
    static const int source_row[ROWS] = {0,  1,  2,  9, 10, 11, 3,  4,  5,
                                         12, 13, 14, 6, 7,  8,  15, 16, 17};
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < E; c++)
            assert_true(flat.data[r * E + c] == (float)(source_row[r] * E + c));
    assert_int_equal(tri_hf_gather(&model, 0, get_rows, &flat, back), TRI_OK);
    assert_memory_equal(back, data, sizeof data);
    free(flat.data);
}

/* Tensors larger than a piece travel in several. */
static void pieces_of_large_tensors(void **state)
{
    (void)state;
    enum { ROWS = 3000, E = 1001, SPLIT = 1700 };
    struct tri_param params[] = {{.role = TRI_QKV_W, .num_dims = 2, .dim = {ROWS, E}}};
    struct tri_hf_tensor hf[] = {{.name = "w", .num_dims = 2, .dim = {ROWS, E}, .num_parts = 2}};
    hf[0].part[0] = (struct tri_hf_part){
        .param = 0, .src_row = 0, .dst_row = ROWS - SPLIT, .rows = SPLIT, .blocks = 1};
    hf[0].part[1] = (struct tri_hf_part){
        .param = 0, .src_row = SPLIT, .dst_row = 0, .rows = ROWS - SPLIT, .blocks = 1};
    struct tri_model model = {.arch = {.class_name = "X"},
                              .params = params,
                              .num_params = 1,
                              .num_elements = (int64_t)ROWS * E,
                              .num_weights = (int64_t)ROWS * E,
                              .hf = hf,
                              .num_hf = 1};
    struct flat flat = flat_open(&model), back = flat_open(&model);
    for (int64_t i = 0; i < model.num_elements; i++)
        flat.data[i] = (float)(i % 251);
    put_text(in_scratch("config.json"), "{}");
    struct tri_hf_export how = {.source_folder = scratch, .dtype = TRI_BF16};
    save_ok(&model, scratch, &how, &flat);
    load_ok(&model, scratch, &back);
    assert_memory_equal(back.data, flat.data, (size_t)model.num_elements * sizeof(float));

    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(scratch, &st), TRI_OK);
    const uint16_t *first = tri_st_find(st, "w")->data;
    assert_true(tri_bf16_to_float(first[0]) == flat.data[(ROWS - SPLIT) * E]);
    tri_st_close(st);
    free(flat.data);
    free(back.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(round_trips),
        SCRATCH_TEST(shards_and_their_index),
        SCRATCH_TEST(converts_dtypes),
        SCRATCH_TEST(scatters_and_gathers_fused_qkv),
        SCRATCH_TEST(pieces_of_large_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
