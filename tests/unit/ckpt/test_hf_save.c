/* What a saved folder holds beside weights, and saves that fail. */
#include "unit/ckpt/hf_fixture.h"

#include <math.h>

static const char *const old_config =
    "{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 16,"
    " \"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1,"
    " \"vocab_size\": 11, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-06,"
    " \"rope_theta\": 10000.0, \"torch_dtype\": \"float32\", \"tie_word_embeddings\": false,"
    " \"bos_token_id\": 1, \"eos_token_id\": [2, 3], \"use_cache\": false}";

static char source_folder[4400], out_folder[4400], no_folder[4400];

/* The source folder of the tests below, with random-looking weights. */
static struct tri_model *put_source(struct flat *flat)
{
    snprintf(source_folder, sizeof source_folder, "%s/source", scratch);
    snprintf(out_folder, sizeof out_folder, "%s/out", scratch);
    snprintf(no_folder, sizeof no_folder, "%s/none", scratch);
    assert_int_equal(tri_make_folder(source_folder), TRI_OK);
    assert_int_equal(tri_make_folder(out_folder), TRI_OK);
    put_text(in_scratch("source/config.json"), old_config);
    struct tri_model *model = open_model(in_scratch("source"));
    *flat = flat_open(model);
    for (int64_t i = 0; i < model->num_elements; i++)
        flat->data[i] = (float)(i * 37 % 101) / 64 - 0.7f;
    return model;
}

static void writes_the_configuration(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    json_t *overrides =
        json_pack("{s:i, s:{s:s, s:f, s:f}}", "max_position_embeddings", 128, "rope_parameters",
                  "rope_type", "linear", "factor", 2.0, "rope_theta", 10000.0);
    struct tri_hf_export how = {
        .source_folder = source_folder, .config_overrides = overrides, .dtype = TRI_BF16};
    save_ok(model, out_folder, &how, &flat);

    json_t *config = load_json(in_scratch("out/config.json"));
    assert_json_text(config, "torch_dtype", "bfloat16");
    assert_null(json_object_get(config, "dtype"));
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0)),
        "LlamaForCausalLM");
    assert_int_equal(json_integer_value(json_object_get(config, "max_position_embeddings")), 128);
    assert_true(json_is_false(json_object_get(config, "use_cache")));
    json_decref(config);

    struct tri_model *again = open_model(in_scratch("out"));
    assert_int_equal(again->arch.rope.type, TRI_ROPE_LINEAR);
    assert_true(again->arch.rope.factor == 2.0);
    assert_int_equal(again->arch.max_positions, 128);
    tri_model_close(again);

    json_t *generation = load_json(in_scratch("out/generation_config.json"));
    assert_int_equal(json_integer_value(json_object_get(generation, "bos_token_id")), 1);
    assert_int_equal(json_array_size(json_object_get(generation, "eos_token_id")), 2);
    assert_null(json_object_get(generation, "pad_token_id"));
    json_decref(generation);
    json_decref(overrides);
    tri_model_close(model);
    free(flat.data);
}

static void carries_files_over(void **state)
{
    (void)state;
    static const char *const names[] = {
        "generation_config.json",  "tokenizer.json",      "tokenizer_config.json",
        "special_tokens_map.json", "vocab.json",          "merges.txt",
        "tokenizer.model",         "chat_template.jinja", "added_tokens.json"};
    enum { COUNT = sizeof names / sizeof names[0] };
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    char path[128];
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "source/%s", names[i]);
        put_text(in_scratch(path), names[i]); /* not even JSON: carried over as bytes */
    }
    put_text(in_scratch("source/README.md"), "not ours to copy");
    struct tri_hf_export how = {.source_folder = source_folder, .dtype = TRI_F32};
    save_ok(model, out_folder, &how, &flat);
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "out/%s", names[i]);
        assert_file_is(in_scratch(path), names[i]);
    }
    assert_int_equal(count_entries(in_scratch("out")), COUNT + 2); /* config, weights */

    /* Saving over the source itself. */
    how.source_folder = out_folder;
    save_ok(model, out_folder, &how, &flat);
    assert_file_is(in_scratch("out/tokenizer.json"), "tokenizer.json");
    assert_int_equal(count_entries(in_scratch("out")), COUNT + 2);
    tri_model_close(model);
    free(flat.data);
}

/* The files of an earlier save, for comparison. */
static void assert_out_is_old(void)
{
    assert_int_equal(count_entries(in_scratch("out")), 2);
    assert_file_is(in_scratch("out/model.safetensors"), "old weights");
    assert_file_is(in_scratch("out/config.json"), "old config");
}

static void put_old_out(void)
{
    put_text(in_scratch("out/model.safetensors"), "old weights");
    put_text(in_scratch("out/config.json"), "old config");
}

/* Whichever write meets the full disk, the folder stays as it was. */
static void full_disk_changes_nothing(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    put_text(in_scratch("source/tokenizer.json"), "{}");
    struct tri_hf_export how = {
        .source_folder = source_folder, .dtype = TRI_F32, .max_shard_bytes = 1000};
    int failures = 0;
    put_old_out();
    for (;; failures++) {
        assert_true(failures < 20);
        tri_file_fail_at(failures + 1);
        enum tri_status st = tri_hf_save(model, out_folder, &how, get_rows, &flat);
        tri_file_fail_at(0);
        if (st == TRI_OK)
            break;
        assert_int_equal(st, TRI_IO);
        assert_error_has("No space left on device: free space or choose another output_dir");
        assert_out_is_old();
    }
    assert_in_range(failures, 6, 12); /* shards, index, tokenizer, generation and config */
    struct flat back = flat_open(model);
    load_ok(model, in_scratch("out"), &back);
    for (int p = 0; p < model->num_params; p++) /* the padding between parameters is not saved */
        assert_memory_equal(back.data + model->params[p].offset,
                            flat.data + model->params[p].offset,
                            (size_t)(model->params[p].dim[0] * width_of(model, p)) * sizeof(float));
    tri_model_close(model);
    free(flat.data);
    free(back.data);
}

static void refuses_weights_that_are_not_finite(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    put_old_out();
    int last = model->hf[model->num_hf - 1].part[0].param;
    float *weight = &flat.data[model->params[last].offset + 3 * width_of(model, last) + 1];
    struct tri_hf_export how = {.source_folder = source_folder, .dtype = TRI_F32};

    *weight = NAN;
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_NONFINITE);
    assert_error_has("lm_head.weight holds nan in row 3");
    assert_out_is_old();
    how.dtype = TRI_BF16;
    *weight = -INFINITY;
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_NONFINITE);
    assert_error_has("lm_head.weight holds -inf in row 3");

    /* Finite, but not in the dtype that is asked for. */
    *weight = 3.4e38f;
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_NONFINITE);
    assert_error_has("holds 3.4e+38 in row 3, which is beyond bfloat16: save as float32");
    how.dtype = TRI_F16;
    *weight = 65520;
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_NONFINITE);
    assert_error_has("holds 65520 in row 3, which is beyond float16");
    assert_out_is_old();
    *weight = 65500;
    save_ok(model, out_folder, &how, &flat);
    tri_model_close(model);
    free(flat.data);
}

/* A source that was read at the start is all that a save needs of it. */
static void saving_outlives_the_source(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_hf_source *kept = NULL;
    struct tri_model *model = put_source(&flat);
    assert_int_equal(tri_hf_source_open(source_folder, &kept), TRI_OK);
    assert_int_equal(tri_remove_folder(source_folder), TRI_OK);
    struct tri_hf_export how = {.source = kept, .source_folder = source_folder, .dtype = TRI_F32};
    save_ok(model, out_folder, &how, &flat);
    struct tri_hf_source *again = NULL;
    assert_int_equal(tri_hf_source_open(out_folder, &again), TRI_OK);
    for (int i = 1; i < TRI_HF_SOURCE_FILES; i++)
        if (kept->file[i].data != NULL) {
            assert_int_equal(again->file[i].bytes, kept->file[i].bytes);
            assert_memory_equal(again->file[i].data, kept->file[i].data, kept->file[i].bytes);
        }
    tri_hf_source_close(again);
    tri_hf_source_close(kept);
    tri_model_close(model);
    free(flat.data);
}

static void saving_needs_a_source_and_a_folder(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    struct tri_hf_export how = {.source_folder = no_folder, .dtype = TRI_F32};
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_IO);
    assert_error_has("none/config.json");
    assert_int_equal(count_entries(in_scratch("out")), 0);
    how.source_folder = source_folder;
    assert_int_equal(tri_hf_save(model, in_scratch("nowhere"), &how, get_rows, &flat), TRI_IO);
    assert_error_has("nowhere/model.safetensors: No such file or directory: choose another");
    tri_model_close(model);
    free(flat.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(writes_the_configuration),   SCRATCH_TEST(carries_files_over),
        SCRATCH_TEST(full_disk_changes_nothing),  SCRATCH_TEST(refuses_weights_that_are_not_finite),
        SCRATCH_TEST(saving_outlives_the_source), SCRATCH_TEST(saving_needs_a_source_and_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
