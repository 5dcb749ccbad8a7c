/* config.json: defaults, small choices, and every refusal with its words. */
#include "unit/model/config_fixture.h"

#include "base/log.h"

static void refuses_what_it_cannot_honour(void **state)
{
    (void)state;
    static const struct {
        const char *family, *members, *words;
    } cases[] = {
        {"gpt_bigcode", "", "model_type is \"gpt_bigcode\", known are llama, mistral, qwen2"},
        {"llama", "\"architectures\": [\"LlamaForSequenceClassification\"]",
         "architectures is [\"LlamaForSequenceClassification\"]"},
        {"llama", "\"attention_dropout\": 0.1", "attention_dropout is 0.1: dropout is not"},
        {"gpt_neox", "\"hidden_dropout\": 0.1", "hidden_dropout is 0.1"},
        {"phi3", "\"resid_pdrop\": 0.1", "resid_pdrop is 0.1"},
        {"phi3", "\"embd_pdrop\": 0.1", "embd_pdrop is 0.1"},
        {"llama", "\"attn_pdrop\": 0.5", "attn_pdrop is 0.5"},
        {"llama", "\"num_local_experts\": 8", "num_local_experts is 8: mixtures of experts"},
        {"qwen3", "\"num_experts\": 128", "num_experts is 128: mixtures of experts"},
        {"llama", "\"n_routed_experts\": 64", "n_routed_experts is 64"},
        {"llama", "\"kv_lora_rank\": 512", "kv_lora_rank is 512: multi-head latent attention"},
        {"llama", "\"q_lora_rank\": 512", "q_lora_rank is 512: multi-head latent attention"},
        {"llama", "\"attn_logit_softcapping\": 50.0",
         "attn_logit_softcapping is 50.0: soft-capped"},
        {"llama", "\"final_logit_softcapping\": 30", "final_logit_softcapping is 30: soft-capped"},
        {"llama", "\"attention_sinks\": true", "attention_sinks is true: attention sinks"},
        {"llama", "\"embedding_multiplier\": 12.0", "embedding_multiplier is 12.0"},
        {"llama", "\"attention_multiplier\": 1.0", "attention_multiplier is 1.0"},
        {"llama", "\"quantization_config\": {\"bits\": 4}", "quantization_config is {...}"},
        {"llama", "\"pretraining_tp\": 2", "pretraining_tp is 2"},
        {"llama", "\"is_encoder_decoder\": true", "is_encoder_decoder is true"},
        {"llama", "\"add_cross_attention\": true", "add_cross_attention is true"},
        {"llama", "\"is_causal\": false", "is_causal is false"},
        {"llama", "\"alibi\": true", "alibi is true"},
        {"llama", "\"use_qk_norm\": true", "use_qk_norm is true"},
        {"llama", "\"use_parallel_residual\": true", "use_parallel_residual is true"},
        {"llama", "\"qkv_bias\": true", "qkv_bias is true"},
        {"llama", "\"sliding_window\": 64", "the family llama has no sliding window"},
        {"mistral", "\"attention_bias\": true", "in the family mistral it is always false"},
        {"mistral", "\"mlp_bias\": true", "mlp_bias is true"},
        {"qwen2", "\"attention_bias\": false", "in the family qwen2 it is always true"},
        {"gpt_neox", "\"mlp_bias\": false", "in the family gpt_neox it is always true"},
        {"gpt_neox", "\"num_key_value_heads\": 2", "num_key_value_heads is 2, but the family"},
        {"gpt_neox", "\"head_dim\": 16", "head_dim is 16, but in the family gpt_neox"},
        {"llama", "\"hidden_act\": \"laplace\"", "hidden_act is \"laplace\", supported are silu"},
        {"llama", "\"dtype\": \"float8_e4m3fn\"", "dtype is \"float8_e4m3fn\""},
        {"llama", "\"head_dim\": 7", "head_dim is 7"},
        {"llama", "\"hidden_size\": 56", "head_dim is 7"},
        {"llama",
         "\"vocab_size\": 16777216, \"hidden_size\": 1048576, \"intermediate_size\": 16777216, "
         "\"num_hidden_layers\": 4096, \"head_dim\": 64",
         "parameters, more than"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i].family, cases[i].members, NULL, TRI_UNSUPPORTED, cases[i].words);
}

static void accepts_neutral_values(void **state)
{
    (void)state;
    tri_model_close(parse_ok("llama",
                             "\"architectures\": [\"LlamaForCausalLM\"], \"classifier_dropout\": "
                             "0.1, \"attention_dropout\": 0, \"num_experts\": null, "
                             "\"attn_logit_softcapping\": null, \"pretraining_tp\": 1, "
                             "\"is_causal\": true, \"use_cache\": true, \"is_decoder\": true, "
                             "\"something_new\": {\"a\": [1, 2]}, \"quantization_config\": null, "
                             "\"embedding_multiplier\": 1.0, \"layer_types\": [\"full_attention\", "
                             "\"full_attention\", \"full_attention\", \"full_attention\"]",
                             NULL));
    tri_model_close(parse_ok("mistral", "\"attention_bias\": false, \"mlp_bias\": false", NULL));
    tri_model_close(parse_ok("qwen2", "\"attention_bias\": true, \"qkv_bias\": true", NULL));
    tri_model_close(parse_ok("qwen3", "\"use_qk_norm\": true", NULL));
}

static void refuses_bad_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *members, *words;
    } cases[] = {
        {"\"hidden_size\": 0", "hidden_size is 0: give a whole number from 1 to 1048576"},
        {"\"hidden_size\": -64", "hidden_size is -64"},
        {"\"hidden_size\": null", "hidden_size is null"},
        {"\"hidden_size\": \"64\"", "hidden_size is \"64\""},
        {"\"hidden_size\": 64.5", "hidden_size is 64.5"},
        {"\"hidden_size\": 9223372036854775807", "hidden_size is 9223372036854775807"},
        {"\"num_hidden_layers\": 4097", "from 1 to 4096"},
        {"\"num_hidden_layers\": 1e18", "num_hidden_layers is 1e18"},
        {"\"vocab_size\": 999999999999", "vocab_size is 999999999999"},
        {"\"intermediate_size\": 0", "intermediate_size is 0"},
        {"\"max_position_embeddings\": 0", "max_position_embeddings is 0"},
        {"\"num_attention_heads\": 0", "num_attention_heads is 0"},
        {"\"num_attention_heads\": 7, \"num_key_value_heads\": 7",
         "hidden_size 64 is not a multiple of num_attention_heads 7"},
        {"\"num_key_value_heads\": 3",
         "num_attention_heads 8 is not a multiple of num_key_value_heads 3"},
        {"\"rms_norm_eps\": 0", "rms_norm_eps is 0"},
        {"\"rms_norm_eps\": \"tiny\"", "rms_norm_eps is \"tiny\""},
        {"\"initializer_range\": -1", "initializer_range is -1"},
        {"\"tie_word_embeddings\": 1", "tie_word_embeddings is 1: give true or false"},
        {"\"attention_bias\": \"no\"", "attention_bias is \"no\": give true or false"},
        {"\"hidden_act\": 3", "hidden_act is 3: give a text in quotes"},
        {"\"eos_token_id\": \"</s>\"", "eos_token_id is \"</s>\""},
        {"\"dtype\": \"bfloat16\", \"torch_dtype\": \"float16\"",
         "dtype is \"bfloat16\" but torch_dtype is \"float16\": keep one of the two"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused("llama", cases[i].members, NULL, TRI_INVALID, cases[i].words);
}

/* The defaults of the classes of Transformers 5 (configuration_*.py). */
static void defaults_are_those_of_the_class(void **state)
{
    (void)state;
    static const struct {
        const char *family, *class_name;
        int64_t vocab, hidden, layers, heads, kv_heads, head_dim, mlp_width, positions, rotary_dim;
        double eps;
        bool qkv_bias, out_bias, mlp_bias, norm_bias, parallel, gated, qk_norm;
        int64_t window, bos, eos;
    } expected[] = {
        {"llama", "LlamaForCausalLM",
         32000,   4096,
         32,      32,
         32,      128,
         11008,   2048,
         128,     1e-6,
         false,   false,
         false,   false,
         false,   true,
         false,   0,
         1,       2},
        {"mistral", "MistralForCausalLM",
         32000,     4096,
         32,        32,
         8,         128,
         14336,     131072,
         128,       1e-6,
         false,     false,
         false,     false,
         false,     true,
         false,     4096,
         1,         2},
        {"qwen2", "Qwen2ForCausalLM",
         151936,  4096,
         32,      32,
         32,      128,
         22016,   32768,
         128,     1e-6,
         true,    false,
         false,   false,
         false,   true,
         false,   0,
         -1,      -1},
        {"qwen3", "Qwen3ForCausalLM",
         151936,  4096,
         32,      32,
         32,      128,
         22016,   32768,
         128,     1e-6,
         false,   false,
         false,   false,
         false,   true,
         true,    0,
         -1,      -1},
        {"phi3", "Phi3ForCausalLM",
         32064,  3072,
         32,     32,
         32,     96,
         8192,   4096,
         96,     1e-5,
         false,  false,
         false,  false,
         false,  true,
         false,  0,
         1,      32000},
        {"gpt_neox", "GPTNeoXForCausalLM",
         50432,      6144,
         44,         64,
         64,         96,
         24576,      2048,
         24,         1e-5,
         true,       true,
         true,       true,
         true,       false,
         false,      0,
         0,          2},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", expected[i].family);
        struct tri_model *model = NULL;
        assert_int_equal(tri_model_parse("c", text, strlen(text), NULL, &model), TRI_OK);
        const struct tri_arch *a = &model->arch;
        assert_string_equal(a->family, expected[i].family);
        assert_string_equal(a->class_name, expected[i].class_name);
        assert_int_equal(a->vocab, expected[i].vocab);
        assert_int_equal(a->hidden, expected[i].hidden);
        assert_int_equal(a->num_layers, expected[i].layers);
        assert_int_equal(a->num_heads, expected[i].heads);
        assert_int_equal(a->num_kv_heads, expected[i].kv_heads);
        assert_int_equal(a->head_dim, expected[i].head_dim);
        assert_int_equal(a->mlp_width, expected[i].mlp_width);
        assert_int_equal(a->max_positions, expected[i].positions);
        assert_int_equal(a->rope.rotary_dim, expected[i].rotary_dim);
        assert_int_equal(a->rope.type, TRI_ROPE_DEFAULT);
        assert_true(a->rope.theta == 10000.0);
        assert_true(a->norm.eps == expected[i].eps);
        assert_int_equal(a->norm.kind, expected[i].norm_bias ? TRI_NORM_LAYER : TRI_NORM_RMS);
        assert_int_equal(a->activation, expected[i].gated ? TRI_ACT_SILU : TRI_ACT_GELU);
        assert_int_equal(a->qkv_bias, expected[i].qkv_bias);
        assert_int_equal(a->out_bias, expected[i].out_bias);
        assert_int_equal(a->mlp_bias, expected[i].mlp_bias);
        assert_int_equal(a->norm_bias, expected[i].norm_bias);
        assert_int_equal(a->parallel_residual, expected[i].parallel);
        assert_int_equal(a->gated_mlp, expected[i].gated);
        assert_int_equal(a->qk_norm, expected[i].qk_norm);
        assert_false(a->tied_embeddings);
        assert_true(a->init_range == 0.02);
        assert_int_equal(a->window[0], expected[i].window);
        assert_int_equal(a->window[a->num_layers - 1], expected[i].window);
        assert_int_equal(a->bos, expected[i].bos);
        assert_int_equal(a->eos, expected[i].eos);
        assert_string_equal(a->dtype, "");
        tri_model_close(model);
    }
}

static void reads_small_choices(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum tri_activation value;
    } activations[] = {{"silu", TRI_ACT_SILU},
                       {"swish", TRI_ACT_SILU},
                       {"gelu", TRI_ACT_GELU},
                       {"gelu_new", TRI_ACT_GELU_TANH},
                       {"gelu_pytorch_tanh", TRI_ACT_GELU_TANH},
                       {"gelu_fast", TRI_ACT_GELU_TANH},
                       {"quick_gelu", TRI_ACT_QUICK_GELU},
                       {"relu", TRI_ACT_RELU}};
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        char members[64];
        snprintf(members, sizeof members, "\"hidden_act\": \"%s\"", activations[i].name);
        struct tri_model *model = parse_ok("gpt_neox", members, NULL);
        assert_int_equal(model->arch.activation, activations[i].value);
        tri_model_close(model);
    }
    struct tri_model *model = parse_ok(
        "llama",
        "\"eos_token_id\": [7, 8], \"bos_token_id\": null, \"pad_token_id\": -1, \"head_dim\": "
        "null, \"num_key_value_heads\": null, \"torch_dtype\": \"auto\", \"attention_bias\": true",
        NULL);
    assert_int_equal(model->arch.eos, 7);
    assert_int_equal(model->arch.bos, -1);
    assert_int_equal(model->arch.pad, -1);
    assert_int_equal(model->arch.head_dim, 8);
    assert_int_equal(model->arch.num_kv_heads, 8);
    assert_string_equal(model->arch.dtype, "");
    assert_true(model->arch.qkv_bias && model->arch.out_bias && !model->arch.mlp_bias);
    tri_model_close(model);

    model =
        parse_ok("gpt_neox", "\"use_parallel_residual\": false, \"attention_bias\": false", NULL);
    assert_false(model->arch.parallel_residual);
    assert_true(!model->arch.qkv_bias && !model->arch.out_bias && model->arch.mlp_bias);
    tri_model_close(model);

    tri_log_set_level(TRI_LOG_ERROR); /* a warning is expected */
    model = parse_ok("llama", "\"pad_token_id\": 320", NULL);
    tri_log_set_level(TRI_LOG_INFO);
    assert_int_equal(model->arch.pad, -1);
    tri_model_close(model);
}

static void hostile_text_gives_one_line(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "42",
        "{\"model_type\": 5}",
        "{\"model_type\": null}",
        "{\"hidden_size\": 64}",
        "{\"model_type\": \"llama\", \"model_type\": \"llama\"}",
        "{\"model_type\": \"line\\nbreak \\u0007 %s%n\"}",
        "{\"model_type\": \"llama\", \"rope_parameters\": {\"a\\nb\": 1}}",
        "{\"model_type\": \"llama\", \"rope_theta\": 1e999}",
        "{\"model_type\": \"llama\", \"hidden_size\": 99999999999999999999999}",
        "{\"model_type\": \"llama\", \"architectures\": [[[[[]]]]]}",
        "{\"model_type\": \"llama\", \"architectures\": \"LlamaForCausalLM\"}",
        "{\"model_type\": \"qwen2\", \"layer_types\": []}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tri_model *model = NULL;
        if (tri_model_parse("hostile", texts[i], strlen(texts[i]), NULL, &model) == TRI_OK)
            fail_msg("accepted: %s", texts[i]);
        assert_null(model);
        assert_int_equal(strncmp(tri_error_text(), "hostile", 7), 0);
        for (const char *p = tri_error_text(); *p != '\0'; p++)
            assert_true((unsigned char)*p >= 0x20);
    }
    /* A long value is shortened. */
    char text[9000] = "{\"model_type\": \"";
    size_t head = strlen(text);
    memset(text + head, 'x', 8000);
    strcpy(text + head + 8000, "\"}");
    struct tri_model *model = NULL;
    assert_int_equal(tri_model_parse("hostile", text, strlen(text), NULL, &model), TRI_UNSUPPORTED);
    assert_true(strlen(tri_error_text()) < 400);
    assert_non_null(strstr(tri_error_text(), "xxx..."));
    /* A zero byte need not follow the text. */
    assert_int_equal(
        tri_model_parse("hostile", "{\"model_type\": \"llama\"}garbage", 23, NULL, &model), TRI_OK);
    tri_model_close(model);
}

static void missing_file_is_named(void **state)
{
    (void)state;
    struct tri_model *model = NULL;
    assert_int_equal(tri_model_open("/nonexistent/config.json", NULL, &model), TRI_IO);
    assert_non_null(strstr(tri_error_text(), "/nonexistent/config.json"));
    assert_null(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_it_cannot_honour),
        cmocka_unit_test(accepts_neutral_values),
        cmocka_unit_test(refuses_bad_sizes),
        cmocka_unit_test(defaults_are_those_of_the_class),
        cmocka_unit_test(reads_small_choices),
        cmocka_unit_test(hostile_text_gives_one_line),
        cmocka_unit_test(missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
