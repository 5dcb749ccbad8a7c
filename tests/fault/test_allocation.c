/* No memory, at every place where memory is asked for: TRI_NOMEM with one line, nothing leaks (the
 * sanitizer build looks), and whoever failed can be closed. */
#include "unit/tiny_model.h"

static void assert_no_memory(enum tri_status st, const char *part)
{
    assert_int_equal(st, TRI_NOMEM);
    assert_error_has(part);
}

static void a_step_fails_at_each_allocation(void **state)
{
    (void)state;
    const int64_t lengths[] = {20, 12};
    struct tri_batch batch = tiny_batch(lengths, 2);
    struct tri_batch twice[] = {batch, batch};
    struct tri_step_stats stats;
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tiny_way way = tiny_way(false);
        way.pass.chunk_size = 16;
        int64_t failures = 0;
        for (int64_t nth = 1;; nth++) {
            struct tiny tiny = tiny_open(tiny_models[m].config, &way);
            struct tri_trainer *t = tiny.trainer;
            double *before = tiny_copy(t, t->zero->weights);
            tri_arena_fail_at(t->exec.arena, nth);
            enum tri_status st = tri_train_step(t, twice, 2, 1e-2, &stats);
            if (st != TRI_OK) {
                failures++;
                assert_no_memory(st, "no room for '");
                assert_int_equal(t->optimizer.step, 0);
                for (int64_t i = 0; i < t->model->num_elements; i++)
                    assert_true(tiny_at(t, t->zero->weights, i) == before[i]);
            }
            free(before);
            tiny_close(&tiny);
            if (st == TRI_OK)
                break;
        }
        /* Two micro-batches over two layers and two chunks ask for something in every part. */
        assert_true(failures > 60);
    }
    tri_batch_close(&batch);
}

static void an_evaluation_fails_at_each_allocation(void **state)
{
    (void)state;
    const int64_t lengths[] = {20, 12};
    struct tri_batch batch = tiny_batch(lengths, 2);
    struct tiny_way way = tiny_way(false);
    int64_t failures = 0;
    for (int64_t nth = 1;; nth++) {
        double sum;
        int64_t trained;
        struct tiny tiny = tiny_open(tiny_models[0].config, &way);
        tri_arena_fail_at(tiny.trainer->exec.arena, nth);
        enum tri_status st = tri_train_eval(tiny.trainer, &batch, &sum, &trained);
        if (st != TRI_OK)
            assert_no_memory(st, "no room for '");
        tiny_close(&tiny);
        if (st == TRI_OK)
            break;
        failures++;
    }
    assert_true(failures > 15);
    tri_batch_close(&batch);
}

/* A trainer of four buffers of 2.5 MiB each and its pass, in memory that ends at each of them. */
static void opening_fails_at_each_buffer(void **state)
{
    (void)state;
    static const char config[] =
        "{\"model_type\":\"llama\",\"vocab_size\":20000,\"hidden_size\":16,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,"
        "\"intermediate_size\":16,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,"
        "\"max_position_embeddings\":64,\"tie_word_embeddings\":false}";
    struct tri_model *model = tiny_parse(config);
    struct tri_backend *backend = NULL;
    struct tri_cpu_config cpu = {.threads = 1};
    struct tri_optim_options optimizer = tiny_optimizer();
    struct tri_pass_options pass = {.tiled_mlp_compute = true};
    assert_int_equal(tri_cpu_open(&cpu, &backend), TRI_OK);
    int failures = 0;
    for (size_t capacity = 1;; capacity += (size_t)1 << 21) {
        struct tri_trainer *trainer = NULL;
        struct tri_trainer_config how = {.model = model,
                                         .backend = backend,
                                         .act = TRI_F32,
                                         .capacity = capacity,
                                         .pass = &pass,
                                         .optimizer = &optimizer};
        enum tri_status st = tri_trainer_open(&how, &trainer);
        if (st == TRI_OK) {
            tri_trainer_close(trainer);
            break;
        }
        failures++;
        assert_no_memory(st, "no room for '");
        assert_null(trainer);
    }
    assert_true(failures >= 4);
    tri_cpu_close(backend);
    tri_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_fails_at_each_allocation),
        cmocka_unit_test(an_evaluation_fails_at_each_allocation),
        cmocka_unit_test(opening_fails_at_each_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
