/* What a recipe lays over a config.json. */
#include "unit/model/config_fixture.h"

static void overrides_replace(void **state)
{
    (void)state;
    static const char old[] = "\"rope_theta\": 500000, \"rope_scaling\": {\"type\": \"linear\", "
                              "\"factor\": 2}, \"torch_dtype\": \"float16\"";
    static const char modern[] = "\"rope_parameters\": {\"rope_theta\": 500000, \"rope_type\": "
                                 "\"linear\", \"factor\": 2}, \"dtype\": \"float16\"";
    const char *files[] = {old, modern};
    for (int i = 0; i < 2; i++) {
        /* A new embedding replaces the whole one, in any spelling, and keeps theta. */
        static const char *const yarns[] = {
            "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4}}",
            "{\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4}}",
            "{\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4}, \"dtype\": \"bfloat16\"}",
            "{\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4}, \"torch_dtype\": "
            "\"bfloat16\"}",
        };
        for (int k = 0; k < 4; k++) {
            struct tri_model *model = parse_ok("llama", files[i], yarns[k]);
            assert_int_equal(model->arch.rope.type, TRI_ROPE_YARN);
            assert_true(model->arch.rope.factor == 4.0);
            assert_true(model->arch.rope.theta == 500000.0);
            assert_string_equal(model->arch.dtype, k < 2 ? "float16" : "bfloat16");
            tri_model_close(model);
        }
        struct tri_model *model = parse_ok("llama", files[i],
                                           "{\"rope_theta\": 20000, \"num_hidden_layers\": 2, "
                                           "\"attention_dropout\": 0}");
        assert_int_equal(model->arch.rope.type, TRI_ROPE_LINEAR);
        assert_true(model->arch.rope.theta == 20000.0);
        assert_int_equal(model->arch.num_layers, 2);
        tri_model_close(model);
        model = parse_ok("llama", files[i], "{\"rope_scaling\": null}");
        assert_int_equal(model->arch.rope.type, TRI_ROPE_DEFAULT);
        assert_true(model->arch.rope.theta == 500000.0);
        tri_model_close(model);
    }
    struct tri_model *model =
        parse_ok("llama", "\"original_max_position_embeddings\": 64",
                 "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, "
                 "\"original_max_position_embeddings\": 256}}");
    assert_int_equal(model->arch.rope.original_max_positions, 256);
    tri_model_close(model);

    model = parse_ok("gpt_neox", "\"rotary_pct\": 0.5, \"rotary_emb_base\": 50000",
                     "{\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 2}}");
    assert_int_equal(model->arch.rope.type, TRI_ROPE_LINEAR);
    assert_int_equal(model->arch.rope.rotary_dim, 4);
    assert_true(model->arch.rope.theta == 50000.0);
    tri_model_close(model);

    check_refused("llama", old,
                  "{\"rope_theta\": 5, \"rope_parameters\": {\"rope_type\": \"default\", "
                  "\"rope_theta\": 6}}",
                  TRI_INVALID, "rope_theta is given twice");
    check_refused("llama", old, "{\"dtype\": \"float32\", \"torch_dtype\": \"bfloat16\"}",
                  TRI_INVALID, "dtype and torch_dtype contradict");
    check_refused("llama", old, "[1]", TRI_INVALID, "must be an object");
    check_refused("llama", old, "{\"rope_thetta\": 5}", TRI_INVALID,
                  "'rope_thetta' is not in the file");
}

/* A merged config stays in the spelling of the file, so that what is exported loads where the
 * original did. */
static void merged_configs_keep_their_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *file, *overrides, *expected;
    } cases[] = {
        {"{\"model_type\": \"llama\", \"rope_theta\": 5e5, \"torch_dtype\": \"float16\", "
         "\"x\": 1}",
         "{\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 2}, \"x\": {\"a\": 1}}",
         "{\"model_type\": \"llama\", \"rope_theta\": 5e5, \"torch_dtype\": \"float16\", "
         "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2}, \"x\": {\"a\": 1}}"},
        {"{\"model_type\": \"llama\", \"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": "
         "\"default\"}, \"x\": {\"b\": 1}}",
         "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}, \"x\": {\"a\": 1}}",
         "{\"model_type\": \"llama\", \"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": "
         "\"linear\", \"type\": \"linear\", \"factor\": 2}, \"x\": {\"a\": 1}}"},
        {"{\"model_type\": \"gpt_neox\", \"rotary_emb_base\": 5e5}",
         "{\"rope_theta\": 7e5, \"partial_rotary_factor\": 0.5}",
         "{\"model_type\": \"gpt_neox\", \"rotary_emb_base\": 7e5, \"rotary_pct\": 0.5}"},
        {"{\"model_type\": \"llama\"}", "{\"rope_parameters\": {\"rope_theta\": 5e5}}",
         "{\"model_type\": \"llama\", \"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": "
         "\"default\"}}"},
        {"{\"model_type\": \"llama\", \"torch_dtype\": \"float16\"}", "{\"dtype\": \"float32\"}",
         "{\"model_type\": \"llama\", \"torch_dtype\": \"float32\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *file = json_of(cases[i].file), *over = json_of(cases[i].overrides);
        json_t *before = json_deep_copy(file);
        json_t *expected = json_of(cases[i].expected), *merged = NULL;
        assert_int_equal(tri_config_merge(file, over, &merged), TRI_OK);
        if (!json_equal(merged, expected)) {
            char *text = json_dumps(merged, 0);
            fail_msg("case %zu: %s", i, text);
        }
        assert_true(json_equal(file, before));
        json_decref(merged);
        json_decref(expected);
        json_decref(before);
        json_decref(over);
        json_decref(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overrides_replace),
        cmocka_unit_test(merged_configs_keep_their_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
