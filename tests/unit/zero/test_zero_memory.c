/* What a rank of several takes of a model of the Llama 3 8B shape, by the plan that `train` and
 * `rehearse` print: nothing is allocated. */
#include "unit/tiny_model.h"

#include "comm/self/self.h"
#include "train/memory.h"

static const char llama_8b[] =
    "{\"model_type\":\"llama\",\"vocab_size\":128256,\"hidden_size\":4096,\"num_hidden_layers\":32,"
    "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
    "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-5,\"max_position_embeddings\":131072,"
    "\"rope_theta\":500000.0,\"tie_word_embeddings\":false}";

enum { RANKS = 4, TOKENS = 65536 };

static struct tri_memory_plan count(struct tri_model *model, struct tri_backend *backend, int ranks,
                                    int zero_stage)
{
    struct tri_pass_options pass = {.tiled_mlp_compute = true};
    struct tri_optim_options optimizer = tiny_optimizer();
    struct tri_trainer_config config = {.model = model,
                                        .backend = backend,
                                        .act = TRI_F32,
                                        .pass = &pass,
                                        .optimizer = &optimizer,
                                        .clip = 1.0,
                                        .zero_stage = zero_stage};
    struct tri_memory_plan plan;
    if (ranks > 1) {
        assert_int_equal(tri_comm_dry(0, ranks, NULL, &config.world), TRI_OK);
        assert_int_equal(tri_comm_dry(0, ranks, NULL, &config.sequence), TRI_OK);
    }
    if (tri_memory_count(&config, TOKENS, 1, &plan) != TRI_OK)
        fail_msg("%s", tri_error_text());
    tri_comm_close(config.sequence);
    tri_comm_close(config.world);
    return plan;
}

static void assert_near(double got, double want, double more)
{
    if (!(got >= want && got <= want * (1 + more)))
        fail_msg("%.4f is not from %.4f to %.0f%% more", got, want, 100 * more);
}

static size_t states(const struct tri_memory_plan *plan)
{
    return plan->weights + plan->gradients + plan->optimizer;
}

static void a_stage_divides_what_it_names(void **state)
{
    (void)state;
    struct tri_model *model = tiny_parse(llama_8b);
    struct tri_backend *backend = NULL;
    struct tri_cpu_config cpu = {.threads = 1};
    assert_int_equal(tri_cpu_open(&cpu, &backend), TRI_OK);
    struct tri_memory_plan one = count(model, backend, 1, 3);
    assert_true(one.weights == (size_t)model->num_elements * sizeof(float));
    for (int stage = 0; stage <= 3; stage++) {
        struct tri_memory_plan part = count(model, backend, RANKS, stage);
        double weights = (double)part.weights / (double)one.weights;
        double gradients = (double)part.gradients / (double)one.gradients;
        double optimizer = (double)part.optimizer / (double)one.optimizer;
        assert_near(weights, stage < 3 ? 1 : 1.0 / RANKS, 1e-3);
        assert_near(gradients, stage < 2 ? 1 : 1.0 / RANKS, 1e-3);
        assert_near(optimizer, stage < 1 ? 1 : 1.0 / RANKS, 1e-3);
        if (stage == 3)
            assert_near((double)states(&part) / (double)states(&one), 1.0 / RANKS, 0.05);
    }
    tri_cpu_close(backend);
    tri_model_close(model);
}

static void activations_are_divided(void **state)
{
    (void)state;
    struct tri_model *model = tiny_parse(llama_8b);
    struct tri_backend *backend = NULL;
    struct tri_cpu_config cpu = {.threads = 1};
    assert_int_equal(tri_cpu_open(&cpu, &backend), TRI_OK);
    struct tri_memory_plan one = count(model, backend, 1, 0);
    struct tri_memory_plan part = count(model, backend, RANKS, 0);
    assert_near((double)part.step / (double)one.step, 1.0 / RANKS, 0.10);

    /* Weights and gradients of two layers are lent at a time, beside the same activations; the
     * head's and the embedding's while no layer is at work. */
    struct tri_memory_plan lent = count(model, backend, RANKS, 3);
    size_t layer = (size_t)(model->unit_begin[2] - model->unit_begin[1]) * sizeof(float);
    assert_true(lent.step >= part.step);
    assert_true(lent.step <= part.step + 4 * layer + ((size_t)1 << 20));
    tri_cpu_close(backend);
    tri_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_divides_what_it_names),
        cmocka_unit_test(activations_are_divided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
