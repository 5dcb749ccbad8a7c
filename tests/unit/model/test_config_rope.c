/* The rotary embedding of a config.json: both spellings are one model, bad members are refused. */
#include "unit/model/config_fixture.h"

static void refuses_bad_rope(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        enum tri_status status;
        const char *words;
    } cases[] = {
        {"\"rope_theta\": 0", TRI_INVALID, "rope_theta is 0: give a number over 1"},
        {"\"rope_theta\": -5", TRI_INVALID, "rope_theta is -5"},
        {"\"rope_theta\": true", TRI_INVALID, "rope_theta is true"},
        {"\"rope_parameters\": 5", TRI_INVALID, "rope_parameters is 5: give an object or null"},
        {"\"rope_scaling\": {\"type\": \"longrope\"}", TRI_UNSUPPORTED,
         "rope_scaling.type is \"longrope\": only default, linear, dynamic, yarn and llama3"},
        {"\"rope_parameters\": {\"rope_type\": \"proportional\"}", TRI_UNSUPPORTED,
         "rope_parameters.rope_type is \"proportional\""},
        {"\"rope_scaling\": {\"type\": \"mrope\", \"mrope_section\": [2, 1, 1]}", TRI_UNSUPPORTED,
         "rope_scaling.type is \"mrope\""},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"mrope_section\": [2, 1, 1]}",
         TRI_UNSUPPORTED, "\"mrope_section\": [2,1,1], which rope_type default does not have"},
        {"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"}}", TRI_UNSUPPORTED,
         "\"full_attention\": rotary embeddings that differ by layer"},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"factor\": 8}", TRI_UNSUPPORTED,
         "\"factor\": 8, which rope_type default does not have"},
        {"\"rope_scaling\": {\"factor\": 8.0}", TRI_UNSUPPORTED, "\"factor\": 8.0"},
        {"\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2, \"alpha\": 1000}",
         TRI_UNSUPPORTED, "\"alpha\": 1000, which rope_type dynamic does not have"},
        {"\"rope_scaling\": {\"type\": \"linear\", \"rope_type\": \"yarn\"}", TRI_INVALID,
         "rope_scaling.rope_type is \"yarn\" but rope_scaling.type is \"linear\""},
        {"\"rope_scaling\": {\"type\": \"linear\"}", TRI_INVALID,
         "rope_scaling.factor is missing, rope_type linear needs it"},
        {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0.5}", TRI_INVALID,
         "rope_scaling.factor is 0.5: give a number from 1"},
        {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": null}", TRI_INVALID,
         "rope_scaling.factor is null"},
        {"\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2, "
         "\"original_max_position_embeddings\": 64}",
         TRI_UNSUPPORTED, "original_max_position_embeddings is 64, but rope_type dynamic"},
        {"\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}, \"head_dim\": 2",
         TRI_UNSUPPORTED, "rope_type dynamic with 2 rotated elements"},
        {"\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, "
         "\"original_max_position_embeddings\": 0}",
         TRI_INVALID, "rope_parameters.original_max_position_embeddings is 0"},
        {"\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"beta_fast\": 1, "
         "\"beta_slow\": 2}",
         TRI_INVALID, "beta_fast is 1 and rope_parameters.beta_slow is 2"},
        {"\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"attention_factor\": -1}",
         TRI_INVALID, "rope_parameters.attention_factor is -1"},
        {"\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"truncate\": 1}",
         TRI_INVALID, "rope_parameters.truncate is 1: give true or false"},
        {"\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, "
         "\"original_max_position_embeddings\": 64}, \"original_max_position_embeddings\": 128",
         TRI_INVALID, "original_max_position_embeddings is 128 but rope_parameters."},
        {"\"rope_parameters\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1}",
         TRI_INVALID, "rope_parameters.high_freq_factor is missing"},
        {"\"rope_parameters\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
         "\"high_freq_factor\": 4}",
         TRI_INVALID, "high_freq_factor must be greater"},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"partial_rotary_factor\": 0.4}",
         TRI_UNSUPPORTED, "3 of the 8 elements of a head would be rotated"},
        {"\"partial_rotary_factor\": 0", TRI_UNSUPPORTED, "0 of the 8 elements"},
        {"\"partial_rotary_factor\": 1.5", TRI_INVALID, "partial_rotary_factor is 1.5"},
        {"\"rotary_pct\": 0.5", TRI_UNSUPPORTED, "the family llama calls it partial_rotary_factor"},
        {"\"rope_theta\": 500000, \"rope_parameters\": {\"rope_type\": \"default\", "
         "\"rope_theta\": 10000}",
         TRI_INVALID, "rope_parameters.rope_theta is 10000 but rope_theta is 500000: keep one"},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000}, "
         "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}",
         TRI_INVALID, "rope_parameters and rope_scaling contradict each other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused("llama", cases[i].members, NULL, cases[i].status, cases[i].words);
    check_refused("phi3", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}", NULL,
                  TRI_UNSUPPORTED, "the family phi3 has no rope_type linear");
    check_refused("gpt_neox", "\"rotary_emb_base\": 10000, \"rope_theta\": 20000", NULL,
                  TRI_INVALID, "rope_theta is 20000 but rotary_emb_base is 10000");
}

static void check_same_arch(const struct tri_arch *a, const struct tri_arch *b)
{
    assert_string_equal(a->family, b->family);
    assert_string_equal(a->class_name, b->class_name);
    assert_int_equal(a->vocab, b->vocab);
    assert_int_equal(a->hidden, b->hidden);
    assert_int_equal(a->num_layers, b->num_layers);
    assert_int_equal(a->num_heads, b->num_heads);
    assert_int_equal(a->num_kv_heads, b->num_kv_heads);
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->mlp_width, b->mlp_width);
    assert_int_equal(a->max_positions, b->max_positions);
    assert_int_equal(a->norm.kind, b->norm.kind);
    assert_true(a->norm.eps == b->norm.eps);
    assert_int_equal(a->rope.type, b->rope.type);
    assert_true(a->rope.theta == b->rope.theta);
    assert_int_equal(a->rope.rotary_dim, b->rope.rotary_dim);
    assert_true(a->rope.factor == b->rope.factor);
    assert_int_equal(a->rope.original_max_positions, b->rope.original_max_positions);
    assert_true(a->rope.low_freq_factor == b->rope.low_freq_factor);
    assert_true(a->rope.high_freq_factor == b->rope.high_freq_factor);
    assert_true(a->rope.beta_fast == b->rope.beta_fast);
    assert_true(a->rope.beta_slow == b->rope.beta_slow);
    assert_true(a->rope.attention_factor == b->rope.attention_factor);
    assert_true(a->rope.mscale == b->rope.mscale);
    assert_true(a->rope.mscale_all_dim == b->rope.mscale_all_dim);
    assert_int_equal(a->rope.truncate, b->rope.truncate);
    assert_int_equal(a->activation, b->activation);
    assert_int_equal(a->gated_mlp, b->gated_mlp);
    assert_int_equal(a->parallel_residual, b->parallel_residual);
    assert_int_equal(a->qk_norm, b->qk_norm);
    assert_int_equal(a->qkv_bias, b->qkv_bias);
    assert_int_equal(a->out_bias, b->out_bias);
    assert_int_equal(a->mlp_bias, b->mlp_bias);
    assert_int_equal(a->norm_bias, b->norm_bias);
    assert_int_equal(a->tied_embeddings, b->tied_embeddings);
    assert_true(a->init_range == b->init_range);
    assert_memory_equal(a->window, b->window, (size_t)a->num_layers * sizeof *a->window);
    assert_string_equal(a->dtype, b->dtype);
    assert_int_equal(a->bos, b->bos);
    assert_int_equal(a->eos, b->eos);
    assert_int_equal(a->pad, b->pad);
}

static void both_spellings_are_one_model(void **state)
{
    (void)state;
    static const struct {
        const char *family, *old, *modern;
    } pairs[] = {
        {"llama", "\"rope_theta\": 500000.0, \"rope_scaling\": null, \"torch_dtype\": \"bfloat16\"",
         "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 500000}, \"dtype\": "
         "\"bfloat16\""},
        {"llama",
         "\"rope_theta\": 500000.0, \"rope_scaling\": {\"factor\": 8.0, \"low_freq_factor\": 1.0, "
         "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 64, \"rope_type\": "
         "\"llama3\"}",
         "\"rope_parameters\": {\"rope_theta\": 500000.0, \"factor\": 8.0, \"low_freq_factor\": "
         "1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 64, "
         "\"rope_type\": \"llama3\"}"},
        {"llama", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}",
         "\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4.0, \"rope_theta\": 1e4}"},
        {"mistral",
         "\"rope_theta\": 1000000.0, \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}, "
         "\"sliding_window\": null",
         "\"sliding_window\": null, \"rope_parameters\": {\"rope_type\": \"dynamic\", \"factor\": "
         "2.0, \"rope_theta\": 1000000}"},
        {"qwen2",
         "\"rope_theta\": 1000000.0, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4.0, "
         "\"original_max_position_embeddings\": 128, \"mscale\": 0.5, \"mscale_all_dim\": 0.8, "
         "\"beta_fast\": 16, \"beta_slow\": 2, \"truncate\": false, \"attention_factor\": 1.5}",
         "\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"rope_theta\": 1e6, "
         "\"original_max_position_embeddings\": 128, \"mscale\": 0.5, \"mscale_all_dim\": 0.8, "
         "\"beta_fast\": 16, \"beta_slow\": 2, \"truncate\": false, \"attention_factor\": 1.5}"},
        {"gpt_neox",
         "\"rotary_pct\": 0.5, \"rotary_emb_base\": 50000, \"torch_dtype\": \"float16\"",
         "\"dtype\": \"float16\", \"rope_parameters\": {\"rope_type\": \"default\", "
         "\"rope_theta\": 50000, \"partial_rotary_factor\": 0.5}"},
        /* As late versions 4 saved it: every spelling at once. */
        {"gpt_neox",
         "\"rotary_pct\": 0.25, \"partial_rotary_factor\": 0.25, \"rotary_emb_base\": 10000, "
         "\"rope_theta\": 10000.0, \"rope_scaling\": null",
         "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000.0, "
         "\"partial_rotary_factor\": 0.25}"},
        /* Twice the same. */
        {"llama",
         "\"rope_theta\": 20000, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}, "
         "\"torch_dtype\": \"float32\", \"dtype\": \"float32\", \"rope_parameters\": "
         "{\"rope_type\": \"linear\", \"factor\": 4, \"rope_theta\": 20000}",
         "\"dtype\": \"float32\", \"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4, "
         "\"rope_theta\": 20000}"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct tri_model *old = parse_ok(pairs[i].family, pairs[i].old, NULL);
        struct tri_model *modern = parse_ok(pairs[i].family, pairs[i].modern, NULL);
        check_same_arch(&old->arch, &modern->arch);
        tri_model_close(old);
        tri_model_close(modern);
    }
    /* The pairs agree on numbers that were really read. */
    struct tri_model *model = parse_ok("qwen2", pairs[4].old, NULL);
    const struct tri_rope *r = &model->arch.rope;
    assert_int_equal(r->type, TRI_ROPE_YARN);
    assert_true(r->theta == 1e6 && r->factor == 4.0 && r->original_max_positions == 128);
    assert_true(r->mscale == 0.5 && r->mscale_all_dim == 0.8 && r->attention_factor == 1.5);
    assert_true(r->beta_fast == 16.0 && r->beta_slow == 2.0 && !r->truncate);
    tri_model_close(model);
    model = parse_ok("gpt_neox", pairs[5].old, NULL);
    assert_int_equal(model->arch.rope.rotary_dim, 4);
    assert_true(model->arch.rope.theta == 50000.0);
    tri_model_close(model);
}

static void yarn_fills_in_what_is_absent(void **state)
{
    (void)state;
    struct tri_model *model =
        parse_ok("llama", "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}", NULL);
    assert_int_equal(model->arch.rope.original_max_positions, 512);
    assert_true(model->arch.rope.truncate);
    tri_model_close(model);
    model = parse_ok("llama",
                     "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": null}, "
                     "\"original_max_position_embeddings\": 64",
                     NULL);
    assert_int_equal(model->arch.rope.original_max_positions, 64);
    assert_true(model->arch.rope.factor == 8.0);
    tri_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_rope),
        cmocka_unit_test(both_spellings_are_one_model),
        cmocka_unit_test(yarn_fills_in_what_is_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
