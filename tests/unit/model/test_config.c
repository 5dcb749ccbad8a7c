/* config.json: defaults, both spellings, windows, overrides, and every refusal with its words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "model/arch.h"

static json_t *json_of(const char *text)
{
    json_t *value = NULL;
    if (tri_json_parse("test", text, strlen(text), &value) != TRI_OK)
        fail_msg("%s: %s", tri_error_text(), text);
    return value;
}

/* Parse a small model of a family whose other members are `members` ("\"a\": 1, ..."). */
static enum tri_status parse_over(const char *family, const char *members, const char *overrides,
                                  struct tri_model **out)
{
    char text[4096];
    snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", family);
    json_t *config = json_of(text);
    json_t *sizes = json_of("{\"hidden_size\": 64, \"num_hidden_layers\": 4, "
                            "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, "
                            "\"intermediate_size\": 96, \"vocab_size\": 320, "
                            "\"max_position_embeddings\": 512}");
    json_object_update(config, sizes);
    json_decref(sizes);
    snprintf(text, sizeof text, "{%s}", members);
    json_t *more = json_of(text);
    json_object_update(config, more);
    json_decref(more);
    json_t *over = overrides == NULL ? NULL : json_of(overrides);

    char *dump = json_dumps(config, 0);
    *out = NULL;
    enum tri_status st = tri_model_parse("config.json", dump, strlen(dump), over, out);
    free(dump);
    json_decref(over);
    json_decref(config);
    return st;
}

static struct tri_model *parse_ok(const char *family, const char *members, const char *overrides)
{
    struct tri_model *model = NULL;
    if (parse_over(family, members, overrides, &model) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return model;
}

static void check_refused(const char *family, const char *members, const char *overrides,
                          enum tri_status status, const char *words)
{
    struct tri_model *model = NULL;
    enum tri_status st = parse_over(family, members, overrides, &model);
    if (st == TRI_OK)
        fail_msg("%s was accepted: %s", family, members);
    if (strstr(tri_error_text(), words) == NULL)
        fail_msg("\"%s\" is not in the error \"%s\"", words, tri_error_text());
    if (strncmp(tri_error_text(), "config.json", 11) != 0)
        fail_msg("the error does not begin with the file: %s", tri_error_text());
    assert_null(strchr(tri_error_text(), '\n'));
    if (st != status)
        fail_msg("status %d instead of %d: %s", st, status, tri_error_text());
    assert_null(model);
}

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

static void check_windows(const char *family, const char *members, const int64_t expected[4])
{
    struct tri_model *model = parse_ok(family, members, NULL);
    for (int i = 0; i < 4; i++)
        if (model->arch.window[i] != expected[i])
            fail_msg("%s {%s}: window[%d] is %lld", family, members, i,
                     (long long)model->arch.window[i]);
    tri_model_close(model);
}

#define FULL    "\"full_attention\""
#define SLIDING "\"sliding_attention\""

static void windows_follow_the_family(void **state)
{
    (void)state;
    static const int64_t none[4] = {0, 0, 0, 0}, all[4] = {32, 32, 32, 32};
    check_windows("llama", "\"sliding_window\": null", none);
    check_windows("llama", "\"sliding_window\": 32, \"use_sliding_window\": false", none);
    check_windows("mistral", "\"sliding_window\": null", none);
    check_windows("mistral", "\"sliding_window\": 32", all);
    check_windows("mistral",
                  "\"sliding_window\": 32, \"layer_types\": [" SLIDING ", " SLIDING ", " SLIDING
                  ", " SLIDING "]",
                  all);
    check_windows("phi3", "", none);
    check_windows("phi3", "\"sliding_window\": 32", all);
    for (int i = 0; i < 2; i++) {
        const char *family = i == 0 ? "qwen2" : "qwen3";
        check_windows(family, "\"sliding_window\": 32", none);
        check_windows(family,
                      "\"sliding_window\": 32, \"use_sliding_window\": false, "
                      "\"max_window_layers\": 0",
                      none);
        check_windows(family, "\"sliding_window\": 32, \"use_sliding_window\": true", none);
        check_windows(family,
                      "\"sliding_window\": 32, \"use_sliding_window\": true, "
                      "\"max_window_layers\": 1",
                      (const int64_t[4]){0, 32, 32, 32});
        check_windows(family, "\"use_sliding_window\": true, \"max_window_layers\": 3",
                      (const int64_t[4]){0, 0, 0, 4096});
        check_windows(family,
                      "\"sliding_window\": 32, \"use_sliding_window\": true, "
                      "\"max_window_layers\": 4, \"layer_types\": [" SLIDING ", " FULL ", " SLIDING
                      ", " FULL "]",
                      (const int64_t[4]){32, 0, 32, 0});
    }
}

static void refuses_bad_windows(void **state)
{
    (void)state;
    check_refused("mistral", "\"sliding_window\": 0", NULL, TRI_INVALID, "sliding_window is 0");
    check_refused("mistral", "\"sliding_window\": 32, \"use_sliding_window\": false", NULL,
                  TRI_UNSUPPORTED, "use_sliding_window is false, but the family mistral does not");
    check_refused("mistral",
                  "\"sliding_window\": 32, \"layer_types\": [" FULL ", " SLIDING ", " SLIDING
                  ", " SLIDING "]",
                  NULL, TRI_UNSUPPORTED, "layer_types[0] is full_attention, but in the family");
    check_refused("llama", "\"layer_types\": [" FULL ", " FULL ", " FULL ", " SLIDING "]", NULL,
                  TRI_INVALID, "layer_types[3] is sliding_attention, but no window is set");
    check_refused("qwen2", "\"layer_types\": [" FULL "]", NULL, TRI_INVALID,
                  "layer_types has 1 entries but num_hidden_layers is 4");
    check_refused("qwen2", "\"layer_types\": \"all\"", NULL, TRI_INVALID, "layer_types is \"all\"");
    check_refused("qwen3", "\"layer_types\": [" FULL ", \"linear_attention\", " FULL ", " FULL "]",
                  NULL, TRI_UNSUPPORTED,
                  "layer_types[1] is \"linear_attention\": only full_attention");
    check_refused("qwen3", "\"layer_types\": [" FULL ", " SLIDING ", " FULL ", " FULL "]", NULL,
                  TRI_INVALID, "layer_types[1] is sliding_attention, but no window is set");
    check_refused("qwen2", "\"max_window_layers\": -1", NULL, TRI_INVALID, "max_window_layers");
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
        cmocka_unit_test(refuses_bad_rope),
        cmocka_unit_test(defaults_are_those_of_the_class),
        cmocka_unit_test(both_spellings_are_one_model),
        cmocka_unit_test(yarn_fills_in_what_is_absent),
        cmocka_unit_test(windows_follow_the_family),
        cmocka_unit_test(refuses_bad_windows),
        cmocka_unit_test(reads_small_choices),
        cmocka_unit_test(overrides_replace),
        cmocka_unit_test(merged_configs_keep_their_spelling),
        cmocka_unit_test(hostile_text_gives_one_line),
        cmocka_unit_test(missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
